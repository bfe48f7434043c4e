"""What engines say becomes KV pools to count with: a pool that is not known is never one that does not count."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kvfence.api.v1alpha1.pool import RoleType
from kvfence.domain.capacity import Measured, NotMeasured, Offered, PoolId, TooSmall, Unmeasured
from kvfence.domain.engines import DoorState, Engine, Rank
from kvfence.domain.pools import capacity, pools_of
from tests.unit.domain.pools_of_engines import (
    CAP,
    boot,
    decode,
    exchanged,
    pool,
    prefill,
    restarted,
    serving,
    spec,
    starting,
    with_door,
)


def but(one: Engine, **changes: object) -> Engine:
    return replace(one, **changes)  # type: ignore[arg-type]


def with_ranks(one: Engine, *ranks: Rank) -> Engine:
    assert one.boot is not None
    return replace(one, boot=replace(one.boot, ranks=ranks))


def test_each_rank_is_a_pool_and_decode_keeps_some_of_it() -> None:
    two = replace(decode(), boot=boot("decode-0", 4096, page=16, ranks=2))
    assert pools_of(two) == tuple(
        Measured(PoolId("decode", "decode-0", rank), RoleType.DECODE, 4096, 16, 4090, 512) for rank in (0, 1)
    )
    assert pools_of(prefill(1)) == (Measured(PoolId("prefill", "prefill-1", 0), RoleType.PREFILL, 1024, 1, 1018, 0),)


@pytest.mark.parametrize(
    ("one", "why"),
    [
        (starting(prefill()), "it has not started"),
        (but(prefill(), boot=None, facts=None), "it was not asked yet"),
        (but(prefill(), facts=None, silent="its server does not answer"), "its server does not answer"),
        (but(prefill(), boot=None, silent="its door does not answer"), "its door does not answer"),
        (with_ranks(prefill()), "its door reports no KV pool"),
        (with_ranks(prefill(), Rank(0, 0, 1, 0)), "what it reports cannot be (prefill-0: a KV pool and its pages"),
        (with_ranks(prefill(), Rank(0, 1024, 0, 0)), "what it reports cannot be (prefill-0: a KV pool and its pages"),
        (with_ranks(prefill(), Rank(0, 1024, 1, -1)), "what it reports cannot be (prefill-0: a limit is no negative"),
        (
            replace(decode(), facts=replace(decode().facts, reserved_decode_tokens=None)),  # type: ignore[type-var]
            "its server does not report --num-reserved-decode-tokens",
        ),
    ],
)
def test_what_is_not_known_is_said_and_stops_the_first_offer(one: Engine, why: str) -> None:
    (found,) = pools_of(one)
    assert isinstance(found, Unmeasured)
    assert found.why.startswith(why)
    assert (found.where.pod, found.type) == (one.name, one.type)
    assert isinstance(capacity(exchanged(pool(), one)), NotMeasured)


def test_one_bad_rank_does_not_hide_the_others() -> None:
    bad, good = pools_of(with_ranks(prefill(), Rank(0, 0, 1, 0), Rank(1, 1024, 1, 1018)))
    assert isinstance(bad, Unmeasured)
    assert isinstance(good, Measured)


def test_the_first_offer_is_what_fits_into_the_smallest_pool() -> None:
    offer = capacity(pool())
    assert isinstance(offer, Offered)
    assert offer.tokens == CAP
    assert offer.limit is not None
    assert offer.limit.where.pod == "prefill-0"


def test_a_cap_that_some_doors_have_already_does_not_go_up() -> None:
    half = exchanged(pool(), with_door(prefill(0), DoorState.CANARY, cap=700))
    assert half.applied_tokens == 700
    offer = capacity(half)
    assert isinstance(offer, Offered)
    assert offer.tokens == 700
    forgotten = exchanged(half, restarted(prefill(0)))
    assert forgotten.applied_tokens is None


def test_a_cap_that_some_doors_have_goes_down_with_what_is_measured() -> None:
    half = exchanged(pool(), with_door(prefill(0), DoorState.CANARY, cap=CAP), prefill(1, tokens=600))
    offer = capacity(half)
    assert isinstance(offer, Offered)
    assert offer.tokens == 588


def test_while_it_serves_the_cap_in_the_status_counts_too() -> None:
    """All doors may have been closed meanwhile: within the revision it still does not go up."""
    every = serving()
    again = replace(every, engines=tuple(restarted(one) for one in every.engines))
    assert again.applied_tokens == CAP
    grown = exchanged(again, prefill(0, tokens=4000, start=3), prefill(1, tokens=4000, start=3))
    offer = capacity(grown)
    assert isinstance(offer, Offered)
    assert offer.tokens == CAP


def test_while_it_serves_a_pod_that_is_too_small_is_left_out_and_below_the_minimum_nothing_new_is_offered() -> None:
    strict = replace(serving(), spec=spec(contextLength={"minimumTokens": 1000}))
    offer = capacity(exchanged(strict, prefill(0, tokens=900, start=2)))
    assert isinstance(offer, Offered)
    assert [one.pod for one in offer.left_out] == ["prefill-0"]
    none = capacity(exchanged(strict, prefill(0, tokens=900, start=2), prefill(1, tokens=900, start=2)))
    assert isinstance(none, TooSmall)


def test_peers_are_the_prefill_engines_that_have_an_address_each_once_and_in_order() -> None:
    many = pool(prefill(1), prefill(0), starting(prefill(2)), decode())
    assert many.peers == ("10.0.7.1:8998", "10.0.7.2:8998", "10.0.7.3:8998")
    gone = but(prefill(3), pod=replace(prefill(3).pod, ip=None))
    assert exchanged(many, gone).peers == many.peers
