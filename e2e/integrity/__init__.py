"""Attacks on the KV of a real pair, with faults planted in SGLang: what a user gets when no defence of the KV is on."""
