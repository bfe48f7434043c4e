"""What is read off a frozen template's command line."""

from __future__ import annotations

from typing import Any

import pytest

from kvfence.domain.templates import flag


def template(*args: str) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "beside", "args": ["--mode", "no"]}, {"name": "engine", "args": [*args]}]}}


@pytest.mark.parametrize(
    ("args", "found"),
    [
        (("--mode", "prefill"), "prefill"),
        (("--a", "1", "--mode", "prefill", "--b", "2"), "prefill"),
        (("--mode", "prefill", "--mode", "decode"), "decode"),
        (("--model", "x"), None),
        (("--mode",), None),
        ((), None),
    ],
)
def test_the_word_behind_a_flag_is_found_and_the_last_one_counts(args: tuple[str, ...], found: str | None) -> None:
    assert flag(template(*args), "--mode") == found


@pytest.mark.parametrize(
    "odd",
    [{}, {"spec": None}, {"spec": {}}, {"spec": {"containers": None}}, {"spec": {"containers": [{"name": "engine"}]}}],
)
def test_a_template_without_such_a_container_has_no_flags(odd: dict[str, Any]) -> None:
    assert flag(odd, "--mode") is None
