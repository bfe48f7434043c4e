"""At which lengths a target is asked: where one of its roles stops taking prompts, and between. Pure.

An engine of SGLang takes prompts that are shorter than `max_req_input_len`; see `kvfence.domain.capacity`.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from kvfence.domain.capacity import INPUT_MARGIN
from kvfence.verify import markers

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kvfence.verify.canary.session import Known, Target

MANY_BELOW = 20_000
"""Tokens of context up to which several lengths between two limits are asked; beyond, they cost too much."""

_BETWEEN = (0.03, 0.2, 0.35, 0.5, 0.75)
"""Of the way from the first limit to the last: the shortest first, which decode's oldest pages answer."""

_BETWEEN_OF_MANY = (0.03, 0.5)

_UNTOLD = 8
"""Part of the context at which to begin where no limit is told."""

_SEPARATE = 24
"""Tokens that a prompt leaves beside its text: what the tokenizer puts in front, and five that SGLang keeps back."""


def everyone(target: Target) -> tuple[Known, ...]:
    """Return all of a target of which something may be known: its legs, and the engines behind a router."""
    return (*target.legs, *target.engines)


def limit(known: Known) -> int | None:
    """Return the first length in tokens that this one refuses; none when it cannot be told."""
    if known.max_input_tokens is not None:
        return known.max_input_tokens
    if known.kv_pool_tokens is None or known.context_length is None:
        return None
    return max(1, min(known.kv_pool_tokens, known.context_length) - INPUT_MARGIN)


def roles(target: Target) -> dict[str, tuple[Known, ...]]:
    """Return all ranks of all servers of each role."""
    found: dict[str, tuple[Known, ...]] = {}
    for one in everyone(target):
        found[one.name] = (*found.get(one.name, ()), *(one.ranks or (one,)))
    return found


def limits(target: Target) -> tuple[int, ...]:
    """Return the smallest limit and the largest of each role, the smallest first, each once."""
    told = [[one for rank in ranks if (one := limit(rank)) is not None] for ranks in roles(target).values()]
    return tuple(sorted({end for of_role in told if of_role for end in (min(of_role), max(of_role))}))


def contexts(target: Target) -> tuple[int, ...]:
    """Return the smallest advertised length and the largest of each role, the smallest first, each once."""
    told = [[one for rank in ranks if (one := rank.context_length) is not None] for ranks in roles(target).values()]
    return tuple(sorted({end for of_role in told if of_role for end in (min(of_role), max(of_role))}))


def refused_from(target: Target) -> int | None:
    """Return the least length in tokens that nobody can answer rightly; none when that is not told.

    An engine cannot from the limit on that it told, nor what is more than its pool or not less than its context. Of
    several engines or ranks of a role the roomiest may get the prompt; and each role has to hold it, but for servers
    without PD, which hold it alone. Where there are engines of which nothing is known, one of them may be roomier.
    """
    ends = {role: _roomiest(ranks) for role, ranks in roles(target).items()}
    through = ends.pop("router", None)
    alone = ends.pop("server", 0)
    halves = min((end for end in ends.values() if end is not None), default=None if ends else 0)
    engines = None if target.has_more_engines or alone is None or halves is None else max(alone, halves)
    return min((end for end in (through, engines) if end), default=None)


def _roomiest(ranks: tuple[Known, ...]) -> int | None:
    """Return the first length that none of them can answer rightly; none when one of them may answer any."""
    ends = [_refuses_from(rank) for rank in ranks]
    told = [end for end in ends if end is not None]
    return max(told) if len(told) == len(ends) else None


def _refuses_from(rank: Known) -> int | None:
    pool = None if rank.kv_pool_tokens is None else rank.kv_pool_tokens + 1
    known = (rank.max_input_tokens, pool, rank.context_length)
    return min((one for one in known if one is not None), default=None)


def characters_at_most(target: Target, wanted: int) -> int:
    """Return how long a text may be that surely fits, answer of `markers.LENGTH` included: no tokenizer makes more
    tokens of it than it has characters.
    """
    told = [
        one
        for leg in everyone(target)
        for one in (leg.max_input_tokens, leg.kv_pool_tokens, leg.context_length)
        if one is not None
    ]
    return min([wanted, *(one - markers.LENGTH - _SEPARATE for one in told)])


def smallest_page(target: Target) -> int:
    """Return the page size in tokens to work with: the largest that is told, since borders of it are borders of all."""
    return max((one.page_size for one in everyone(target) if one.page_size is not None), default=1)


def largest_pool(target: Target) -> int | None:
    """Return how many tokens the largest KV pool holds; none when none is told."""
    ranks = [rank for of_role in roles(target).values() for rank in of_role]
    return max((one.kv_pool_tokens for one in ranks if one.kv_pool_tokens is not None), default=None)


def at_the_edges(target: Target) -> tuple[int, ...]:
    """Return lengths in tokens at each limit and each context, -2 to +2 and -1 to +1, and half-way between two of them.

    The shortest first, so that what costs least is asked first.
    """
    edges, ends = limits(target), contexts(target)
    around = [edge + off for edge in edges for off in range(-2, 3)]
    around += [end + off for end in ends for off in (-1, 0, 1)]
    between = [(one + other) // 2 for one, other in itertools.pairwise(sorted({*edges, *ends}))]
    return _sorted([*around, *between])


def between_the_limits(target: Target) -> tuple[int, ...]:
    """Return lengths in tokens that one role takes, or says that it does, and another cannot hold; none without such.

    From the smallest limit to the largest context: what lies there passes a tokenizer and may fail behind it. Where no
    limit is told, it may lie anywhere below the context.
    """
    edges, ends = limits(target), contexts(target)
    if not edges and not ends:
        return ()
    first = edges[0] if edges else ends[0] // _UNTOLD
    last = max((*edges, *(end - 1 for end in ends)))
    parts = _BETWEEN if last <= MANY_BELOW else _BETWEEN_OF_MANY
    return _sorted(first + round(part * (last - first)) for part in parts if last - first > INPUT_MARGIN)


def _sorted(lengths: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted({length for length in lengths if length >= 1}))
