"""The cap, worked out by hand."""

from __future__ import annotations

import dataclasses

import pytest

from kvfence.api.v1alpha1.pool import ContextPolicy, InferencePool, RoleType
from kvfence.domain.capacity import (
    Contradictory,
    LeftOut,
    Measured,
    NotMeasured,
    Offered,
    TooSmall,
    Wanted,
    first_offer,
    next_offer,
)
from tests.unit.domain.engines import decode, prefill, unknown

P, D = RoleType.PREFILL, RoleType.DECODE
DEMO = Wanted(requested_tokens=4096)


def cap(*pools: Measured, wanted: Wanted = DEMO) -> int:
    offer = first_offer(wanted, pools)
    assert isinstance(offer, Offered), offer
    return offer.tokens


# By hand: 1,024 x 98 / 100 = 1,003.52, so 1,003; in pages of 16 that is 62 x 16 = 992.
# Decode does not limit it: (4,096 - 512 - 1) x 98 / 100 = 3,511; (4,096 - 512 - 16) x 98 / 100 = 3,496, in pages 3,488.
@pytest.mark.parametrize(("page", "expected"), [(1, 1003), (16, 992)])
def test_the_demo_is_capped_to_what_its_prefill_pool_holds(page: int, expected: int) -> None:
    engine = prefill(1024, page=page, context=4096)
    offer = first_offer(DEMO, (engine, decode(4096, page=page, context=4096)))
    assert offer == Offered(expected, engine)


# By hand: the longest prompt has C - 7 tokens, 996 and 985; the first that is refused has one more.
@pytest.mark.parametrize(("page", "longest"), [(1, 996), (16, 985)])
def test_the_longest_prompt_of_the_demo_is_seven_below_the_cap(page: int, longest: int) -> None:
    tokens = cap(prefill(1024, page=page), decode(4096, page=page))
    capped = prefill(1024, page=page, context=tokens)  # as the same engine would say with the cap in force
    assert longest < capped.max_input_tokens <= longest + 1


@pytest.mark.parametrize(
    ("case", "pools", "wanted", "expected", "limiting"),
    [
        ("all of it fits", (prefill(5000), decode(5000)), DEMO, 4096, None),
        (
            "decode keeps 512 and a page: 4,096 - 513 = 3,583, 3,511",
            (prefill(5000), decode(4096)),
            DEMO,
            3511,
            "decode-0",
        ),
        (
            "decode that keeps nothing gives up a page: 4,095, 4,013",
            (prefill(9000), decode(4096, kept=0)),
            DEMO,
            4013,
            "decode-0",
        ),
        (
            "the smallest prefill counts: 900, 882",
            (prefill(2000), prefill(900, pod="1"), decode(5000)),
            DEMO,
            882,
            "prefill-1",
        ),
        (
            "the smallest rank counts: 800, 784",
            (prefill(2000), prefill(800, rank=3), decode(5000)),
            DEMO,
            784,
            "prefill-0",
        ),
        (
            "the reserve comes off after the headroom: 1,003 - 100 = 903",
            (prefill(1024), decode(5000)),
            dataclasses.replace(DEMO, reserve_tokens=100),
            903,
            "prefill-0",
        ),
        (
            "and the page after the reserve: 903 is 56 x 16 = 896",
            (prefill(1024, page=16), decode(5000, page=16)),
            dataclasses.replace(DEMO, reserve_tokens=100),
            896,
            "prefill-0",
        ),
        (
            "no headroom takes the whole pool",
            (prefill(1024), decode(5000)),
            dataclasses.replace(DEMO, headroom_percent=0),
            1024,
            "prefill-0",
        ),
        (
            "what was asked for need not be a multiple of the page",
            (prefill(8192, page=64), decode(8192, page=64)),
            dataclasses.replace(DEMO, requested_tokens=4000),
            4000,
            None,
        ),
        (
            "the model has less than was asked for",
            (prefill(5000), decode(5000)),
            dataclasses.replace(DEMO, model_tokens=2048),
            2048,
            None,
        ),
        (
            "an engine that takes less than its pool explains is believed: 500 + 6",
            (dataclasses.replace(prefill(1024), max_input_tokens=500), decode(5000)),
            DEMO,
            506,
            "prefill-0",
        ),
        (
            "an engine that was started with what is asked for shows that as its limit, and loses nothing by it",
            (prefill(9000, context=4096), decode(9000, context=4096)),
            DEMO,
            4096,
            None,
        ),
        (
            "the incident: 681,280 x 98 / 100 = 667,654.4",
            (prefill(681_280, context=1_048_576), decode(1_200_000, context=1_048_576)),
            Wanted(1_048_576),
            667_654,
            "prefill-0",
        ),
    ],
)
def test_a_cap_worked_out_by_hand(
    case: str, pools: tuple[Measured, ...], wanted: Wanted, expected: int, limiting: str | None
) -> None:
    offer = first_offer(wanted, pools)
    assert isinstance(offer, Offered), case
    assert (offer.tokens, offer.limit and offer.limit.where.pod) == (expected, limiting), case


