"""How canaries name their requests."""

from __future__ import annotations

from typing import Any

import pytest

from kvfence_engine.canaries import drilled, is_drill, is_ours, wants_receipt

NAMED: dict[str, tuple[object, bool, bool, bool, str | None]] = {
    # id, ours, asks for a fault, gets a receipt, which fault
    "nothing": (None, False, False, False, None),
    "a user's": ("chatcmpl-1", False, False, False, None),
    "inside": ("x-kvfence-canary-1", False, False, False, None),
    "other case": ("KVFENCE-canary-1", False, False, False, None),
    "a canary": ("kvfence-canary-1", True, False, True, None),
    "neither": ("kvfence-other", True, False, False, None),
    "the prefix alone": ("kvfence-", True, False, False, None),
    "a drill": ("kvfence-drill-Coverage-9", True, True, True, "Coverage"),
    "random text with dashes": ("kvfence-drill-Coverage-9-8", True, True, True, "Coverage"),
    "a drill without anything random": ("kvfence-drill-Coverage", True, True, True, None),
    "a drill with nothing after the dash": ("kvfence-drill-Coverage-", True, True, True, None),
    "a drill of no kind": ("kvfence-drill--9", True, True, True, None),
    "a number": (7, False, False, False, None),
    "a list": (["kvfence-drill-Coverage-9"], True, True, False, None),
    "the second of a list": (["a", "kvfence-canary-1"], True, False, False, None),
    "a list of other things": ([None, 7, ["kvfence-canary-1"], {}], False, False, False, None),
    "an object": ({"kvfence-canary-1": 1}, False, False, False, None),
}


@pytest.mark.parametrize(("rid", "ours", "drill", "receipt", "kind"), NAMED.values(), ids=NAMED.keys())
def test_what_an_id_asks_for(rid: Any, ours: bool, drill: bool, receipt: bool, kind: str | None) -> None:
    assert (is_ours(rid), is_drill(rid), wants_receipt(rid), drilled(rid)) == (ours, drill, receipt, kind)
