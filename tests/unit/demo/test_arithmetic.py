"""The cap by hand is the operator's, whatever the settings."""

from __future__ import annotations

from typing import Any

import pytest

from e2e.demo.arithmetic import flag, worked_out
from e2e.demo.view import view
from tests.unit.demo.api_objects import pool


def test_the_first_example_is_capped_at_1003_and_each_role_says_why() -> None:
    done = worked_out(view(pool("ContextFits"), []))
    assert done.tokens == 1003
    assert done.lines == (
        "prefill  1,024 - 2 % headroom = 1,003 <- the smallest: the cap",
        "decode   4,096 - 512 for requests under way - 1 page of 1 - 2 % headroom = 3,511",
    )


@pytest.mark.parametrize(
    ("context", "args", "tokens"),
    [
        ({}, ["--page-size=16"], 992),
        ({}, ["--page-size", "16"], 992),
        ({"headroomPercent": 0}, [], 1018 + 6),
        ({"reserveTokens": 100}, [], 903),
        ({"requestedTokens": 600}, [], 600),
        ({}, ["--num-reserved-decode-tokens=3500"], 583),
    ],
    ids=str,
)
def test_settings_of_the_pool_are_in_the_sum(context: dict[str, Any], args: list[str], tokens: int) -> None:
    made = pool("ContextFits")
    made["spec"]["contextLength"] |= context
    made["spec"]["engine"]["sglang"]["args"] = args
    assert worked_out(view(made, [])).tokens == tokens


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        ([], None),
        (["--a=1"], "1"),
        (["--a", "2"], "2"),
        (["--a=1", "--a", "2"], "2"),
        (["--ab=1"], None),
        (["--a"], None),
    ],
    ids=str,
)
def test_a_flag_is_read_as_sglang_reads_it(arguments: list[str], value: str | None) -> None:
    assert flag(arguments, "--a") == value
