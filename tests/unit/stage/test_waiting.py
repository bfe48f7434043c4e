"""Waiting ends when the condition holds, when it is too late, or when there is nothing to wait for any more."""

from __future__ import annotations

import time

import pytest

from e2e.cluster.waiting import wait_for
from e2e.errors import StageError


def test_waiting_ends_as_soon_as_the_condition_holds() -> None:
    answers = iter([False, False, True])
    wait_for("it", lambda: next(answers), 60, every=0.001)
    assert list(answers) == []


def test_a_condition_that_does_not_hold_in_time_is_named_with_the_time() -> None:
    began = time.monotonic()
    with pytest.raises(StageError, match=r"^waited 0 s for etcd to listen$"):
        wait_for("etcd to listen", lambda: False, 0.02, every=0.005)
    assert time.monotonic() - began >= 0.02


def test_the_condition_is_asked_once_even_when_there_is_no_time() -> None:
    wait_for("it", lambda: True, 0)


def test_a_condition_that_raises_ends_the_waiting_at_once() -> None:
    def broken() -> bool:
        raise StageError("it ended")

    with pytest.raises(StageError, match=r"^it ended$"):
        wait_for("it", broken, 60)
