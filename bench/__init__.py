"""Measurements of what kvfence costs, each beside a baseline in the same run. No tests: a busy machine is no fault."""
