"""An engine that starts anew in place is another engine: with nobody there to prove it, it answers nobody."""

from __future__ import annotations

import http.client
import os
import re
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from e2e.cluster import process_table
from e2e.cluster.waiting import wait_for
from e2e.conftest import Aloud, Measured
from e2e.pools import inside
from e2e.pools.asking import Place, question
from e2e.pools.installation import Installation
from e2e.pools.pool import BOOTSTRAP_PORT, Pool, example
from e2e.progress import step

OTHER_SECONDS = 20.0
"""N, until every request goes to the engine that is left: smg looks every 5 s, for 2 s, and has to see it twice."""

RESTART_SECONDS = 300.0
"""For SGLang to load, on a machine with more to do."""

WATCHED_SECONDS = 15.0
"""For which the new boot is asked once it has started; three looks of smg's."""

EVERY_SECONDS = 0.2
BETWEEN = 8
"""Requests that are sure to reach each of two engines: the router takes them in turn."""

SMG_METRICS_PORT = 29000


@dataclass(frozen=True)
class Came:
    """What came of one request through the Service."""

    sent: float
    """By the monotonic clock, as all times here."""
    status: int | None
    """None: nobody answered."""


@dataclass
class Asked:
    """Users who ask the Service all the time, and the engine that was killed directly; and its door, looked at."""

    pool: Pool
    victim: dict[str, Any]
    through_service: list[Came] = field(default_factory=list)
    at_the_leg: list[int | None] = field(default_factory=list)
    doors: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    """How its door stood, and the nonces of its boot."""

    def boots(self, before: tuple[str, ...]) -> set[tuple[str, ...]]:
        """The nonces of the boots that were seen at its address, but for the one that was there before."""
        return {nonces for _, nonces in self.doors if nonces} - {before}

    def ask_service(self, service: Place) -> None:
        sent = time.monotonic()
        self.through_service.append(Came(sent, _status(service, question(20))))

    def ask_leg(self) -> None:
        ip = self.victim["status"]["podIP"]
        pair = {"bootstrap_host": ip, "bootstrap_port": BOOTSTRAP_PORT, "bootstrap_room": len(self.at_the_leg)}
        self.at_the_leg.append(_status(self.pool.leg(self.victim), question(20, **pair)))
        with suppress(OSError, http.client.HTTPException):
            door = self.pool.door(self.victim)
            self.doors.append((door["door"], tuple(door["nonces"])))


def _status(place: Place, body: dict[str, Any]) -> int | None:
    try:
        return place.ask("/v1/completions", body, seconds=20.0).status
    except (OSError, http.client.HTTPException):
        return None


@contextmanager
def asking(pool: Pool, victim: dict[str, Any]) -> Iterator[Asked]:
    """Ask while the block runs."""
    asked, over, service = Asked(pool, victim), threading.Event(), pool.service()

    def repeat(what: Any, *arguments: Any) -> None:
        while not over.wait(EVERY_SECONDS):
            what(*arguments)

    loops = [(asked.ask_service, service), (asked.ask_service, service), (asked.ask_leg,)]
    threads = [threading.Thread(target=repeat, args=loop) for loop in loops]
    for thread in threads:
        thread.start()
    try:
        yield asked
    finally:
        over.set()
        for thread in threads:
            thread.join()


@pytest.fixture(scope="module")
def pool(operator: Installation, pools_namespace: str, aloud: Aloud) -> Iterator[Pool]:
    """With two prefill engines, admitted."""
    made = Pool.apply(operator.stage, pools_namespace, example("two-prefill", {"roles": {"prefill": {"replicas": 2}}}))
    with aloud(), step(f"bringing up pool {made.name}", "40 s on idle cores"):
        made.wait_for_condition("TrafficAdmitted")
    yield made
    made.delete()


def boots(pool: Pool) -> dict[str, tuple[int, tuple[str, ...]]]:
    """How often each engine was started again, and the nonces of its boot, by the name of its pod."""
    return {
        pod["metadata"]["name"]: (container["restartCount"], tuple(pool.door(pod)["nonces"]))
        for pod in pool.engines()
        for container in pod["status"]["containerStatuses"]
    }


