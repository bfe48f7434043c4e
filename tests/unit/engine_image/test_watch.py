"""The launcher sees what a rank found before the engine does anything about it, and an engine unwatched ends."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from kvfence_engine import watch
from kvfence_engine.doorkeeper import Doorkeeper
from kvfence_engine.fuse import Fuse, Trip
from kvfence_engine.integrity.classes import Finding
from kvfence_engine.state import Alarm, Blown, Door, Server
from kvfence_engine.watch import Watch
from tests.unit.engine_image.conftest import BOOT, Engine

PACKAGE = str(Path(watch.__file__).resolve().parents[1])
PEER = "10.0.0.1:8998"


class Watching:
    """A watch over two ranks, and whom it told what."""

    def __init__(self, engine: Engine, keeper: Doorkeeper) -> None:
        self.state = engine.state
        self.told: list[Trip] = []
        self.telling = threading.Thread(target=time.sleep, args=(0.3,), daemon=True)
        self.watch = Watch(engine.state, Fuse(2, 60), keeper, self.tell)
        self.state.set_server(Server(1, BOOT.nonces[0], "0.5.23", ranks=2))

    def tell(self, trip: Trip) -> list[threading.Thread]:
        self.told.append(trip)
        self.telling.start()
        return [self.telling]

    @property
    def blown(self) -> Blown:
        grant = self.state.grant()
        assert grant.door is Door.TAINTED
        assert grant.blown is not None
        return grant.blown

    def what(self) -> tuple[str, str, str]:
        return self.blown.finding, self.blown.kind, self.blown.source


@pytest.fixture
def watching(engine: Engine, keeper: Doorkeeper) -> Watching:
    return Watching(engine, keeper)


def test_nothing_is_seen_where_nothing_was_found(watching: Watching) -> None:
    assert not watching.watch.look(0)
    watching.state.set_alarm(0, Alarm(contained=1, kind="OtherBytes"))
    assert not watching.watch.look(1)
    assert watching.state.grant().door is Door.CLOSED


@pytest.mark.parametrize("rank", [0, 1])
def test_what_escaped_in_any_rank_taints_and_is_told_once(watching: Watching, rank: int) -> None:
    watching.state.set_alarm(rank, Alarm(escaped="ForeignPage", peer=PEER))
    assert watching.watch.look(0)
    assert watching.what() == ("Escaped", "ForeignPage", f"rank {rank}")
    watching.state.set_alarm(1 - rank, Alarm(escaped="HookMissing"))
    assert watching.watch.look(1)
    assert watching.told == [Trip(Finding.ESCAPED, "ForeignPage", PEER)]
    assert watching.blown.kind == "ForeignPage"


def test_what_is_contained_taints_without_a_word_and_what_escapes_then_is_seen(watching: Watching) -> None:
    for rank in (0, 1):
        watching.state.set_alarm(rank, Alarm(contained=1, kind="OtherBytes"))
    assert not watching.watch.look(0)
    assert watching.what() == ("Contained", "OtherBytes", "rank 1")
    assert watching.told == []
    watching.state.set_alarm(0, Alarm(contained=1, kind="OtherBytes", escaped="ForeignPage", peer=PEER))
    assert watching.watch.look(1)
    assert watching.what() == ("Escaped", "ForeignPage", "rank 0")
    assert [trip.peer for trip in watching.told] == [PEER]


def test_after_a_partner_s_word_what_escapes_here_is_told_still(watching: Watching, keeper: Doorkeeper) -> None:
    keeper.blow(Finding.ESCAPED, "ForeignPage", "partner 10.0.0.9:8901")
    assert not watching.watch.look(0)
    assert watching.told == [], "what a partner said is not told on"
    watching.state.set_alarm(1, Alarm(escaped="HookMissing"))
    assert watching.watch.look(1)
    assert len(watching.told) == 1
    assert watching.blown.source == "partner 10.0.0.9:8901", "what came first stays"


@pytest.mark.parametrize("raw", [b"not JSON", b"[]", b'{"contained": "x"}', b'{"unknown": 1}', b"\xff"])
def test_a_rank_that_cannot_be_read_taints_and_hides_no_other(watching: Watching, raw: bytes) -> None:
    watching.state._alarms[0].write(raw)
    assert not watching.watch.look(0)
    assert watching.what() == ("Contained", "UnreadableAlarm", "rank 0")
    watching.state.set_alarm(1, Alarm(escaped="ForeignPage"))
    assert watching.watch.look(1)
    assert watching.what() == ("Escaped", "ForeignPage", "rank 1")


def test_a_record_without_a_whole_value_taints(watching: Watching) -> None:
    record = watching.state._alarms[1]
    for cell in (0, 1):
        start = record._start(cell)
        record._memory[start : start + 16] = b"\xff" * 16
    assert not watching.watch.look(0)
    assert watching.what() == ("Contained", "UnreadableAlarm", "rank 1")


def test_a_watch_that_was_started_needs_no_second(watching: Watching) -> None:
    watching.watch.start()
    time.sleep(0.1)
    found = time.monotonic()
    watching.state.set_alarm(1, Alarm(escaped="ForeignPage"))
    while watching.state.grant().door is not Door.TAINTED:
        assert time.monotonic() - found < 1
        time.sleep(0.002)


def test_an_engine_that_ends_with_an_alarm_has_its_partners_told_before_it_is_gone(watching: Watching) -> None:
    watching.state.set_alarm(0, Alarm(escaped="ForeignPage"))
    watching.watch.end()
    assert len(watching.told) == 1
    assert not watching.telling.is_alive(), "it waited"


def test_partners_that_hang_do_not_keep_it_for_ever(watching: Watching, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "TOLD_SECONDS", 0.05)
    watching.state.set_alarm(0, Alarm(escaped="ForeignPage"))
    watching.watch.end()
    assert watching.telling.is_alive()


FAILS = """
import time
from kvfence_engine.fuse import Fuse
from kvfence_engine.state import Server, SharedState
from kvfence_engine.watch import Watch

class Broken(Fuse):
    def see(self, now, rank, alarm):
        raise RuntimeError("no more memory")

state = SharedState.create()
state.set_server(Server(1, "n", "0.5.23", ranks=1))
Watch(state, Broken(), None, None).start()
time.sleep(20)
"""


def test_a_launcher_whose_watch_fails_ends_and_the_engine_with_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FAILS],
        check=False,
        capture_output=True,
        text=True,
        timeout=15,
        env=dict(os.environ) | {"PYTHONPATH": PACKAGE},
    )
    assert done.returncode == 78
    assert done.stderr == "kvfence-engine: launcher: the watch over the ranks failed: RuntimeError: no more memory\n"
