"""The operator's checks on real SGLang: they pass on a pair that works, and fail on each that does not."""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256

import pytest

from e2e.conftest import Measured
from e2e.door.engines import HOST, POOL, Engine, Injection, started
from e2e.engines.environment import VERSION
from e2e.engines.processes import Running
from e2e.engines.servers import SERVED_NAME, Role, Server
from kvfence.domain.verdicts import Check, Outcome, Verdict
from kvfence.engine import server_info
from kvfence.engine.admission import Admission, DoorState, Signer
from kvfence.engine.door import DoorClient, DoorStatus, Refused
from kvfence.engine.pair import Client, Pair
from kvfence.engine.server_info import ServerFacts
from kvfence.engine.web import Web
from kvfence.verify.overlong import REFUSED_SECONDS
from kvfence.verify.pair_suite import Limits, Subject, passes_needed, prove_pair

PREFILL_POOL = 1024
DECODE_POOL = 4096
CAP = 1003
LIMITS = Limits(CAP, 4096, PREFILL_POOL, DECODE_POOL, page_size=16)
WAITING_SECONDS = 6
"""How long decode waits for KV that does not come: longer than a refusal may take, so that the hang shows."""

SUITE_SECONDS = 15.0
"""Two checks over a cap of a thousand tokens. Measured at 2 to 8 s on two cores shared with other work."""

Legs = dict[str, Engine]


@dataclass(frozen=True)
class Proof:
    """The verdicts on one pair, and how long they took."""

    verdicts: dict[Check, Verdict]
    seconds: float


def servers(version: str, page_size: int) -> tuple[Server, Server]:
    """A prefill with a small pool and a decode with a large one; both say 4,096 tokens of context."""

    def server(role: Role, pool: int) -> Server:
        return Server(role.value, role, version, pool_tokens=pool, page_size=page_size, waiting_seconds=WAITING_SECONDS)

    return server(Role.PREFILL, PREFILL_POOL), server(Role.DECODE, DECODE_POOL)


@pytest.fixture(scope="module")
def pair(injection: Injection, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Legs]:
    """A pair behind its doors, closed."""
    with started(injection, tmp_path_factory.mktemp("logs"), *servers(VERSION, LIMITS.page_size)) as engines:
        yield {engine.server.name: engine for engine in engines}


@pytest.fixture(scope="module")
def facts(pair: Legs) -> dict[str, ServerFacts | server_info.Unanswered]:
    """What the running servers say before anything was admitted."""

    async def ask() -> dict[str, ServerFacts | server_info.Unanswered]:
        async with Web(10) as web:
            return {name: await server_info.fetch(web, f"http://{HOST}:{leg.ports.http}") for name, leg in pair.items()}

    return asyncio.run(ask())


@pytest.fixture(scope="module")
def without_the_cap(pair: Legs, injection: Injection, facts: object) -> Proof:
    """The checks when each door has its own engine's pool for a cap, and not the smallest of both."""
    seen = proof(pair, injection, {"prefill": PREFILL_POOL, "decode": DECODE_POOL})
    time.sleep(WAITING_SECONDS - REFUSED_SECONDS + 1)  # then decode gives up what it waits for, with its pages
    return seen


@pytest.fixture(scope="module")
def with_the_cap(pair: Legs, injection: Injection, without_the_cap: Proof) -> Proof:
    """The checks when both doors have the cap that fits both."""
    return proof(pair, injection, {"prefill": CAP, "decode": CAP})


@pytest.fixture(scope="module")
def old_pair(sglang_processes: Callable[..., dict[str, Running]]) -> Proof:
    """The checks on the version of the incident, which has no door."""
    running = sglang_processes(*servers("0.5.19", page_size=1))
    prefill, decode = running["prefill"], running["decode"]
    legs = Pair(prefill.url, decode.url, prefill.bootstrap_host, prefill.bootstrap_port)
    return asyncio.run(prove(legs, [str(i) for i in range(passes_needed(LIMITS))]))


def proof(pair: Legs, injection: Injection, caps: dict[str, int]) -> Proof:
    """Put both doors on canary and prove the pair, all as the operator does."""
    prefill, decode = pair["prefill"], pair["decode"]
    passes = [f"{random.SystemRandom().getrandbits(128):x}" for _ in range(passes_needed(LIMITS))]

    async def run() -> Proof:
        for name, leg in pair.items():
            await admit(leg, injection, caps[name], prefill.peer, passes)
        legs = Pair(
            f"http://{HOST}:{prefill.ports.http}", f"http://{HOST}:{decode.ports.http}", HOST, prefill.ports.bootstrap
        )
        return await prove(legs, passes)

    return asyncio.run(run())