def outcomes(pool: Pool) -> dict[str, tuple[int, ...]]:
    """What came of the latest requests that the router sent to each engine, by address: another one, another outcome.

    smg counts the successes in a row, and the failures.
    """
    text = Place("smg", "127.0.0.1", SMG_METRICS_PORT, pool.behind_the_front().through).ask("/metrics").text
    found = re.findall(r'^smg_worker_cb_consecutive_\w+\{worker="http://([^:"]+):\d+"\} (\d+)', text, re.MULTILINE)
    return {address: tuple(int(count) for who, count in found if who == address) for address, _ in found}


def reached(before: dict[str, tuple[int, ...]], after: dict[str, tuple[int, ...]]) -> set[str]:
    """Addresses of the engines that the router sent a request to in between."""
    return {address for address, outcome in after.items() if outcome != before.get(address)}


def kill_sglang(pod: dict[str, Any], server: int) -> None:
    """Kill -9 the process of an engine that answers HTTP, the launcher's child, as it is known in the container."""
    (container,) = pod["status"]["containerStatuses"]
    there = inside.processes(container["containerID"].partition("//")[2])
    (pid,) = [one for one in there if process_table.pid_inside(one) == server]
    os.kill(pid, signal.SIGKILL)


def reached_by_some_requests(pool: Pool) -> set[str]:
    """Ask some times, and return the engines that the router sent that to."""
    before, service = outcomes(pool), pool.service()
    for _ in range(BETWEEN):
        assert service.ask("/v1/completions", question(20)).status == 200
    return reached(before, outcomes(pool))


def test_a_new_boot_is_let_in_without_an_operator(
    pool: Pool, operator: Installation, measured: Measured, aloud: Aloud
) -> None:
    first = boots(pool)
    victim, other = pool.engines("prefill")
    name, address = victim["metadata"]["name"], victim["status"]["podIP"]
    assert {address, other["status"]["podIP"]} <= reached_by_some_requests(pool), "the router takes both in turn"

    # Killed first, so that it cannot tidy up or give its Lease back. Its container starts again at once, so that it is
    # taken away before anything happens that it could see.
    operator.kill()
    operator.scale(0)
    try:
        kill_sglang(victim, pool.door(victim)["server"]["pid"])
        killed = time.monotonic()
        with asking(pool, victim) as asked, aloud(), step("starting an engine anew without an operator", "20 s"):
            wait_for("the new boot", lambda: bool(asked.boots(first[name][1])), RESTART_SECONDS)
            time.sleep(max(0.0, killed + OTHER_SECONDS - time.monotonic()))
            since = outcomes(pool)
            time.sleep(WATCHED_SECONDS)
            later = reached(since, outcomes(pool))
        failed = [came.sent - killed for came in asked.through_service if came.status != 200]
        measured("requests go on through the engine that is left", max(failed, default=0.0), OTHER_SECONDS)
        assert {door for door, nonces in asked.doors if nonces != first[name][1]} == {"closed"}
        assert set(asked.at_the_leg) == {None, 503}, "it is not there, then it refuses"
        assert asked.at_the_leg[-1] == 503
        assert (address in later, other["status"]["podIP"] in later) == (False, True), "the router knows"
    finally:
        operator.scale(1)

    wait_for("the new boot to be let in", lambda: pool.door(victim)["door"] == "open", 120.0, every=0.5)
    wait_for("the router to take it up", lambda: address in reached_by_some_requests(pool), 60.0, every=1.0)
    pool.wait_for_condition("TrafficAdmitted", seconds=30.0)
    assert {role["name"]: role["admittedReplicas"] for role in pool.status()["roles"]} == {"prefill": 2, "decode": 1}
    last = boots(pool)
    (proven,) = asked.boots(first[name][1])
    assert last.pop(name) == (first.pop(name)[0] + 1, proven), "that boot, and not one after it"
    assert last == first, "no other engine was started anew"
