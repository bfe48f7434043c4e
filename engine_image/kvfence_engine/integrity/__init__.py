"""What keeps one request's KV from being read by another: pure cores, without SGLang, tested without it.

`hooked/` puts them into SGLang. The arrays here are numpy arrays in tests and torch tensors, on the device of the KV
pool, in an engine; only what both have is used, and nothing that makes the host wait for the device.
"""
