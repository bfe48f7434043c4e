"""How the launcher tells the processes of an engine which defences are on."""

from __future__ import annotations

import json
from itertools import product

import pytest

from kvfence_engine.integrity.modes import Mode, Modes, decode, encode

ON = {"page_tagging": "Enforce", "page_scrubbing": "Observe", "coverage": "Disabled"}


@pytest.mark.parametrize("chosen", list(product(Mode, repeat=3)))
def test_what_is_encoded_is_what_is_read(chosen: tuple[Mode, Mode, Mode]) -> None:
    modes = Modes(*chosen)
    assert decode(encode(modes)) == modes
    assert modes.any_on == any(mode is not Mode.DISABLED for mode in chosen)
    assert modes.any_enforced == (Mode.ENFORCE in chosen)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        json.dumps({**ON, "more": "Enforce"}),
        json.dumps({name: ON[name] for name in ("page_tagging", "coverage")}),
        json.dumps({**ON, "coverage": "Enforced"}),
        json.dumps({**ON, "coverage": None}),
    ],
    ids=["nothing", "null", "a list", "one too many", "one too few", "no mode", "no text"],
)
def test_what_is_no_choice_of_modes_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="does not name one mode for each defence"):
        decode(text)