def test_a_pool_that_is_not_known_stops_the_first_offer() -> None:
    missing = unknown()
    assert first_offer(DEMO, (prefill(5000), decode(5000), missing)) == NotMeasured((missing,), ())


@pytest.mark.parametrize(
    ("pools", "absent"),
    [((), (P, D)), ((prefill(5000),), (D,)), ((decode(5000),), (P,)), ((unknown(D),), (P,))],
)
def test_a_type_without_an_engine_is_no_pool_of_any_size(
    pools: tuple[Measured, ...], absent: tuple[RoleType, ...]
) -> None:
    offer = first_offer(DEMO, pools)
    assert isinstance(offer, NotMeasured)
    assert offer.absent == absent


def test_an_engine_that_takes_more_than_its_pool_holds_is_refused() -> None:
    liar = dataclasses.replace(prefill(1024), max_input_tokens=1019)
    assert first_offer(DEMO, (liar, decode(5000))) == Contradictory((liar,))


def test_pages_of_two_sizes_are_refused() -> None:
    one, other = decode(5000, page=1), prefill(5000, page=16)
    assert first_offer(DEMO, (other, one)) == Contradictory((one, other))


def test_require_fit_refuses_one_token_too_few() -> None:
    strict = dataclasses.replace(DEMO, policy=ContextPolicy.REQUIRE_FIT, headroom_percent=0)
    short = prefill(4095)
    assert first_offer(strict, (short, decode(9000))) == TooSmall(4095, short)
    assert cap(prefill(4096), decode(9000), wanted=strict) == 4096


def test_a_minimum_refuses_one_token_too_few() -> None:
    wanted = dataclasses.replace(DEMO, minimum_tokens=1004)
    small = prefill(1024)
    assert first_offer(wanted, (small, decode(4096))) == TooSmall(1003, small)
    assert cap(small, decode(4096), wanted=dataclasses.replace(wanted, minimum_tokens=1003)) == 1003


def test_a_model_below_the_minimum_is_nobodys_pool() -> None:
    wanted = dataclasses.replace(DEMO, minimum_tokens=2000, model_tokens=1000)
    assert first_offer(wanted, (prefill(5000), decode(5000))) == TooSmall(1000, None)


@pytest.mark.parametrize(("tokens", "admitted"), [(8, True), (7, False), (0, False)])
def test_a_cap_under_which_no_prompt_fits_is_none(tokens: int, admitted: bool) -> None:
    wanted = dataclasses.replace(DEMO, headroom_percent=0, minimum_tokens=1)
    offer = first_offer(wanted, (prefill(5000), decode(513 + tokens)))
    assert isinstance(offer, Offered if admitted else TooSmall)
    assert isinstance(offer, Offered | TooSmall)
    assert offer.tokens == tokens


@pytest.mark.parametrize(
    "changed",
    [{"type": RoleType.UNIFIED}, {"kv_pool_tokens": 0}, {"page_size": 0}, {"max_input_tokens": -1}],
)
def test_a_measurement_that_cannot_be_is_no_measurement(changed: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="prefill-0: "):
        dataclasses.replace(prefill(1024), **changed)  # type: ignore[arg-type]


def test_a_restarted_engine_with_a_page_less_serves_under_the_same_cap() -> None:
    pools = (prefill(1024 - 16, page=16), decode(4096, page=16))
    offer = next_offer(DEMO, 992, pools)
    assert isinstance(offer, Offered)
    assert (offer.tokens, offer.left_out) == (992, ())


