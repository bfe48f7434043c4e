from __future__ import annotations

import math
import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kvfence.verify.canary.detection import (
    Probing,
    detected,
    detected_at_least,
    rate_seen,
    rounds_needed,
    seen_at_least_once,
)

RATES = st.floats(1e-6, 1.0)
SENSITIVITIES = st.floats(0.01, 1.0)
PROBABILITIES = st.floats(0.0, 0.999)
PROBINGS = st.builds(Probing, rounds=st.integers(1, 2000), at_once=st.integers(1, 16), sensitivity=SENSITIVITIES)


@pytest.mark.parametrize(
    ("probing", "rate", "expected"),
    [
        pytest.param(Probing(1), 0.25, 0.25, id="one probe sees with the rate itself"),
        pytest.param(Probing(2), 0.5, 0.75, id="two"),
        pytest.param(Probing(1, 2), 0.5, 0.75, id="two at once"),
        pytest.param(Probing(1, 1, 0.5), 0.5, 0.25, id="one that sees half of it"),
        pytest.param(Probing(3, 1, 0.5), 1.0, 0.875, id="three that see half of what always happens"),
        pytest.param(Probing(0), 1.0, 0.0, id="nobody looked"),
        pytest.param(Probing(5), 0.0, 0.0, id="nothing happens"),
        pytest.param(Probing(1), 1.0, 1.0, id="it always happens"),
    ],
)
def test_what_can_be_counted_by_hand(probing: Probing, rate: float, expected: float) -> None:
    assert detected(probing, rate) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("probing", "rate", "expected"),
    [
        pytest.param(Probing(1, 4), 0.5, 0.5, id="a round that leaks as one is one probe"),
        pytest.param(Probing(2, 4), 0.5, 0.75, id="two rounds"),
        pytest.param(Probing(1, 2, 0.5), 0.5, 0.375, id="of two that see half, one sees it three times in four"),
    ],
)
def test_what_leaks_together_is_seen_less_often(probing: Probing, rate: float, expected: float) -> None:
    assert detected_at_least(probing, rate) == pytest.approx(expected)


@given(PROBINGS, RATES)
def test_the_least_is_never_more_than_what_independent_probes_see(probing: Probing, rate: float) -> None:
    assert 0 < detected_at_least(probing, rate) <= detected(probing, rate) * (1 + 1e-9) <= 1 + 1e-9


@given(st.integers(1, 8), SENSITIVITIES, st.data())
def test_no_way_to_depend_on_each_other_in_a_round_is_seen_less_than_the_least(
    at_once: int, sensitivity: float, data: st.DataObject
) -> None:
    weights = data.draw(st.lists(st.floats(0.0, 1.0), min_size=at_once + 1, max_size=at_once + 1).filter(sum))
    chances = [weight / sum(weights) for weight in weights]  # that so many of the round are struck
    rate = min(1.0, sum(struck * chance for struck, chance in enumerate(chances)) / at_once)
    seen = 1 - sum(chance * (1 - sensitivity) ** struck for struck, chance in enumerate(chances))
    assert detected_at_least(Probing(1, at_once, sensitivity), rate) <= seen + 1e-9


@given(PROBINGS, RATES, RATES)
def test_a_leak_that_is_more_frequent_is_seen_at_least_as_well(probing: Probing, one: float, other: float) -> None:
    assert detected(probing, min(one, other)) <= detected(probing, max(one, other))


@example(Probing(1, 1, 0.6372460105357024), 0.6372460105357024)
@given(PROBINGS, PROBABILITIES)
def test_the_rate_that_is_seen_is_seen_with_this_probability(probing: Probing, probability: float) -> None:
    rate = rate_seen(probing, probability)
    if rate is None:
        assert detected(probing, 1.0) < probability
    else:
        assert detected(probing, rate) == pytest.approx(probability, abs=1e-9)


@given(st.integers(1, 16), SENSITIVITIES, RATES, PROBABILITIES)
def test_so_many_rounds_are_needed_and_no_fewer(
    at_once: int, sensitivity: float, rate: float, probability: float
) -> None:
    needed = rounds_needed(at_once, sensitivity, rate, probability)
    assert detected(Probing(needed, at_once, sensitivity), rate) >= probability
    assert needed == 0 or detected(Probing(needed - 1, at_once, sensitivity), rate) < probability


def test_three_hundred_clean_probes_see_one_in_a_hundred_with_95_percent() -> None:
    assert rounds_needed(1, 1.0, 0.01, 0.95) == 299
    rate = rate_seen(Probing(300), 0.95)
    assert rate is not None
    assert rate == pytest.approx(0.01, rel=0.01)


def test_a_leak_too_rare_for_floating_point_is_counted_all_the_same() -> None:
    assert detected(Probing(10**6), 1e-17) == pytest.approx(1e-11)


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(lambda: Probing(-1), id="rounds"),
        pytest.param(lambda: Probing(1, 0), id="at once"),
        pytest.param(lambda: Probing(1, 1, 0.0), id="blind"),
        pytest.param(lambda: Probing(1, 1, 1.1), id="sees more than there is"),
        pytest.param(lambda: Probing(1, 1, math.nan), id="sensitivity that is no number"),
        pytest.param(lambda: detected(Probing(1), 1.5), id="rate above one"),
        pytest.param(lambda: detected(Probing(1), math.nan), id="rate that is no number"),
        pytest.param(lambda: rate_seen(Probing(1), 1.0), id="certainty"),
        pytest.param(lambda: rounds_needed(1, 1.0, 0.0, 0.5), id="what never happens"),
        pytest.param(lambda: rounds_needed(1, 1.0, 0.5, 1.0), id="certainty by rounds"),
    ],
)
def test_what_is_no_probability_is_refused(wrong: object) -> None:
    assert callable(wrong)
    with pytest.raises(ValueError, match=r"."):
        wrong()


def test_nobody_who_looked_sees_nothing_at_any_rate() -> None:
    assert rate_seen(Probing(0), 0.5) is None
    assert seen_at_least_once(1.0, 0) == 0.0


def test_dice_agree_with_the_formula() -> None:
    chance, probing, rate, runs = random.Random(5), Probing(6, 3, 0.5), 0.1, 4000
    seen = sum(
        any(chance.random() < rate and chance.random() < probing.sensitivity for _ in range(probing.probes))
        for _ in range(runs)
    )
    expected = detected(probing, rate)
    assert abs(seen / runs - expected) < 4 * math.sqrt(expected * (1 - expected) / runs)
