"""What a soak takes for a fault, and what it reads out of logs; the pair itself is in `e2e/integrity/test_soak.py`."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from e2e.integrity import soak
from e2e.integrity.outcome import Verdict
from e2e.integrity.soak import Log, Passed
from e2e.integrity.traffic import Kind, Markers, Seen, drawn
from kvfence.domain.asking import Answer
from kvfence.verify import markers

CLEAN = {
    "found": {},
    "requestsFailed": 0,
    "requestsUnverified": 0,
    "pagesVerified": 9,
    "pagesExpected": 9,
    "pagesRetired": 0,
}


def passed(verdicts: dict[Verdict, int] | None = None, **changes: Any) -> Passed:
    seen = Seen(Counter({(Kind.PLAIN, verdict): count for verdict, count in (verdicts or {}).items()}), left=1)
    fields = {"seen": seen, "counts": {"decode": CLEAN}, "put_back": 1, "found_in_cache": 1, **changes}
    return Passed(**fields)


def test_nothing_is_wrong_with_what_should_be() -> None:
    assert passed({Verdict.RIGHT: 5}).faults() == []


@pytest.mark.parametrize(
    "one",
    [
        passed({Verdict.LEAKED: 1}),
        passed({Verdict.WRONG: 1}),
        passed(seen=Seen(left=1, unwanted=1)),
        passed(seen=Seen()),
        passed(put_back=0),
        passed(found_in_cache=0),
        passed(blown={"prefill": None, "decode": {"finding": "Contained"}}),
        *(
            passed(counts={"decode": CLEAN | {name: 1}})
            for name in ("requestsFailed", "requestsUnverified", "pagesRetired")
        ),
        passed(counts={"decode": CLEAN | {"found": {"ForeignPage": 1}}}),
        passed(counts={"decode": CLEAN | {"pagesVerified": 8}}),
    ],
)
def test_each_fault_is_named(one: Passed) -> None:
    assert len(one.faults()) == 1


def test_numbers_of_a_log_are_added_up_once_as_it_grows(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = Log(path, soak._PUT_BACK)
    path.write_bytes(b"KV cache pool is full. Retract requests. #retracted_reqs: 2, #new\nRetract requ")
    assert log.read_on() == 2
    with path.open("ab") as more:
        more.write(b"ests. #retracted_reqs: 3, #new\n")
    assert log.read_on() == 5
    assert log.read_on() == 5


def test_a_users_own_marker_is_no_leak_and_part_of_anothers_is() -> None:
    own, other = markers.draw(2, random.Random(1), 8)
    every = Markers()
    for marker in (own, other):
        every.add(marker)
    assert every.told(Answer(200, f"x{own}y", 1, 0.0, None, ""), own) == ()
    assert every.told(Answer(500, "", None, 0.0, None, f"x{other[1:7]}y"), own) == (other,)


def test_users_are_the_same_for_a_seed_and_each_has_a_marker_of_its_own() -> None:
    users = [list(drawn(50, 3, soak.CLEAN)) for _ in range(2)]
    assert users[0] == users[1]
    assert len({user.marker for user in users[0]}) == 50
    assert {user.kind for user in users[0]} == set(soak.CLEAN.shares)
