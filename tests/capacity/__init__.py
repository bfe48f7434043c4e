"""How far off the estimate of `kvfence capacity` is from the pools of the field logs. `python -m tests.capacity`."""
