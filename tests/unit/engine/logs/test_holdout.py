"""Logs by somebody who had not seen the reader, and logs of real servers: each gives its answer, never another one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.engine.logs.reading import engines, seen

FIELD = Path(__file__).resolve().parents[3] / "field"
HOLDOUT = sorted((FIELD / "holdout").glob("*.log"))
REAL = {
    "sglang-0.5.19-old-prefill": [(True, 1024, 4096, 1018)],
    "sglang-0.5.19-old-decode": [(True, 4096, 4096, 4090)],
    "sglang-0.5.23-alone": [(True, 4096, 4096, 4090)],
    "sglang-0.5.23-alone-dp2": [(True, 4096, 4096, 4090)] * 2,
    "sglang-0.5.23-alone-short": [(True, 1024, 4096, 1018)],
    "sglang-0.5.23-apart-prefill": [(True, 1024, 4096, 1018)],
    "sglang-0.5.23-apart-decode": [(True, 4096, 4096, 4090)],
    "sglang-0.5.23-truncating-prefill": [(True, 1024, 4096, 1018)],
    "sglang-0.5.23-capped-prefill": [(True, 1024, 1024, 1018)],
    "sglang-0.5.23-capped-decode": [(True, 4096, 1024, 1018)],
    "sglang-0.5.23-failed-start-dp2": [(False, None, None, None)] * 2,
}

Answer = tuple[Any, ...]


def found(raw: bytes) -> list[Answer]:
    """Return what is read of each engine."""
    told = [(e.started, e.kv_pool_tokens, e.context_length, e.max_input_tokens) for e in engines(raw)]
    return sorted(told, key=str)


@pytest.mark.parametrize("path", HOLDOUT, ids=lambda path: path.name[:3])
def test_a_log_of_the_holdout_gives_the_answer_beside_it(path: Path) -> None:
    header, _, body = path.read_bytes().partition(b"# ---\n")
    line = next(line for line in header.decode().splitlines() if line.startswith("# expected.json: "))
    keys = ("started", "kvPoolTokens", "contextLength", "maxInputTokens")
    right = [tuple(one[key] for key in keys) for one in json.loads(line.partition(": ")[2])]
    assert found(body) == sorted(right, key=str)


def test_the_holdout_is_whole() -> None:
    assert len(HOLDOUT) == 20


@pytest.mark.parametrize("name", REAL)
def test_the_log_of_a_real_server_gives_its_figures(name: str) -> None:
    assert found((FIELD / "real" / f"{name}.log").read_bytes()) == REAL[name]


@pytest.mark.parametrize("name", ["smg-1.13.0", "sglang-router-0.3.2"])
def test_the_log_of_a_real_router_tells_of_no_engine(name: str) -> None:
    assert engines((FIELD / "real" / f"{name}.log").read_bytes()) == []
    assert seen((FIELD / "real" / f"{name}.log").read_bytes())


def test_no_log_of_a_real_server_is_left_out() -> None:
    logs = {path.stem for path in (FIELD / "real").glob("*.log")}
    assert logs == {*REAL, "smg-1.13.0", "sglang-router-0.3.2"}
