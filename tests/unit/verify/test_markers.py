from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvfence.verify import markers

SEEDS = st.integers(0, 2**32)
LENGTHS = st.integers(markers.RUN, len(markers.CHARACTERS))


@given(SEEDS, LENGTHS)
def test_a_marker_has_its_length_and_no_character_twice(seed: int, length: int) -> None:
    (marker,) = markers.draw(1, random.Random(seed), length)
    assert len(marker) == len(set(marker)) == length
    assert set(marker) <= set(markers.CHARACTERS)


@given(SEEDS, st.integers(2, 40), LENGTHS)
def test_no_two_markers_share_a_run(seed: int, count: int, length: int) -> None:
    drawn = markers.draw(count, random.Random(seed), length)
    runs = [marker[i : i + markers.RUN] for marker in drawn for i in range(length - markers.RUN + 1)]
    assert len(drawn) == count
    assert len(runs) == len(set(runs))


class Stuck(random.Random):
    """Draws the same characters three times before it goes on."""

    drawn = 0

    def sample(self, population, k, *, counts=None):  # type: ignore[no-untyped-def]
        self.drawn += 1
        return list(population[:k]) if self.drawn <= 3 else super().sample(population, k, counts=counts)


def test_a_marker_that_shares_a_run_with_an_earlier_one_is_drawn_again() -> None:
    first, second = markers.draw(2, Stuck(1))
    assert first == markers.CHARACTERS[: markers.LENGTH]
    assert markers.found(first, [second]) == ()


@pytest.mark.parametrize("length", [0, markers.RUN - 1, len(markers.CHARACTERS) + 1])
def test_a_length_that_no_marker_can_have_is_refused(length: int) -> None:
    with pytest.raises(ValueError, match="a marker has 6 to 32 characters"):
        markers.draw(1, random.Random(0), length)


def test_a_negative_count_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot draw -1 markers"):
        markers.draw(-1, random.Random(0))


@given(SEEDS, st.integers(40, 5000))
def test_a_planting_prompt_has_its_length_and_says_the_marker_whole_each_time(seed: int, characters: int) -> None:
    (marker,) = markers.draw(1, random.Random(seed))
    prompt = markers.planting_prompt(marker, characters)
    assert len(prompt) == characters
    assert prompt.count(markers.LEAD + marker) == prompt.count(markers.LEAD) == characters // 20
    assert prompt.endswith(marker)


def test_a_planting_prompt_without_room_for_a_repetition_is_refused() -> None:
    with pytest.raises(ValueError, match="39 characters are too few"):
        markers.planting_prompt("A" * 12, 39)


@given(SEEDS, LENGTHS, st.integers(0, 3000), st.integers(0, 3000))
def test_a_copying_prompt_has_the_marker_once_at_the_distance(
    seed: int, length: int, before: int, between: int
) -> None:
    (marker,) = markers.draw(1, random.Random(seed), length)
    distance = length + between + len(markers.LEAD)
    characters = before + len(markers.LEAD) + distance
    prompt = markers.copying_prompt(marker, characters, distance)
    assert len(prompt) == characters
    assert prompt.count(marker) == 1
    assert prompt.index(marker) == characters - distance
    assert prompt.endswith(markers.LEAD)


@pytest.mark.parametrize(("characters", "distance"), [(100, 19), (27, 20)])
def test_a_copying_prompt_in_which_the_marker_has_no_place_is_refused(characters: int, distance: int) -> None:
    with pytest.raises(ValueError, match="does not fit"):
        markers.copying_prompt("ABCDEFGHJKLM", characters, distance)


@given(SEEDS, st.integers(9, 5000))
def test_an_asking_prompt_has_its_tokens_ends_with_the_lead_and_names_no_marker(seed: int, tokens: int) -> None:
    prompt = markers.asking_prompt(tokens)
    assert len(prompt) + 1 == tokens
    assert prompt.isascii()
    assert prompt.endswith(markers.LEAD)
    assert prompt.count("SECRET") == 1  # the only word in capitals; with two E it is no run of a marker
    assert markers.found(prompt, markers.draw(8, random.Random(seed))) == ()


