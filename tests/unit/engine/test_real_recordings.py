"""What real servers said and logged is read as tests/field/real/INDEX.md has it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from kvfence.domain.diagnosis.seen import EngineSeen, RouterSeen
from kvfence.engine import bodies, logs

REAL = Path(__file__).resolve().parents[2] / "field" / "real"
ROW = re.compile(
    r"^\| (sglang-[\w.-]+) \| (\w+) \| ([\d.]+) \| ([\d, ]*) ?"
    r"\| (\d+)[^|]*\| (\d+) \| (\d+) \| (yes|no) \|"
)


@dataclass(frozen=True)
class Right:
    """What stands in the index of one server."""

    stem: str
    role: str
    version: str
    ranks: tuple[int | None, ...]
    figures: tuple[int, int, int]
    """Pool, context and input limit, in tokens."""
    fits: bool


def index() -> list[Right]:
    found = []
    for line in (REAL / "INDEX.md").read_text().splitlines():
        if row := ROW.match(line):
            stem, role, version, ranks, pool, context, limit, fits = row.groups()
            told = tuple(int(rank) for rank in ranks.split(",") if rank.strip()) or (None,)
            found.append(Right(stem, role, version, told, (int(pool), int(context), int(limit)), fits == "yes"))
    return found


INDEX = index()


def agrees(engine: EngineSeen, right: Right) -> None:
    assert (engine.kv_pool_tokens, engine.context_length, engine.max_input_tokens) == right.figures
    assert (engine.context_fits, engine.role) == (right.fits, right.role.capitalize())


def test_the_index_is_read() -> None:
    assert len(INDEX) >= 10


@pytest.mark.parametrize("right", INDEX, ids=lambda right: right.stem)
def test_what_a_server_answers_is_read_rightly(right: Right) -> None:
    seen = bodies.read((REAL / f"{right.stem}-server_info.json").read_bytes(), "it")
    assert seen is not None
    engines = [one for one in seen if isinstance(one, EngineSeen)]
    assert [one.rank for one in engines] == [*right.ranks]
    for engine in engines:
        agrees(engine, right)
        assert engine.version == right.version


@pytest.mark.parametrize("right", INDEX, ids=lambda right: right.stem)
def test_what_a_server_logs_is_read_rightly(right: Right) -> None:
    with (REAL / f"{right.stem}.log").open("rb") as stream:
        engines = [one for one in logs.read(stream, "it") if isinstance(one, EngineSeen)]
    assert [one.rank for one in engines] == [*right.ranks]
    for engine in engines:
        agrees(engine, right)
        assert engine.started is not False


def test_a_start_that_failed_is_one() -> None:
    with (REAL / "sglang-0.5.23-failed-start-dp2.log").open("rb") as stream:
        engines = [one for one in logs.read(stream, "it") if isinstance(one, EngineSeen)]
    assert [(one.rank, one.started, one.kv_pool_tokens) for one in engines] == [(0, False, None), (1, False, None)]


def test_a_key_that_a_server_tells_is_named_and_not_kept() -> None:
    raw = (REAL / "sglang-0.5.23-alone-short-server_info.json").read_bytes()
    (engine,) = bodies.read(raw, "it") or ()
    assert isinstance(engine, EngineSeen)
    assert "api_key" in engine.keys_shown
    assert "key-of-a-test" not in repr([*engine.settings.items(), engine.notes])


@pytest.mark.parametrize("router", ["smg-1.13.0", "sglang-router-0.3.2"])
def test_the_workers_of_a_router_are_read(router: str) -> None:
    (seen,) = bodies.read((REAL / f"{router}-workers.json").read_bytes(), "it") or ()
    assert isinstance(seen, RouterSeen)
    assert len(seen.workers) == 4
