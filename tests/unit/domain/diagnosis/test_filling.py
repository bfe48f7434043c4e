"""One engine by two sources: the better one counts, and nothing that only the other tells is forgotten."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from kvfence.api.v1alpha1.pool import RoleType
from kvfence.domain.diagnosis.filling import filled
from kvfence.domain.diagnosis.seen import EngineSeen, Product

EMPTY = EngineSeen("s")
SAMPLES: dict[str, Any] = {
    "rank": 3, "product": Product.VLLM, "version": "0.5.23", "started": False, "role": RoleType.DECODE,
    "kv_pool_tokens": 7, "context_length": 8, "told_input_limit": 2, "page_size": 16, "reserved_decode_tokens": 0,
    "settings": {"a": 1}, "environment": {"B": "2"}, "keys_shown": ("api_key",), "notes": ("Why.",), "ranks_untold": 5,
    "pair": "p,d",
}  # fmt: skip
"""A value for each fact that a source may tell; a new field wants one here."""
OF_THE_FIRST = {"source", "answered"}


def test_every_fact_has_a_sample() -> None:
    assert SAMPLES.keys() | OF_THE_FIRST == {one.name for one in fields(EngineSeen)}


@pytest.mark.parametrize("name", SAMPLES)
def test_what_one_does_not_tell_comes_from_the_other(name: str) -> None:
    other = replace(EMPTY, **{name: SAMPLES[name]})
    assert getattr(filled(EMPTY, other), name) == SAMPLES[name]
    assert getattr(filled(other, EMPTY), name) == SAMPLES[name]


def test_what_the_first_tells_counts_also_where_it_is_none_or_nothing() -> None:
    first = EngineSeen("s", started=False, reserved_decode_tokens=0, settings={"a": None}, answered=True)
    other = EngineSeen("t", started=True, reserved_decode_tokens=512, settings={"a": 1, "b": 2}, notes=("n",))
    both = filled(first, other)
    assert (both.source, both.started, both.reserved_decode_tokens, both.answered) == ("s", False, 0, True)
    assert both.settings == {"a": None, "b": 2}
    assert both.notes == ("n",)
