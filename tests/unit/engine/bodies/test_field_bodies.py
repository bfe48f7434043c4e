"""The bodies that people had posted, with the answers written beside them in INDEX.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from kvfence.api.v1alpha1.pool import RoleType
from kvfence.domain.diagnosis.seen import EngineSeen, Product
from kvfence.engine.bodies import read

FOLDER = Path(__file__).resolve().parents[3] / "field" / "server_info"

ANSWERS = {  # pool, context, longest prompt + 1, fits, role
    "001": (326223, 163840, 163834, True, RoleType.PREFILL),
    "002": (1206208, 262144, 262138, True, None),
    "003": (20480, None, None, None, None),
    "004": (20480, None, None, None, None),
    "005": (4096, None, None, None, RoleType.UNIFIED),
    "006": (None, 262144, None, None, None),
    "007": (None, None, None, None, None),
    "008": (1000000, None, None, None, None),
    "009": (1024, 128, 122, True, None),
    "010": (284928, 1048576, 284922, False, RoleType.PREFILL),
}


def field(number: str) -> EngineSeen:
    (path,) = FOLDER.glob(f"{number}-*.json")
    found = read(path.read_bytes(), path.name)
    assert found is not None
    (engine,) = found
    assert isinstance(engine, EngineSeen)
    return engine


def test_every_body_of_the_field_has_an_answer_here() -> None:
    assert {path.name[:3] for path in FOLDER.glob("*.json")} == set(ANSWERS)


@pytest.mark.parametrize("number", ANSWERS)
def test_a_body_of_the_field_gives_the_answer_beside_it(number: str) -> None:
    engine = field(number)
    told = (
        engine.kv_pool_tokens,
        engine.context_length,
        engine.told_input_limit,
        engine.context_fits,
        engine.role,
    )
    assert told == ANSWERS[number]
    assert engine.product is Product.SGLANG
    assert engine.started is True
    assert engine.keys_shown == ()


def test_what_was_worked_out_is_said_to_be() -> None:
    assert any("max_req_input_len" in note for note in field("001").notes)
    assert not any("max_req_input_len" in note for note in field("010").notes)


@pytest.mark.parametrize(("number", "untold"), [("005", 1), ("010", 31)])
def test_ranks_of_which_nothing_is_told_are_counted_and_not_made_up(number: str, untold: int) -> None:
    engine = field(number)
    assert (engine.rank, engine.ranks_untold) == (0, untold)
    assert any("/v1/loads" in note for note in engine.notes)


def test_settings_are_kept_by_their_names() -> None:
    assert field("001").settings["disaggregation_transfer_backend"] == "nixl"
    assert field("001").settings["api_key"] is None
    assert field("002").version == "0.0.0.dev1+g70df09b83"
