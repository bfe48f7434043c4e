"""What escapes in one engine of a pair closes both within a second, and ends what they say; nobody else can do that.

The finding is written where the rank would write it: into the memory that it shares with its launcher.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from e2e.conftest import Measured
from e2e.door.engines import HOST, POOL, Engine, Injection, question, started
from e2e.engines.servers import Role, Server
from e2e.said import Said
from kvfence_engine import signed, taint
from kvfence_engine.state import Alarm, Partner, SharedState
from kvfence_engine.taint import Taint

BOUND_SECONDS = 1.0
IDLE_SECONDS = 5.0
LONG_TOKENS = 2500
"""An answer that is not over when the engine is tainted."""
CAP = 3000
KIND = "ForeignPage"


@dataclass
class Pair:
    """A prefill and a decode engine that know each other."""

    prefill: Engine
    decode: Engine
    nobody: Ed25519PrivateKey = field(default_factory=Ed25519PrivateKey.generate)

    @property
    def both(self) -> tuple[Engine, Engine]:
        return self.prefill, self.decode

    def partner(self, engine: Engine) -> Partner:
        peer = engine.peer if engine is self.prefill else ""
        return Partner(f"{HOST}:{engine.control}", peer, engine.status()["key"])

    def open(self) -> list[int]:
        """Admit both, each with the other for a partner; return the statuses of the admissions."""
        others = zip(self.both, reversed(self.both), strict=True)
        given = [(engine, (self.partner(other),)) for engine, other in others]
        return [engine.admit(cap=CAP, peers=(self.prefill.peer,), partners=found).status for engine, found in given]

    def question(self, max_tokens: int, **fields: Any) -> dict[str, Any]:
        pair = (HOST, self.prefill.ports.bootstrap)
        return question(200, pair, max_tokens=max_tokens, ignore_eos=True, **fields)


@dataclass(frozen=True)
class Ended:
    """How an answer of decode ended, and when."""

    status: int
    text: str
    at: float
    broken: bool = False
    """Whether the connection was broken off."""


@dataclass(frozen=True)
class Seen:
    """What was seen of a pair, in this order."""

    forged: dict[str, Said]
    doors_after_forged: list[str]
    before: list[int]
    """Statuses of a short request."""
    stream: Ended
    """Answers of decode that ran when something escaped in it: seconds from then on."""
    plain: Ended
    tainted: dict[str, float]
    """Seconds until each launcher said so."""
    status: dict[str, dict[str, Any]]
    ready: list[int]
    metrics: dict[str, str]
    after: list[Said]
    admissions: list[Said]
    idle: float | None
    """Seconds until decode computed nothing any more, none when it did not stop in time."""
    exits: list[int]
    """Of the launchers, after SIGTERM."""
    doors_of_new_boots: list[str]
    keys_are_new: bool
    of_new_boots: list[int]
    """Statuses of admissions, then of a short request."""


@pytest.fixture(scope="module")
def seen(injection: Injection, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    prefill = Server("prefill", Role.PREFILL, pool_tokens=4096, page_size=16)
    decode = Server("decode", Role.DECODE, pool_tokens=8192, page_size=16)
    with (
        started(injection, tmp_path_factory.mktemp("logs"), prefill, decode) as (one, other),
        ThreadPoolExecutor(8) as threads,
    ):
        yield played(Pair(one, other), threads)


def played(pair: Pair, threads: ThreadPoolExecutor) -> Seen:
    assert pair.open() == [200, 200]
    forged = forgeries(pair)
    doors_after_forged = [engine.status()["door"] for engine in pair.both]
    before = ask(pair, threads)
    began = running(pair, threads)
    escaped = time.monotonic()
    raise_alarm(pair.decode, Alarm(escaped=KIND, peer=pair.prefill.peer))
    tainted = {engine.server.name: within(10, partial(is_tainted, engine), escaped) for engine in pair.both}
    stream, plain = (one.result(60) for one in began)
    keys = [engine.status()["key"] for engine in pair.both]
    return Seen(
        forged,
        doors_after_forged,
        before,
        stream=since(escaped, stream),
        plain=since(escaped, plain),
        tainted={name: 99.0 if took is None else took for name, took in tainted.items()},
        idle=within(IDLE_SECONDS, lambda: not requests_in(pair.decode), escaped),
        status={engine.server.name: engine.status() for engine in pair.both},
        ready=[engine.tell("/ready").status for engine in pair.both],
        metrics={engine.server.name: engine.tell("/metrics").text for engine in pair.both},
        after=[engine.ask("/v1/completions", pair.question(4)) for engine in pair.both],
        admissions=[engine.admit(cap=CAP, peers=(pair.prefill.peer,)) for engine in pair.both],
        exits=leave(pair),
        **new_boots(pair, threads, keys),
    )


def new_boots(pair: Pair, threads: ThreadPoolExecutor, keys: list[str]) -> dict[str, Any]:
    for engine in pair.both:
        engine.start()
    for engine in pair.both:
        engine.wait_until_started()
    return {
        "doors_of_new_boots": [engine.status()["door"] for engine in pair.both],
        "keys_are_new": not set(keys) & {engine.status()["key"] for engine in pair.both},
        "of_new_boots": pair.open() + ask(pair, threads),
    }


def forgeries(pair: Pair) -> dict[str, Said]:
    """Say to decode that prefill is tainted, in ways that must not be believed."""
    seed = pair.nobody.private_bytes_raw()
    own = base64.b64encode(pair.nobody.public_key().public_bytes_raw()).decode()
    known = pair.prefill.status()["key"]
    message, _ = signed.unpack(taint.sign(Taint(KIND, known, "prefill", POOL), seed))
    bodies = {
        "Forged": signed.pack(message, bytes(64)),
        "Forged, signed by nobody": taint.sign(Taint(KIND, known, "prefill", POOL), seed),
        "UnknownPartner": taint.sign(Taint(KIND, own, "prefill", POOL), seed),
        "ForeignPool": taint.sign(Taint(KIND, known, "prefill", "another"), seed),
        "Malformed": b'{"door": "tainted"}',
        "Malformed, nothing": b"",
    }
    return {why: pair.decode.tell("/taint", body) for why, body in bodies.items()}


def ask(pair: Pair, threads: ThreadPoolExecutor) -> list[int]:
    """Ask a pair as its router does; return the statuses of prefill and decode."""
    body = pair.question(4)
    both = [threads.submit(engine.ask, "/v1/completions", body) for engine in pair.both]
    return [one.result(60).status for one in both]


def running(pair: Pair, threads: ThreadPoolExecutor) -> tuple[Future[Ended], Future[Ended]]:
    """Begin two long answers of decode, a stream and a plain one, and return when decode is at both of them."""
    began = []
    for stream in (True, False):
        body = pair.question(LONG_TOKENS, stream=stream)
        threads.submit(pair.prefill.ask, "/v1/completions", body)
        began.append(threads.submit(listen, pair.decode, body))
    assert within(30, lambda: requests_in(pair.decode) == 2) is not None, pair.decode.tail()
    return began[0], began[1]


def listen(engine: Engine, body: dict[str, Any]) -> Ended:
    """Read an answer to its end."""
    with closing(http.client.HTTPConnection(HOST, engine.ports.http, timeout=120)) as connection:
        connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text, broken = b"", False
        try:
            while part := answer.read1():
                text += part
        except (http.client.HTTPException, OSError):
            broken = True
        return Ended(answer.status, text.decode(), time.monotonic(), broken)


def requests_in(engine: Engine) -> int:
    """Return how many requests its ranks compute."""
    return sum(int(rank["num_running_reqs"]) for rank in engine.ask("/v1/loads?include=core").json["loads"])


def raise_alarm(engine: Engine, alarm: Alarm) -> None:
    """Write what rank 0 found."""
    descriptors = Path(f"/proc/{engine.launcher()}/fd").iterdir()
    SharedState.open(str(next(one for one in descriptors if is_the_state(one)))).set_alarm(0, alarm)


def is_the_state(descriptor: Path) -> bool:
    try:
        return "memfd:kvfence-door" in str(descriptor.readlink())
    except FileNotFoundError:  # a connection that was closed meanwhile
        return False


def is_tainted(engine: Engine) -> bool:
    return bool(engine.status()["door"] == "tainted")


def leave(pair: Pair) -> list[int]:
    for engine in pair.both:
        os.kill(engine.launcher(), signal.SIGTERM)
    return [engine.process.wait(60) for engine in pair.both]


def within(seconds: float, true: Callable[[], bool], began: float | None = None) -> float | None:
    """Wait until something is true; return when that was, in seconds from `began` on, none when it was not in time."""
    began = time.monotonic() if began is None else began
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            return None
        time.sleep(0.01)
    return time.monotonic() - began


def since(began: float, ended: Ended) -> Ended:
    return Ended(ended.status, ended.text, ended.at - began, ended.broken)


def test_a_taint_that_no_partner_signed_closes_nothing(seen: Seen) -> None:
    found = {why: (said.status, said.json["reason"]) for why, said in seen.forged.items()}
    reasons = {why: why.split(",", maxsplit=1)[0] for why in found}
    assert found == {why: (400 if reason == "Malformed" else 403, reason) for why, reason in reasons.items()}
    assert seen.doors_after_forged == ["open", "open"]
    assert seen.before == [200, 200]


def test_what_escaped_closes_its_engine_and_its_partner_within_a_second(seen: Seen, measured: Measured) -> None:
    measured("something escaped in decode: decode is tainted", seen.tainted["decode"], BOUND_SECONDS)
    measured("something escaped in decode: prefill, its partner, is tainted", seen.tainted["prefill"], BOUND_SECONDS)
    blown = {name: status["blown"] for name, status in seen.status.items()}
    assert [blown["decode"][name] for name in ("finding", "kind", "source")] == ["Escaped", KIND, "rank 0"]
    assert [blown["prefill"][name] for name in ("finding", "kind")] == ["Escaped", KIND]
    assert blown["prefill"]["source"].startswith(f"partner {HOST}:")
    assert seen.ready == [503, 503]


def test_a_stream_that_began_ends_with_an_error_and_never_as_if_it_were_whole(seen: Seen, measured: Measured) -> None:
    *events, last = seen.stream.text.strip().split("\n\n")
    assert len(events) > 1, "it had begun"
    assert seen.stream.status == 200
    assert json.loads(last.removeprefix("data: "))["error"]["code"] == 503
    assert "[DONE]" not in seen.stream.text
    measured("something escaped in decode: a running stream is over", seen.stream.at, BOUND_SECONDS)


def test_an_answer_that_had_not_begun_becomes_an_error(seen: Seen, measured: Measured) -> None:
    assert (seen.plain.status, seen.plain.broken) == (503, False)
    assert "an isolation defence tripped" in json.loads(seen.plain.text)["message"]
    measured("something escaped in decode: a running request is over", seen.plain.at, BOUND_SECONDS)


def test_nothing_is_computed_any_more_and_nobody_gets_in(seen: Seen) -> None:
    assert seen.idle is not None
    assert [said.status for said in seen.after] == [503, 503]
    assert [(said.status, said.json["reason"]) for said in seen.admissions] == [(409, "Final")] * 2


def test_the_metrics_say_why(seen: Seen) -> None:
    for text in seen.metrics.values():
        assert f'kvfence_engine_fuse_blown{{finding="Escaped",kind="{KIND}"}} 1.0' in text
        assert 'kvfence_engine_door{state="tainted"} 1.0' in text


def test_a_tainted_engine_leaves_when_it_is_told_and_a_new_boot_opens(seen: Seen) -> None:
    assert seen.exits == [0, 0]
    assert seen.doors_of_new_boots == ["closed", "closed"]
    assert seen.keys_are_new
    assert seen.of_new_boots == [200] * 4
