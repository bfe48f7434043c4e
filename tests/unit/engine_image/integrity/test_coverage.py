"""Coverage: what prefill handed over against what decode made room for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kvfence_engine.integrity.coverage import Mismatch, covered, judge
from kvfence_engine.integrity.handover import HandOver

WHOLE = HandOver(room=1, start=0, end=40, tokens=40, digest=9, proof=0, generation=3)
SUFFIX = replace(WHOLE, start=16)

CASES = {
    "the whole prompt was handed over": (WHOLE, 0, None),
    "all that decode lacked was handed over": (SUFFIX, 16, None),
    "prefill said nothing": (None, 0, Mismatch.NO_HAND_OVER),
    "prefill cut the prompt and handed over all that was left": (
        replace(WHOLE, tokens=39, end=39, digest=8),
        0,
        Mismatch.TOKENS_DIFFER,
    ),
    "prefill has a longer prompt and handed over all of it": (
        replace(WHOLE, tokens=41, end=41, digest=8),
        0,
        Mismatch.TOKENS_DIFFER,
    ),
    "prefill has a shorter prompt and handed over as much as decode wanted": (
        replace(WHOLE, tokens=39),
        0,
        Mismatch.TOKENS_DIFFER,
    ),
    "prefill has another prompt of the same length": (replace(WHOLE, digest=8), 0, Mismatch.OTHER_PROMPT),
    "prefill has another prompt of the same length, with a greater digest": (
        replace(WHOLE, digest=10),
        0,
        Mismatch.OTHER_PROMPT,
    ),
    "prefill has another prompt and left out a prefix": (replace(SUFFIX, digest=8), 0, Mismatch.OTHER_PROMPT),
    "prefill has another prompt and handed over a part": (replace(WHOLE, digest=8, end=9), 0, Mismatch.OTHER_PROMPT),
    "prefill left out a prefix that decode lacks": (SUFFIX, 0, Mismatch.OTHER_START),
    "prefill wrote into the prefix that decode has": (WHOLE, 16, Mismatch.OTHER_START),
    "prefill left out a prefix and the end": (replace(SUFFIX, end=39), 0, Mismatch.OTHER_START),
    "the last token is missing": (replace(WHOLE, end=39), 0, Mismatch.HANDED_SHORT),
    "nothing was handed over": (replace(WHOLE, end=0), 0, Mismatch.HANDED_SHORT),
    "one token more than the prompt was handed over": (replace(WHOLE, end=41), 0, Mismatch.HANDED_LONG),
}


@pytest.mark.parametrize(("handed", "start", "wanted"), CASES.values(), ids=CASES.keys())
def test_a_hand_over_is_judged(handed: HandOver | None, start: int, wanted: Mismatch | None) -> None:
    assert judge(handed, tokens=40, start=start, digest=9) is wanted


def test_every_mismatch_has_a_case() -> None:
    assert {wanted for _, _, wanted in CASES.values()} == {None, *Mismatch}


@pytest.mark.parametrize("name", Mismatch.__members__)
def test_a_mismatch_is_told_by_its_name(name: str) -> None:
    assert Mismatch[name].value == name.title().replace("_", "")


def test_it_is_covered_up_to_where_prefill_ended() -> None:
    assert covered(replace(WHOLE, end=39)) == 39
    assert covered(None) == 0
