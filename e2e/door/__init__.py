"""The door of kvfence-engine in front of real SGLang processes."""
