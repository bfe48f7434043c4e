"""What one process writes about the door, another reads, and only with the path of this boot."""

from __future__ import annotations

import multiprocessing
import os
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from kvfence_engine.state import (
    MAX_RANKS,
    Alarm,
    Blown,
    Door,
    Grant,
    Partner,
    Rank,
    Server,
    SharedState,
    fits,
    stored_at,
)

PARTNERS = (Partner("10.0.0.1:8901", "10.0.0.1:8998", "A" * 43 + "="), Partner("10.0.0.2:8901", "", "B" * 43 + "="))
BLOWN = Blown("Contained", "OtherBytes", "rank 0", 1.5)
GRANT = Grant(Door.CANARY, 3, 1000, ("10.0.0.1:8998",), ("ab" * 32,), PARTNERS, BLOWN)
SERVER = Server(7, "n", "0.5.23", ranks=2)


def rank(index: int) -> Rank:
    return Rank(index, 100 + index, f"nonce-{index}", 1024, 16, 1018, 1018)


def test_a_door_begins_closed_and_knows_nobody() -> None:
    state = SharedState.create()
    assert (state.grant(), state.server(), state.ranks(), state.fault()) == (Grant(), None, (), "")
    assert not Grant().door.is_final
    assert Grant().door is Door.CLOSED


def look(path: str, answer: Connection) -> None:
    state = SharedState.open(path)
    state.set_rank(rank(1))
    answer.send((state.grant(), state.server(), os.getppid() == stored_at(path)))


def test_another_process_reads_and_writes_its_own_part() -> None:
    state = SharedState.create()
    state.set_grant(GRANT)
    state.set_server(SERVER)
    state.set_rank(rank(0))
    here, there = multiprocessing.Pipe()
    other = multiprocessing.get_context("fork").Process(target=look, args=(state.path, there))
    other.start()
    assert here.poll(10)
    assert here.recv() == (GRANT, SERVER, True)
    other.join()
    assert state.ranks() == (rank(0), rank(1))


def test_the_newest_grant_is_read_by_who_read_one_before() -> None:
    state = SharedState.create()
    reader = SharedState.open(state.path)
    for epoch in (1, 2, 3):
        state.set_grant(Grant(Door.OPEN, epoch, 900))
        assert reader.grant().epoch == epoch


def test_every_rank_fits_and_no_more() -> None:
    state = SharedState.create()
    state.set_rank(rank(MAX_RANKS - 1))
    assert state.ranks() == (rank(MAX_RANKS - 1),)
    with pytest.raises(ValueError, match="not below"):
        state.set_rank(rank(MAX_RANKS))


def test_each_rank_has_an_alarm_of_its_own_and_nothing_found_before_it_sounds() -> None:
    state = SharedState.create()
    longest = Alarm(10**9, "K" * 32, "K" * 32, "K" * 32, "h" * 253 + ":65535")
    state.set_alarm(MAX_RANKS - 1, longest)
    assert [state.alarm(index) for index in (0, MAX_RANKS - 2, MAX_RANKS - 1)] == [Alarm(), Alarm(), longest]
    assert state.ranks() == ()


def test_a_grant_leaves_room_for_the_reason_to_take_it_back() -> None:
    state = SharedState.create()
    most = [Grant(passes=tuple(f"{n:064x}" for n in range(count))) for count in (950, 972)]
    assert [fits(grant) for grant in most] == [True, False]
    with pytest.raises(ValueError, match="room to take it back"):
        state.set_grant(most[1])
    for grant in (most[0], replace(most[0], blown=Blown("Contained", "K" * 64, "h" * 300, 1.5))):
        state.set_grant(grant)
        assert state.grant() == grant


def test_a_long_reason_is_cut_and_stays_text() -> None:
    state = SharedState.create()
    state.set_fault("ä" * 5000)
    assert set(state.fault()) == {"ä"}


def test_only_a_launcher_s_path_says_whose_it_is(tmp_path: Path) -> None:
    for path in ("", "/proc/self", f"{tmp_path}/state", "/proc/x/fd/1"):
        with pytest.raises(ValueError, match=r"path|invalid literal"):
            stored_at(path)
