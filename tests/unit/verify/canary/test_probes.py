"""The formula against checks that run on stand-ins which leak at random; seeded: they say the same each time."""

from __future__ import annotations

import pytest

from kvfence.domain.verdicts import Check
from kvfence.verify.canary.detection import detected, detected_at_least
from kvfence.verify.canary.probes import probing_of
from kvfence.verify.canary.stand_in import Shape, StandIn
from kvfence.verify.canary.suite import SUITE
from tests.detection.measured import Tried, first_control, likely, measure, probing

MISTAKE = 1e-3
"""How likely a right formula is called wrong by the dice. The seeds are fixed, so it is once and for all."""

EXACT = (
    (Check.MARKER_ISOLATION, 0.06, 60),
    (Check.PROMPT_TOKENS, 0.06, 100),
    (Check.PAIR_IDENTITY, 0.08, 80),
    (Check.FAKE_TRANSFER, 0.3, 100),
    (Check.HEALTH_CHECK_RID, 0.3, 100),
)
"""Checks whose probes can be counted."""

AT_LEAST = ((Check.OVERLONG_PROMPT, 0.08, 40), (Check.STREAM_ERRORS, 0.2, 100), (Check.ABORT_REUSE, 0.2, 60))
"""Checks that may look harder than we can count from outside."""


@pytest.mark.parametrize(("check", "rate", "runs"), EXACT, ids=str)
def test_a_leak_is_seen_as_often_as_the_formula_says(check: Check, rate: float, runs: int) -> None:
    tried = first_control(SUITE[check])
    fewest, most = likely(detected(probing(tried), rate), runs, MISTAKE)
    assert 0 < fewest <= most < runs, "so few runs could not contradict the formula"
    assert fewest <= measure(tried, rate, runs, 7).seen <= most


@pytest.mark.parametrize(("check", "rate", "runs"), AT_LEAST, ids=str)
def test_a_leak_is_seen_at_least_as_often_as_the_formula_says(check: Check, rate: float, runs: int) -> None:
    tried = first_control(SUITE[check])
    fewest, _ = likely(detected(probing(tried), rate), runs, MISTAKE)
    assert 0 < fewest <= measure(tried, rate, runs, 7).seen


def test_behind_a_router_fewer_requests_meet() -> None:
    tried = first_control(SUITE[Check.MARKER_ISOLATION])
    behind = Tried(tried.check, Shape.ROUTER, tried.flaw)
    assert probing(behind).sensitivity < probing(tried).sensitivity
    fewest, most = likely(detected(probing(behind), 0.08), 60, MISTAKE)
    assert fewest <= measure(behind, 0.08, 60, 7).seen <= most


@pytest.mark.parametrize("shape", Shape)
@pytest.mark.parametrize("check", [check for check, *_ in EXACT + AT_LEAST])
def test_one_probe_more_or_less_is_within_what_is_asked(check: Check, shape: Shape) -> None:
    target = StandIn(shape).target
    for requests in range(200):
        found = probing_of(check, target, requests)
        if found is not None:
            assert found.rounds > 0
            assert detected_at_least(found, 0.1) <= detected(found, 0.1) < 1


@pytest.mark.parametrize("check", [Check.SALT_ISOLATION, Check.ROUTER_PAIRING])
def test_what_chance_has_no_part_in_has_no_probability(check: Check) -> None:
    assert probing_of(check, StandIn(Shape.PAIR).target, 100) is None


def test_every_check_of_the_suite_is_looked_at_here() -> None:
    looked_at = {check for check, *_ in EXACT + AT_LEAST} | {Check.SALT_ISOLATION, Check.ROUTER_PAIRING}
    assert set(SUITE) == looked_at


@pytest.mark.parametrize(
    ("probability", "runs", "expected"),
    [
        pytest.param(0.5, 10, (1, 9), id="ten coins: none or all is unlikely enough"),
        pytest.param(0.0, 10, (0, 0), id="what never happens"),
        pytest.param(1.0, 10, (10, 10), id="what always happens"),
    ],
)
def test_what_is_likely_is_counted_exactly(probability: float, runs: int, expected: tuple[int, int]) -> None:
    assert likely(probability, runs, 0.01) == expected
