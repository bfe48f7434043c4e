"""A long step says that it began, that it still runs, and how it ended."""

from __future__ import annotations

import re
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from e2e import progress


@pytest.mark.parametrize(
    ("seconds", "read"),
    [(0, "0.0 s"), (4.24, "4.2 s"), (59.9, "59.9 s"), (60, "1:00"), (187.9, "3:07"), (671, "11:11"), (3600, "60:00")],
)
def test_a_duration_reads_as_people_write_it(seconds: float, read: str) -> None:
    assert progress.clock(seconds) == read


@given(st.floats(min_value=60, max_value=1e6))
def test_no_second_of_a_long_duration_is_lost(seconds: float) -> None:
    minutes, rest = progress.clock(seconds).split(":")
    assert len(rest) == 2
    assert int(minutes) * 60 + int(rest) == int(seconds)


def test_a_step_says_that_it_begins_and_how_long_it_took(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.step("building etcd", "about 1 min"):
        begun = capsys.readouterr()
    ended = capsys.readouterr()
    assert (begun.out, begun.err) == ("", "==> building etcd (about 1 min)\n")
    assert re.fullmatch(r"    building etcd: \d+\.\d s\n", ended.err)


def test_a_step_without_a_forecast_makes_none(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.step("building etcd"):
        assert capsys.readouterr().err == "==> building etcd\n"


@pytest.mark.parametrize("reason", [ValueError("broken"), KeyboardInterrupt()])
def test_a_step_that_fails_says_so_and_hands_the_reason_on(
    reason: BaseException, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(type(reason)) as caught, progress.step("building etcd"):
        raise reason
    said = capsys.readouterr().err.splitlines()
    assert caught.value is reason
    assert re.fullmatch(r"!!! building etcd failed after \d+\.\d s", said[-1])
    assert len(said) == 2


def test_a_long_step_says_that_it_still_runs_until_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    twice = threading.Event()

    def hear(text: str) -> None:
        said.append(text)
        if sum("so far" in line for line in said) == 2:
            twice.set()

    monkeypatch.setattr(progress, "HEARTBEAT_SECONDS", 0.01)
    monkeypatch.setattr(progress, "say", hear)
    threads = threading.active_count()
    with progress.step("building etcd"):
        assert twice.wait(10)
    assert re.fullmatch(r"    \.\.\. building etcd, \d+\.\d s so far", said[1])
    assert said[-1].startswith("    building etcd: ")
    assert threading.active_count() == threads  # nobody is left who could speak after the end


def test_a_short_step_has_no_heartbeat(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.step("building etcd"):
        pass
    assert "so far" not in capsys.readouterr().err
