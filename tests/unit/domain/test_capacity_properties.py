"""The cap as properties: never above what any pool holds, never up within a revision, whatever the numbers."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from math import floor
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from kvfence.api.v1alpha1.pool import ContextPolicy, RoleType
from kvfence.domain.capacity import (
    Contradictory,
    Measured,
    NotMeasured,
    Offered,
    PoolId,
    TooSmall,
    Wanted,
    context_that_fits,
    first_offer,
    floor_page,
    holds,
    next_offer,
)
from tests.unit.domain.engines import decode, prefill

pages = st.sampled_from([1, 16, 64])
wishes = st.builds(
    Wanted,
    requested_tokens=st.integers(8, 100_000),
    minimum_tokens=st.integers(1, 2_000),
    reserve_tokens=st.integers(0, 3_000),
    headroom_percent=st.integers(0, 50),
    policy=st.sampled_from(ContextPolicy),
    model_tokens=st.none() | st.integers(1, 100_000),
)


@st.composite
def revisions(draw: st.DrawFn) -> tuple[Measured, ...]:
    """The pools of a revision: whole pages, one to three engines of each type, some with a limit of their own."""
    page = draw(pages)
    found = []
    for make in (prefill, decode):
        for number in range(draw(st.integers(1, 3))):
            engine = make(draw(st.integers(1, 100_000 // page)) * page, page=page, pod=str(number))
            lower = draw(st.none() | st.integers(0, engine.max_input_tokens))
            if engine.kv_pool_tokens < 6:  # SGLang would say 0, which is more than such a pool explains
                lower = None
            if lower is not None:
                engine = dataclasses.replace(engine, max_input_tokens=lower)
            found.append(engine)
    return tuple(found)


@given(wishes, revisions())
def test_no_cap_is_above_any_pool_or_any_limit(wanted: Wanted, pools: tuple[Measured, ...]) -> None:
    offer = first_offer(wanted, pools)
    if isinstance(offer, Offered):
        assert wanted.floor <= offer.tokens <= wanted.ceiling
        for one in pools:
            assert offer.tokens <= one.usable_tokens <= one.kv_pool_tokens
            assert offer.tokens - 6 <= one.max_input_tokens
            assert holds(one, offer.tokens, wanted)


@given(wishes, revisions())
def test_a_cap_is_whole_pages_unless_something_else_sets_it(wanted: Wanted, pools: tuple[Measured, ...]) -> None:
    offer = first_offer(wanted, pools)
    if isinstance(offer, Offered):
        others = {wanted.ceiling, *(one.engine_limit for one in pools)}
        assert offer.tokens % pools[0].page_size == 0 or offer.tokens in others


@given(wishes, revisions())
def test_no_fraction_is_lost_or_won(wanted: Wanted, pools: tuple[Measured, ...]) -> None:
    for one in pools:
        exact = Fraction(one.usable_tokens) * Fraction(100 - wanted.headroom_percent, 100) - wanted.reserve_tokens
        whole = max(0, floor(exact / one.page_size) * one.page_size)
        assert context_that_fits(one, wanted) == min(whole, one.engine_limit)


@given(wishes, revisions(), st.data())
def test_a_larger_pool_never_lowers_and_one_more_pool_never_raises(
    wanted: Wanted, pools: tuple[Measured, ...], data: st.DataObject
) -> None:
    before = first_offer(wanted, pools)
    index = data.draw(st.integers(0, len(pools) - 1))
    more = data.draw(st.integers(0, 1000)) * pools[0].page_size
    grown = dataclasses.replace(pools[index], kv_pool_tokens=pools[index].kv_pool_tokens + more)
    after = first_offer(wanted, (*pools[:index], grown, *pools[index + 1 :]))
    added = first_offer(wanted, (*pools, dataclasses.replace(pools[index], where=PoolId("prefill", "new"))))
    assert not isinstance(before, NotMeasured)
    if not isinstance(before, Contradictory) and not isinstance(after, Contradictory):
        assert not isinstance(after, NotMeasured)
        assert after.tokens >= before.tokens
    if not isinstance(before, Contradictory):
        assert isinstance(added, Offered | TooSmall)
        assert added.tokens == before.tokens


@given(wishes, revisions(), st.randoms(use_true_random=False))
def test_the_order_of_the_pools_does_not_matter(wanted: Wanted, pools: tuple[Measured, ...], random: Random) -> None:
    shuffled = list(pools)
    random.shuffle(shuffled)
    assert first_offer(wanted, tuple(shuffled)) == first_offer(wanted, pools)


@given(wishes, revisions())
def test_the_first_offer_stays_while_nothing_changes(wanted: Wanted, pools: tuple[Measured, ...]) -> None:
    first = first_offer(wanted, pools)
    if isinstance(first, Offered):
        again = next_offer(wanted, first.tokens, pools)
        assert isinstance(again, Offered)
        assert (again.tokens, again.left_out) == (first.tokens, ())


@given(wishes, revisions(), st.integers(8, 100_000))
def test_within_a_revision_the_cap_only_goes_down_and_settles_at_once(
    wanted: Wanted, pools: tuple[Measured, ...], applied: int
) -> None:
    offer = next_offer(wanted, applied, pools)
    if isinstance(offer, Offered):
        assert wanted.floor <= offer.tokens <= min(applied, wanted.ceiling)
        out = {(one.role, one.pod) for one in offer.left_out}
        serving = tuple(one for one in pools if (one.where.role, one.where.pod) not in out)
        assert {one.type for one in serving} == set(RoleType) - {RoleType.UNIFIED}
        assert all(holds(one, offer.tokens, wanted) for one in serving)
        settled = next_offer(wanted, offer.tokens, serving)
        assert isinstance(settled, Offered)
        assert (settled.tokens, settled.left_out) == (offer.tokens, ())


@given(st.integers(-100, 10_000), st.integers(1, 300))
def test_whole_pages_are_the_most_that_is_not_above(tokens: int, page: int) -> None:
    whole = floor_page(tokens, page)
    assert whole % page == 0
    assert whole <= max(0, tokens) < whole + page
