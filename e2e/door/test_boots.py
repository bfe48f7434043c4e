"""One boot after the other of the same engine: each begins closed, and none stays open without its launcher."""

from __future__ import annotations

import http.client
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from e2e.conftest import Measured
from e2e.door.engines import HOST, Engine, Injection, question, started
from e2e.engines.keeper import LOOK_SECONDS
from e2e.engines.servers import Server

GONE_SECONDS = 3.0
KEY = "KEY-OF-THE-ADMIN-7QX4"
"""Of SGLang's own control endpoints, which the door does not serve: the other paths go on without it."""


@pytest.fixture(scope="module")
def engine(injection: Injection, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """One server without a partner, behind the door. Each test takes it as the one before left it, and starts it."""
    alone = Server("alone", extra=("--admin-api-key", KEY))
    with started(injection, tmp_path_factory.mktemp("logs"), alone) as (made,):
        yield made


def test_a_key_of_the_engine_is_in_its_log_or_in_what_it_shows(engine: Engine) -> None:
    log = engine.log.read_text(errors="replace")
    assert "'admin_api_key': '[struck out]'" in log, "SGLang logs its arguments"
    assert KEY not in log
    for path in ("/server_info", "/get_server_info", "/model_info", "/v1/models", "/v1/loads"):
        said = engine.ask(path)
        assert said.status == 200, path
        assert KEY not in said.text, path
    assert KEY not in json.dumps(engine.status())


def again(engine: Engine) -> None:
    """Start the same command where the last run ended, as a kubelet restarts a container in place."""
    if engine.process.poll() is not None or not answers_its_launcher(engine):
        engine.start()
        engine.wait_until_started()


def answers_its_launcher(engine: Engine) -> bool:
    try:
        return bool(engine.status())
    except OSError:
        return False


def let_the_keeper_look() -> None:
    """Give it time to see whose the shared memory is: once a process was killed nobody can tell."""
    time.sleep(LOOK_SECONDS + 1)


def within(seconds: float, true: Callable[[], bool]) -> float | None:
    began = time.monotonic()
    while not true():
        if time.monotonic() - began > seconds:
            return None
        time.sleep(0.01)
    return time.monotonic() - began


def processes_of(engine: Engine) -> list[int]:
    status = engine.status()
    return [status["server"]["pid"], *(rank["pid"] for rank in status["ranks"])]


def are_gone(pids: list[int]) -> bool:
    return not any(Path(f"/proc/{pid}/exe").exists() for pid in pids)


def answers(engine: Engine) -> bool:
    with suppress(OSError, http.client.HTTPException):
        return engine.ask("/v1/completions", question(20)).status == 200
    return False


def test_an_engine_that_is_restarted_in_place_is_closed_again(engine: Engine, injection: Injection) -> None:
    first = engine.admission(peers=())
    assert engine.tell("/admission", injection.body(first)).status == 200
    assert answers(engine)
    let_the_keeper_look()
    os.kill(engine.status()["server"]["pid"], signal.SIGKILL)
    assert engine.process.wait(30) == 128 + signal.SIGKILL
    again(engine)
    assert engine.status()["door"] == "closed"
    assert not answers(engine)
    assert set(engine.status()["nonces"]).isdisjoint(first.nonces)
    said = engine.tell("/admission", injection.body(first))
    assert (said.status, said.json["reason"]) == (409, "ForeignBoot")
    assert not answers(engine)
    assert engine.admit().status == 200
    assert answers(engine)


def test_an_engine_that_is_told_to_leave_takes_nothing_new_and_finishes_what_it_has(engine: Engine) -> None:
    again(engine)
    if engine.status()["door"] == "closed":
        assert engine.admit().status == 200
    with closing(http.client.HTTPConnection(HOST, engine.ports.http, timeout=60)) as running:
        body = question(20, max_tokens=600, ignore_eos=True, stream=True)
        running.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
        stream = running.getresponse()
        assert stream.readline().startswith(b"data: ")
        os.kill(engine.launcher(), signal.SIGTERM)
        assert within(1, lambda: engine.tell("/ready").status == 503) is not None
        said = engine.ask("/v1/completions", question(20))
        assert said.status == 503
        assert "going away" in said.text
        assert engine.ask("/health").status == 503
        rest = stream.read()
        stream.close()
    assert rest.rstrip().endswith(b"data: [DONE]"), "the stream was finished"
    assert engine.process.wait(60) == 0


def test_a_launcher_that_is_killed_takes_the_engine_with_it(engine: Engine, measured: Measured) -> None:
    engine.start(outlived=True)
    engine.wait_until_started()
    assert engine.admit().status == 200
    assert answers(engine)
    pids = processes_of(engine)
    let_the_keeper_look()
    os.kill(engine.launcher(), signal.SIGKILL)
    refused = within(GONE_SECONDS, lambda: not answers(engine))
    gone = within(GONE_SECONDS, lambda: are_gone(pids))
    assert engine.process.poll() is None, "the keeper did not do it"
    assert refused is not None
    assert gone is not None
    measured("no answer after the launcher was killed", refused, GONE_SECONDS)