async def admit(leg: Engine, injection: Injection, cap: int, peer: str, passes: list[str]) -> None:
    async with DoorClient(port=leg.control) as doors:
        before = await doors.status(HOST)
        assert isinstance(before, DoorStatus), before
        admission = Admission(
            pool=POOL,
            pod=leg.server.name,
            nonces=before.nonces,
            epoch=before.epoch + 1,
            door=DoorState.CANARY,
            cap=cap,
            peers=(peer,),
            passes=tuple(sha256(one.encode()).hexdigest() for one in passes),
            expires=int(time.time()) + 60,
        )
        body = Signer(injection.signer).sign(admission)
        after = await doors.admit(HOST, body)
        assert isinstance(after, DoorStatus), after
        assert (after.door, after.cap, after.peers) == (DoorState.CANARY, cap, (peer,))
        again = await doors.admit(HOST, body)
        assert isinstance(again, Refused)
        assert again.reason == "OldEpoch"


async def prove(legs: Pair, passes: list[str]) -> Proof:
    began = time.monotonic()
    async with Client(timeout_seconds=30) as client:
        subject = Subject("prefill with decode", legs, SERVED_NAME)
        verdicts = await prove_pair(client, subject, LIMITS, iter(passes), random.SystemRandom())
    return Proof({verdict.check: verdict for verdict in verdicts}, time.monotonic() - began)


def test_a_pair_that_works_passes_both_checks_in_seconds(with_the_cap: Proof, measured: Measured) -> None:
    assert [(one.check, one.outcome, one.message) for one in with_the_cap.verdicts.values()] == [
        (Check.MARKER_ISOLATION, Outcome.PASSED, ""),
        (Check.OVERLONG_PROMPT, Outcome.PASSED, ""),
    ]
    measured("both checks on a pair with a cap of 1,003 tokens", with_the_cap.seconds, SUITE_SECONDS)


def test_prompts_that_only_decode_has_room_for_hang_there_when_each_engine_goes_by_its_own_pool(
    without_the_cap: Proof,
) -> None:
    verdict = without_the_cap.verdicts[Check.OVERLONG_PROMPT]
    assert verdict.outcome is Outcome.FAILED
    assert "decode did not refuse within 5 s" in verdict.message
    assert without_the_cap.verdicts[Check.MARKER_ISOLATION].outcome is Outcome.PASSED


def test_a_prompt_that_does_not_fit_is_answered_by_both_legs_on_the_version_of_the_incident(old_pair: Proof) -> None:
    verdict = old_pair.verdicts[Check.OVERLONG_PROMPT]
    assert verdict.outcome is Outcome.FAILED
    assert re.search("decode answered (200|with the marker of another request)", verdict.message), verdict.message
    assert old_pair.verdicts[Check.MARKER_ISOLATION].outcome is Outcome.PASSED, "short prompts show nothing there"


def test_the_servers_facts_are_read_from_the_running_engines(facts: dict[str, ServerFacts]) -> None:
    for name, found in facts.items():
        assert found == ServerFacts(
            version=VERSION,
            kv_checksum=False,
            disaggregation_mode=name,
            context_length=4096,
            page_size=16,
            max_input_tokens={"prefill": PREFILL_POOL, "decode": DECODE_POOL}[name] - 6,
            reserved_decode_tokens=512,
            allow_auto_truncate=False,
            served_models=(SERVED_NAME,),
        )


def test_the_door_s_status_says_what_each_pool_holds(pair: Legs, with_the_cap: Proof) -> None:
    async def ask(leg: Engine) -> object:
        async with DoorClient(port=leg.control) as doors:
            return await doors.status(HOST)

    for name, pool in (("prefill", PREFILL_POOL), ("decode", DECODE_POOL)):
        status = asyncio.run(ask(pair[name]))
        assert isinstance(status, DoorStatus), status
        (rank,) = status.ranks
        assert (status.sglang, status.started, status.fault) == (VERSION, True, None)
        assert (rank.pool_tokens, rank.page_size) == (pool, 16)
        assert (rank.boot_input_limit, rank.input_limit) == (pool - 6, CAP - 6)
