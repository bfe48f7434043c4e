"""The watch, with a program in the place of kubectl."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from e2e.cluster.kubectl import Kubectl
from e2e.cluster.waiting import wait_for
from e2e.demo import watch
from e2e.demo.view import View
from e2e.demo.watch import Watch
from e2e.errors import StageError
from tests.unit.demo.api_objects import pod, pool

Fake = Callable[..., Kubectl]


@pytest.fixture
def fake(tmp_path: Path) -> Fake:
    """A kubectl whose watches print these events, and go on for a while."""

    def make(pools: list[dict[str, Any]], pods: list[dict[str, Any]], then: str = "exec sleep 60") -> Kubectl:
        for name, events in (("pools", pools), ("pods", pods)):
            (tmp_path / name).write_text("".join(json.dumps(event) + "\n" for event in events))
        program = tmp_path / "kubectl"
        program.write_text(
            f'#!/bin/sh\ncase "$*" in *" pods "*) cat {tmp_path}/pods;; *) cat {tmp_path}/pools;; esac\n{then}\n'
        )
        program.chmod(0o755)
        return Kubectl(program, tmp_path / "config")

    return make


def event(kind: str, thing: dict[str, Any]) -> dict[str, Any]:
    return {"type": kind, "object": thing}


def until(watching: Watch, holds: Callable[[View], bool]) -> View:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        seen = watching.changed(0.05)
        if seen is not None and holds(seen):
            return seen
    raise AssertionError("not seen in 10 s")


def test_the_pool_and_its_pods_are_seen_as_they_are_now(fake: Fake) -> None:
    pools = [event("ADDED", pool()), event("BOOKMARK", {}), event("MODIFIED", pool("RolesReady"))]
    pods = [event("ADDED", pod("prefill")), event("ADDED", pod("decode")), event("DELETED", pod("decode"))]
    with Watch(fake(pools, pods), "demo", "first-pool") as watching:
        seen = until(watching, lambda one: one.holds("RolesReady") and len(one.pods) == 1)
        assert seen.pods[0].role == "prefill"
        assert watching.changed(0.05) is None


def test_a_pool_that_somebody_deletes_ends_the_demo(fake: Fake) -> None:
    pools = [event("ADDED", pool()), event("DELETED", pool())]
    with Watch(fake(pools, []), "demo", "first-pool") as watching, pytest.raises(StageError, match="somebody deleted"):
        until(watching, lambda one: False)


def test_a_watch_that_the_server_ends_is_begun_again(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "PAUSE_SECONDS", 0.01)
    with Watch(fake([event("ADDED", pool())], [event("ADDED", pod("prefill"))], then=""), "demo", "x") as watching:
        for _ in range(2 * watch.FAILURES):
            assert until(watching, lambda one: True).pods is not None


def test_a_watch_that_never_works_is_given_up_in_kubectls_words(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "PAUSE_SECONDS", 0.01)
    kubectl = fake([], [], then="echo 'the server is not there' >&2; exit 1")
    with Watch(kubectl, "demo", "x") as watching, pytest.raises(StageError, match="the server is not there"):
        until(watching, lambda one: False)


def test_no_watch_is_left_when_it_is_over(fake: Fake) -> None:
    with Watch(fake([event("ADDED", pool())], []), "demo", "first-pool") as watching:
        until(watching, lambda one: True)
        wait_for("both watches run", lambda: len(watching._running) == 2, 10.0)
        processes = list(watching._running.values())
    for one in processes:
        assert one.poll() is not None
        assert not os.path.exists(f"/proc/{one.pid}")  # noqa: PTH110