def test_the_headroom_may_be_used_up_by_an_engine_that_holds_the_cap_even_under_require_fit() -> None:
    strict = dataclasses.replace(DEMO, requested_tokens=1000, policy=ContextPolicy.REQUIRE_FIT)
    assert next_offer(strict, 1000, (prefill(1000), decode(4096))) == Offered(1000, None)


# By hand: 1,050 - 100 does not hold 1,003; 1,050 x 98 / 100 - 100 = 929.
def test_the_reserve_may_not_be_used_up() -> None:
    offer = next_offer(dataclasses.replace(DEMO, reserve_tokens=100), 1003, (prefill(1050), decode(4096)))
    assert isinstance(offer, Offered)
    assert offer.tokens == 929


def test_a_restarted_engine_with_more_does_not_raise_the_cap() -> None:
    offer = next_offer(DEMO, 1003, (prefill(4000), decode(4096)))
    assert isinstance(offer, Offered)
    assert offer.tokens == 1003


# By hand: 900 does not hold 1,003; 900 x 98 / 100 = 882.
def test_a_restarted_engine_that_does_not_hold_the_cap_lowers_it_once() -> None:
    small = prefill(900, pod="1")
    offer = next_offer(DEMO, 1003, (prefill(1024), small, decode(4096)))
    assert offer == Offered(882, small)
    assert next_offer(DEMO, 882, (prefill(1024), small, decode(4096))) == offer


def test_a_restarted_engine_below_the_minimum_stays_out_with_all_its_ranks() -> None:
    wanted = dataclasses.replace(DEMO, minimum_tokens=1000)
    small = prefill(900, pod="1", rank=1)
    pools = (prefill(1024), prefill(1024, pod="1"), small, decode(4096))
    offer = next_offer(wanted, 1003, pools)
    assert isinstance(offer, Offered)
    assert (offer.tokens, offer.left_out) == (1003, (LeftOut("prefill", "prefill-1", small),))


def test_a_restarted_engine_that_is_not_known_stays_out_and_the_others_serve_on() -> None:
    missing = unknown()
    offer = next_offer(DEMO, 1003, (prefill(1024), decode(4096), missing))
    assert isinstance(offer, Offered)
    assert (offer.tokens, offer.left_out) == (1003, (LeftOut("decode", "decode-9", missing),))


def test_with_no_engine_of_a_type_left_nothing_is_offered_and_the_cause_is_named() -> None:
    wanted = dataclasses.replace(DEMO, minimum_tokens=1000)
    small, missing, liar = prefill(900), unknown(P), dataclasses.replace(prefill(1024), max_input_tokens=2000)
    assert next_offer(wanted, 1003, (small, decode(4096))) == TooSmall(882, small)
    assert next_offer(wanted, 1003, (missing, decode(4096))) == NotMeasured((missing,), ())
    assert next_offer(wanted, 1003, (liar, decode(4096))) == Contradictory((liar,))
    assert next_offer(wanted, 1003, (decode(4096),)) == NotMeasured((), (P,))


def test_a_minimum_above_the_cap_in_force_is_refused_since_the_cap_never_goes_up() -> None:
    wanted = dataclasses.replace(DEMO, minimum_tokens=2000)
    offer = next_offer(wanted, 1003, (prefill(9000), decode(9000)))
    assert isinstance(offer, TooSmall)
    assert offer.tokens == 1003


def test_what_is_wanted_is_read_from_the_spec() -> None:
    spec = {
        "model": {"servedName": "m", "uri": "file:///m", "maxContextTokens": 2048},
        "engine": {"sglang": {"image": "i"}},
        "roles": [{"name": "p", "type": "Prefill"}, {"name": "d", "type": "Decode"}],
        "contextLength": {"requestedTokens": 4096, "minimumTokens": 100, "reserveTokens": 7, "policy": "RequireFit"},
    }
    read = Wanted.of(InferencePool.model_validate({"spec": spec}).spec)
    assert read == Wanted(4096, 100, 7, 2, ContextPolicy.REQUIRE_FIT, 2048)