def test_an_asking_prompt_without_room_for_the_lead_is_refused() -> None:
    with pytest.raises(ValueError, match="8 tokens are too few"):
        markers.asking_prompt(8)
    assert markers.asking_prompt(8, begin_tokens=0) == markers.LEAD


@given(SEEDS, st.integers(16, 3000), st.integers(8, 3000))
def test_a_cut_asking_prompt_breaks_off_before_the_dash_of_its_second_lead(seed: int, kept: int, more: int) -> None:
    prompt = markers.cut_asking_prompt(kept + more, kept)
    assert len(prompt) + 1 == kept + more
    assert prompt.startswith(markers.LEAD)
    assert prompt[: kept - 1].endswith(markers.LEAD[:-1])
    assert prompt[: kept - 1].count("-") == 1
    assert prompt.endswith(markers.LEAD)
    assert markers.found(prompt, markers.draw(8, random.Random(seed))) == ()


@pytest.mark.parametrize(("tokens", "kept"), [(100, 15), (107, 100)])
def test_a_cut_asking_prompt_without_room_for_its_leads_is_refused(tokens: int, kept: int) -> None:
    with pytest.raises(ValueError, match="no room for the leads"):
        markers.cut_asking_prompt(tokens, kept)


@given(SEEDS, st.integers(0, 6), st.text(max_size=50), st.text(max_size=50))
def test_any_run_of_a_marker_is_found_wherever_it_stands(seed: int, start: int, before: str, after: str) -> None:
    planted = markers.draw(8, random.Random(seed))
    run = planted[3][start : start + markers.RUN]
    assert markers.found(before + run + after, planted) == (planted[3],)


@given(SEEDS, st.integers(0, 7))
def test_less_than_a_run_is_not_found(seed: int, start: int) -> None:
    planted = markers.draw(8, random.Random(seed))
    part = planted[3][start : start + markers.RUN - 1]
    assert markers.found(f"{part} {part}", planted) == ()


def test_all_markers_in_a_text_are_found_in_the_order_in_which_they_were_planted() -> None:
    planted = markers.draw(5, random.Random(3))
    assert markers.found(f"{planted[4]}...{planted[1]}", planted) == (planted[1], planted[4])


@given(SEEDS, st.text(alphabet=markers.CHARACTERS, max_size=400))
def test_a_text_of_the_same_characters_that_knows_no_marker_has_none(seed: int, text: str) -> None:
    assert markers.found(text, markers.draw(8, random.Random(seed))) == ()


def test_the_bound_on_false_alarms_counts_places_and_runs() -> None:
    planted = markers.draw(8, random.Random(0))
    assert markers.false_alarm_bound(0, planted) == markers.false_alarm_bound(5, planted) == 0
    assert markers.false_alarm_bound(6, planted) == 8 * 7 / 2**30
    assert markers.false_alarm_bound(105, planted) == 100 * 8 * 7 / 2**30
    assert markers.false_alarm_bound(10**12, planted) == 1


def test_the_bound_holds_for_texts_drawn_at_random(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(markers, "RUN", 2)  # long runs are hit too seldom to be counted
    chance = random.Random(11)
    planted = markers.draw(1, chance, 6)
    texts = ["".join(chance.choices(markers.CHARACTERS, k=12)) for _ in range(20_000)]
    hits = sum(1 for text in texts if markers.found(text, planted))
    bound = markers.false_alarm_bound(12, planted)
    assert 0.8 * bound < hits / len(texts) <= bound


def test_the_characters_are_32_that_nobody_mixes_up_and_the_text_around_has_none_of_them() -> None:
    assert len(set(markers.CHARACTERS)) == len(markers.CHARACTERS) == 32
    assert not set("IO01") & set(markers.CHARACTERS)
    assert not set(markers.filler(500)) & set(markers.CHARACTERS)
