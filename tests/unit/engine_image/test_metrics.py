"""What the launcher says on /metrics, read back with Prometheus' own parser."""

from __future__ import annotations

from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kvfence_engine import metrics
from kvfence_engine.doorkeeper import Doorkeeper
from kvfence_engine.integrity.tally import Kind, Tally
from kvfence_engine.state import Blown, Door, Grant, Rank, Server
from tests.unit.engine_image.conftest import Engine

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def read(status: dict[str, Any]) -> Samples:
    families = list(text_string_to_metric_families(metrics.text(status).decode()))
    assert all(family.documentation for family in families)
    assert all(family.type in ("gauge", "counter") for family in families)
    samples = [sample for family in families for sample in family.samples]
    found = {
        (one.name.removeprefix("kvfence_engine_"), tuple(sorted(one.labels.items()))): one.value for one in samples
    }
    assert len(found) == len(samples)
    return found


def tally(verified: int) -> dict[str, Any]:
    made = Tally()
    made.requests_verified, made.pages_expected, made.pages_verified = verified, 2 * verified + 1, 2 * verified
    made.found[Kind.FOREIGN_PAGE] = 2
    made.found[Kind.COVERAGE] = 1
    made.drills[Kind.COVERAGE] = 3
    return made.as_dict()


def of(metric: str, samples: Samples) -> dict[tuple[str, ...], float]:
    return {tuple(value for _, value in labels): count for (name, labels), count in samples.items() if name == metric}


def test_an_engine_that_is_starting_says_that_its_door_is_closed(keeper: Doorkeeper) -> None:
    samples = read(keeper.status())
    assert of("door", samples) == {(door.value,): float(door is Door.CLOSED) for door in Door}
    assert of("cap_tokens", samples) == {(): 0.0}
    assert of("fuse_blown", samples) == {}
    assert of("pages_verified_total", samples) == {}


def test_the_counts_of_each_rank_are_said_apart(engine: Engine, keeper: Doorkeeper) -> None:
    engine.state.set_server(Server(1, "n", "0.5.23", ranks=2, serving=True))
    for index in (0, 1):
        engine.state.set_rank(Rank(index, 2, "n", 64, 16, 99, 99, integrity=tally(5 + index)))
    engine.state.set_grant(Grant(Door.OPEN, 1, 777))
    samples = read(keeper.status())
    assert of("door", samples)["open",] == 1.0
    assert of("cap_tokens", samples) == {(): 777.0}
    assert of("requests_verified_total", samples) == {("0",): 5.0, ("1",): 6.0}
    assert of("pages_expected_total", samples) == {("0",): 11.0, ("1",): 13.0}
    assert of("pages_verified_total", samples) == {("0",): 10.0, ("1",): 12.0}
    assert of("findings_total", samples) == {
        (kind, rank): count for rank in ("0", "1") for kind, count in (("ForeignPage", 2.0), ("Coverage", 1.0))
    }
    assert of("drills_found_total", samples) == {("Coverage", "0"): 3.0, ("Coverage", "1"): 3.0}


def test_every_count_of_a_rank_is_said(keeper: Doorkeeper, engine: Engine) -> None:
    counts = {name: 1 + place for place, name in enumerate(Tally().as_dict())}
    whole = {**counts, "found": {"Coverage": 90}, "drills": {"Coverage": 91}}
    engine.state.set_rank(Rank(0, 2, "n", 64, 16, 99, 99, integrity=whole))
    said = {count for (name, _), count in read(keeper.status()).items() if name.endswith("_total")}
    assert said == {90.0, 91.0} | {float(counts[name]) for name in counts if name not in ("found", "drills")}


@pytest.mark.parametrize("kind", ["Unverified", 'a"b\\c\nd{e}', "\u00e4"])
def test_a_blown_fuse_says_by_what_also_when_a_name_is_hostile(engine: Engine, keeper: Doorkeeper, kind: str) -> None:
    engine.state.set_grant(Grant(Door.TAINTED, blown=Blown("Escaped", kind, "rank 3", 1.0)))
    samples = read(keeper.status())
    assert of("fuse_blown", samples) == {("Escaped", kind): 1.0}
    assert of("door", samples)["tainted",] == 1.0


def test_an_engine_of_an_older_plugin_counts_nothing_it_does_not_know(engine: Engine, keeper: Doorkeeper) -> None:
    engine.state.set_rank(Rank(0, 2, "n", 64, 16, 99, 99, integrity={}))
    assert of("pages_verified_total", read(keeper.status())) == {("0",): 0.0}
