"""What a cap of C tokens means for prompts. Pure.

SGLang takes a prompt when it is shorter than `max_req_input_len`, and computes that from context and pool as
`min(context - 1, pool - 1) - 5` (`TpModelWorker.get_worker_info`, 0.5.23). The same arithmetic with C for the context
gives one limit for tokenizer and scheduler, so that what passes the first never dies in the second.
"""

from __future__ import annotations

_KEPT = 6
"""`max_req_input_len` is that much below the context."""


def input_limit(cap: int, own: int) -> int:
    """Return `max_req_input_len` under a cap: prompts must be shorter.

    Args:
        cap: tokens of context.
        own: what the engine computed from its own context and pool when it started.
    """
    return min(own, cap - _KEPT)


def request_limit(cap: int, own: int) -> int:
    """Return `max_req_len` under a cap: prompt and answer together stay below.

    Args:
        cap: tokens of context.
        own: what the engine computed when it started.
    """
    return min(own, cap - 1)


def longest_prompt(cap: int, own: int) -> int:
    """Return how many tokens the longest prompt has that is taken."""
    return input_limit(cap, own) - 1
