from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvfence.cli.canary.statement import SURE, statement
from kvfence.verify.canary.detection import Probing, detected


@pytest.mark.parametrize(
    ("probing", "words"),
    [
        pytest.param(
            Probing(300), "A leak of 1 in 100 requests would have been seen with p = 0.95.", id="three hundred probes"
        ),
        pytest.param(
            Probing(10, 4),
            "A leak of 1 in 13 requests would have been seen with p = 0.96; at least 0.55 if requests at the same time "
            "leak together.",
            id="probes in rounds",
        ),
        pytest.param(
            Probing(1, 1, 0.5),
            "Even a leak in every request would have been seen with p = 0.50 only.",
            id="one poor probe",
        ),
        pytest.param(Probing(1), "A leak of 1 in 1 requests would have been seen with p = 1.00.", id="one good probe"),
    ],
)
def test_it_says_how_small_a_leak_is_seen(probing: Probing, words: str) -> None:
    assert statement(probing) == words


@given(st.builds(Probing, rounds=st.integers(1, 5000), at_once=st.integers(1, 8), sensitivity=st.floats(0.05, 1.0)))
def test_it_never_says_more_than_is_so(probing: Probing) -> None:
    said = re.match(r"A leak of 1 in ([\d,]+) requests", statement(probing))
    if said is None:
        assert detected(probing, 1.0) < SURE
    else:
        assert detected(probing, 1 / int(said[1].replace(",", ""))) >= SURE - 1e-9
