"""Receipts are read as the engine writes them, and anything else is none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kvfence.domain.receipts import Receipt
from kvfence.engine.receipts import MAX_RECEIPTS, parse_receipts
from kvfence_engine.integrity import receipts as engine

WRITTEN = engine.Receipt("kvfence-canary-1", 2**62 + 1, "decode", 1, 40, 3, 3, (0, 40, 40), 4096, True, {})
SAID = WRITTEN.as_dict()


def raw(*said: Any) -> bytes:
    return json.dumps({"receipts": list(said)}).encode()


def test_what_an_engine_keeps_is_read() -> None:
    first = engine.Receipt("kvfence-canary-1", 7, "prefill", 0, 40, 3, 2, None, 0, False, {"ForeignPage": 1})
    assert parse_receipts(raw(SAID, first.as_dict())) == (
        Receipt(7, "prefill", 0, 40, 3, 2, None, 0, False, {"ForeignPage": 1}),
        Receipt(2**62 + 1, "decode", 1, 40, 3, 3, (0, 40, 40), 4096, True, {}),
    )


@pytest.mark.parametrize("name", [name for name in SAID if name not in {"rid", "handedOver"}])
@pytest.mark.parametrize("value", [None, -1, 2**64, 1.5, "x", [], [1]])
def test_a_receipt_with_a_field_of_another_type_is_none(name: str, value: object) -> None:
    with pytest.raises(ValueError, match="receipt"):
        parse_receipts(raw(SAID | {name: value}))


@pytest.mark.parametrize("over", [[], 1, {}, {"start": 0, "end": -1, "tokens": 1}, {"start": 0, "end": 1}])
def test_what_was_handed_over_is_three_numbers(over: object) -> None:
    with pytest.raises(ValueError, match=r"receipt|handedOver"):
        parse_receipts(raw(SAID | {"handedOver": over}))


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b'{"receipts": {}}', raw(), raw(1), raw(*[SAID] * (MAX_RECEIPTS + 1))]
)
def test_anything_else_is_no_list_of_receipts(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"receipt|answer"):
        parse_receipts(body)
