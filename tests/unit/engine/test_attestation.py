"""What ranks attest is read when it is of the right type, and is otherwise not said at all."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvfence.domain.engines import Attested, Blown, Partner
from kvfence.engine.attestation import COUNTS, MAX_KINDS, MODES, attested, draw, repeats
from kvfence.engine.door import parse_status
from kvfence_engine.integrity.modes import Mode, Modes
from kvfence_engine.integrity.tally import Kind, Tally
from tests.unit.engine.test_door import RANK, SAID, raw

INTEGRITY: dict[str, Any] = {
    "version": "0.1.0",
    "selfTest": "passed",
    **dict.fromkeys(MODES, "Enforce"),
    **dict.fromkeys(COUNTS, 7),
    "found": {"ForeignPage": 2, "Coverage": 0},
    "drills": {},
}
NONCE = "ab" * 16


def said(**changes: Any) -> Attested | None:
    return attested({"integrity": INTEGRITY | changes, "attested": [NONCE]})


def test_what_a_rank_attests_is_read() -> None:
    assert said() == Attested(
        "0.1.0", True, dict.fromkeys(MODES, "Enforce"), (NONCE,), dict.fromkeys(COUNTS, 7), {"ForeignPage": 2}
    )


def test_the_words_are_those_of_the_engine() -> None:
    told = Tally().as_dict()
    assert set(COUNTS) <= set(told)
    assert {"found", "drills"} == set(told) - set(COUNTS)
    assert len(Modes.__dataclass_fields__) == len(MODES)
    assert "Enforce" in list(Mode)
    assert len(Kind) < MAX_KINDS


@pytest.mark.parametrize("name", [*MODES, *COUNTS, "version", "found"])
@pytest.mark.parametrize("value", [None, True, -1, 2**60, 1.5, [], "x" * 1000, {"a": "b"}, {"x" * 1000: 1}, "a\x00"])
def test_of_another_type_nothing_is_attested(name: str, value: object) -> None:
    assert said(**{name: value}) is None


@pytest.mark.parametrize("value", ["", "Passed", None, True, 1])
def test_only_one_word_says_that_the_self_test_passed(value: object) -> None:
    found = said(selfTest=value)
    assert found is not None
    assert not found.self_tested


def test_more_kinds_than_there_are_is_no_evidence() -> None:
    assert said(found={f"K{number}": 1 for number in range(MAX_KINDS + 1)}) is None


@pytest.mark.parametrize("rank", [{}, {"integrity": None, "attested": []}, {"integrity": INTEGRITY}, {"attested": [1]}])
def test_a_rank_of_an_older_plugin_attests_nothing(rank: dict[str, object]) -> None:
    assert attested(rank) is None


@given(st.dictionaries(st.text(), st.recursive(st.none() | st.integers() | st.text(), st.lists, max_leaves=5)))
def test_whatever_it_says_nothing_is_raised(value: dict[str, object]) -> None:
    attested(value)
    attested({"integrity": value, "attested": []})


def test_every_rank_has_to_repeat_the_nonce() -> None:
    one, other = said(), attested({"integrity": INTEGRITY, "attested": []})
    assert repeats(NONCE, (one, one))
    assert not repeats(NONCE, (one, other))
    assert not repeats(NONCE, (one, None))
    assert not repeats(NONCE, ())
    assert draw() != draw()


def test_a_status_tells_key_partners_fuse_and_attestations() -> None:
    partner = {"control": "10.0.0.1:8901", "peer": "", "key": "k" * 44}
    blown = {"finding": "Escaped", "kind": "ForeignPage", "source": "rank 0", "time": 1.5}
    ranks = [one | {"integrity": INTEGRITY, "attested": [NONCE]} for one in SAID["ranks"]]
    status = parse_status(raw(key="k" * 44, partners=[partner], blown=blown, ranks=ranks))
    assert (status.key, status.partners) == ("k" * 44, (Partner("10.0.0.1:8901", "", "k" * 44),))
    assert status.blown == Blown("Escaped", "ForeignPage", "rank 0")
    assert [rank.attested for rank in status.ranks] == [said(), said()]


@pytest.mark.parametrize(
    "changes",
    [
        {"key": ""},
        {"key": 1},
        {"key": None},
        {"partners": {}},
        {"partners": None},
        {"partners": [1]},
        {"partners": [{"control": "", "peer": "", "key": "k"}]},
        {"partners": [{"control": "a:1", "peer": None, "key": "k"}]},
        {"partners": [{"control": "a:1", "peer": ""}]},
        {"blown": 1},
        {"blown": {}},
        {"blown": {"finding": "Escaped", "kind": "", "source": "rank 0"}},
        {"blown": {"finding": "Escaped", "kind": "x" * 1000, "source": "rank 0"}},
    ],
)
def test_a_status_that_tells_something_else_is_none(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"key|partner|blown"):
        parse_status(raw(**changes))


def test_a_status_of_256_ranks_fits() -> None:
    big = RANK | {"integrity": INTEGRITY | {"found": dict.fromkeys(list(Kind), 2**50)}, "attested": [NONCE] * 8}
    assert len(json.dumps(SAID | {"ranks": [big] * 256})) < 1_000_000
