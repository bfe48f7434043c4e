"""A pair behind the door: nobody in before admission, and then the cap holds on each leg by itself."""

from __future__ import annotations

import asyncio
import json
import random
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from e2e.conftest import Measured
from e2e.door.engines import HOST, Engine, Injection, question, started
from e2e.engines.servers import SERVED_NAME, Role, Server
from e2e.said import Said
from kvfence.engine.pair import Client, Pair, PairAnswer, Question
from kvfence_engine.requests import Route, route
from kvfence_engine.state import Door

ASKED_TOKENS = 1030  # for prefill's pool; a page has 16, so 1,024 are what it gets
POOL_TOKENS = 1024
CAP = 1000
LONGEST = 993  # CAP - 7
REFUSED_SECONDS = 1.0
PASS = "let-this-one-in"

Legs = dict[str, Engine]


@pytest.fixture(scope="module")
def pair(injection: Injection, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Legs]:
    """Prefill with a small pool, decode with a large one; both say 4,096 tokens of context."""
    prefill = Server("prefill", Role.PREFILL, pool_tokens=ASKED_TOKENS, page_size=16)
    decode = Server("decode", Role.DECODE, pool_tokens=4096, page_size=16)
    with started(injection, tmp_path_factory.mktemp("logs"), prefill, decode) as engines:
        yield {engine.server.name: engine for engine in engines}


@dataclass(frozen=True)
class Closed:
    """What was seen before the first admission, in the order in which it was asked."""

    status: dict[str, dict[str, Any]]
    answers: dict[tuple[str, str, str], Said]
    streams: dict[tuple[str, str], Said]
    admissions: dict[str, Said]
    log: dict[str, str]


@pytest.fixture(scope="module")
def closed(pair: Legs, injection: Injection) -> Closed:
    """Everything that is asked of a door before it opens."""
    return Closed(
        status={name: leg.status() for name, leg in pair.items()},
        answers={
            (name, method, path): leg.ask(path, body(pair) if method != "GET" else None, method)
            for name, leg in pair.items()
            for method, path in paths(leg)
        },
        streams={
            (name, path): leg.ask(path, inferring(pair, path) | {"stream": True}) for name, leg, path in legs(pair)
        },
        admissions=wrong_admissions(pair["prefill"], injection),
        log={name: leg.log.read_text(errors="replace") for name, leg in pair.items()},
    )


@dataclass(frozen=True)
class Proven:
    """What was seen while the pair was on canary with one pass."""

    health: list[int]
    without: PairAnswer
    first: PairAnswer
    again: PairAnswer


@pytest.fixture(scope="module")
def canary(pair: Legs, closed: Closed) -> Proven:
    """The pair on canary, asked without the pass, with it, and with it again."""
    for leg in pair.values():
        said = leg.admit(door=Door.CANARY, cap=CAP, peers=peers(pair), passes=(sha256(PASS.encode()).hexdigest(),))
        assert said.status == 200, said.text
    return Proven(
        health=[leg.ask("/health").status for leg in pair.values()],
        without=ask_pair(pair, LONGEST),
        first=ask_pair(pair, LONGEST, PASS),
        again=ask_pair(pair, LONGEST, PASS),
    )


@pytest.fixture(scope="module")
def admitted(pair: Legs, canary: Proven) -> Legs:
    """The pair open to users, with a cap of 1,000 tokens."""
    for leg in pair.values():
        said = leg.admit(cap=CAP, peers=peers(pair))
        assert said.status == 200, said.text
    return pair


def peers(pair: Legs) -> tuple[str, ...]:
    return (pair["prefill"].peer,)


def body(pair: Legs, **fields: Any) -> dict[str, Any]:
    return question(20, (HOST, pair["prefill"].ports.bootstrap), **fields)


INFER = ("/v1/completions", "/v1/chat/completions", "/generate")


def legs(pair: Legs) -> list[tuple[str, Engine, str]]:
    return [(name, leg, path) for name, leg in pair.items() for path in INFER]


def inferring(pair: Legs, path: str, tokens: int = 20) -> dict[str, Any]:
    """A request for a path, with a prompt of so many tokens, or a few more where a template adds some."""
    fields = question(tokens, (HOST, pair["prefill"].ports.bootstrap))
    prompt = fields.pop("prompt")
    if path == "/generate":
        del fields["max_tokens"], fields["temperature"], fields["model"]
        return fields | {"text": prompt, "sampling_params": {"max_new_tokens": 4, "temperature": 0}}
    if path == "/v1/chat/completions":
        return fields | {"messages": [{"role": "user", "content": prompt}]}
    return fields | {"prompt": prompt}


def paths(leg: Engine) -> list[tuple[str, str]]:
    """Every method and path that the running server says it has."""
    described = leg.ask("/openapi.json").json["paths"]
    found = [
        (method.upper(), path.replace("{", "").replace("}", "")) for path in described for method in described[path]
    ]
    assert len(found) > 60, "the server does not say what it has"
    return found


def ask_pair(pair: Legs, tokens: int, shown: str | None = None) -> PairAnswer:
    prefill, decode = pair["prefill"], pair["decode"]
    both = Pair(
        f"http://{HOST}:{prefill.ports.http}", f"http://{HOST}:{decode.ports.http}", HOST, prefill.ports.bootstrap
    )

    async def ask() -> PairAnswer:
        async with Client(timeout_seconds=60) as client:
            return await client.ask(both, WithPass(SERVED_NAME, "x" * (tokens - 1), 4, shown), random.randrange(2**63))

    return asyncio.run(ask())


@dataclass(frozen=True)
class WithPass(Question):
    """A question that shows a pass in its body."""

    shown: str | None = None

    def body(self) -> dict[str, Any]:
        return super().body() | ({} if self.shown is None else {"kvfence_pass": self.shown})


def wrong_admissions(leg: Engine, injection: Injection) -> dict[str, Said]:
    right = leg.admission()
    turned = tuple(reversed(right.nonces))
    sent = {
        "Forged": injection.body(right, Ed25519PrivateKey.generate()),
        "ForeignPool": injection.body(leg.admission(pool="another")),
        "ForeignPod": injection.body(leg.admission(pod="decode")),
        "ForeignBoot": injection.body(leg.admission(nonces=turned)),
        "Expired": injection.body(leg.admission(expires=1_700_000_000)),
        "CapAbovePool": injection.body(leg.admission(cap=POOL_TOKENS + 1)),
        "Malformed": {"message": "?", "signature": ""},
    }
    return {reason: leg.tell("/admission", parts) for reason, parts in sent.items()}


# --- closed ---


def test_nothing_of_the_server_answers_a_prompt_before_admission(closed: Closed) -> None:
    let_through = {
        f"{name} {method} {path}": said.status
        for (name, method, path), said in closed.answers.items()
        if route(method, path) is not Route.OBSERVE and said.status != 503
    }
    assert let_through == {}
    assert {said.status for said in closed.streams.values()} == {503}
    for said in (*closed.streams.values(), closed.answers["decode", "POST", "/generate"]):
        assert said.json["message"] == "this engine is closed: it was not admitted yet"


def test_not_one_token_is_computed_before_admission(closed: Closed) -> None:
    for name, log in closed.log.items():
        assert "ready to roll" in log, name  # SGLang takes itself for ready: without the door it would have answered
        assert not re.search(r"(Prefill|Decode) batch", log), name


def test_health_is_not_claimed_before_admission(closed: Closed) -> None:
    for name in closed.status:
        for path in ("/health", "/health_generate", "/ready"):
            assert closed.answers[name, "GET", path].status == 503


def test_the_pool_is_measured_not_taken_from_the_flags(pair: Legs, closed: Closed) -> None:
    assert f"max_total_num_tokens={POOL_TOKENS}," in closed.log["prefill"]
    (rank,) = closed.status["prefill"]["ranks"]
    assert (rank["pool_tokens"], rank["page_size"], rank["input_limit"]) == (POOL_TOKENS, 16, POOL_TOKENS - 6)
    assert rank["boot_input_limit"] == POOL_TOKENS - 6
    assert f"'max_total_tokens': {ASKED_TOKENS}" in closed.log["prefill"], "the flag says something else"
    assert closed.status["decode"]["ranks"][0]["pool_tokens"] == 4096
    assert len(set(closed.status["prefill"]["nonces"] + closed.status["decode"]["nonces"])) == 4


def test_an_admission_that_is_not_for_this_boot_is_refused_with_its_reason(closed: Closed) -> None:
    said = {reason: (answer.json["reason"], answer.status) for reason, answer in closed.admissions.items()}
    assert {reason: found for reason, (found, _) in said.items()} == {reason: reason for reason in said}
    assert all(400 <= status < 500 for _, status in said.values())


# --- canary ---


def test_a_pass_lets_in_one_request_of_a_closed_pair(canary: Proven) -> None:
    assert (canary.without.prefill.status, canary.without.decode.status) == (503, 503)
    assert (canary.first.prefill.status, canary.first.decode.status) == (200, 200)
    assert canary.first.decode.prompt_tokens == LONGEST
    assert (canary.again.prefill.status, canary.again.decode.status) == (503, 503)


def test_a_router_takes_an_engine_on_canary_for_healthy(canary: Proven) -> None:
    assert canary.health == [200, 200]


# --- open ---


def test_the_longest_prompt_is_answered(admitted: Legs) -> None:
    answer = ask_pair(admitted, LONGEST)
    assert answer.prefill.status == answer.decode.status == 200, (answer.prefill.detail, answer.decode.detail)
    assert answer.prefill.prompt_tokens == answer.decode.prompt_tokens == LONGEST
    assert answer.decode.text == "xxxx"


@pytest.mark.parametrize("tokens", [LONGEST + 1, 1000, 1500, 4095, 4096, 5000])
def test_a_longer_prompt_gets_a_plain_400_at_once_on_each_leg(admitted: Legs, tokens: int, measured: Measured) -> None:
    slowest = 0.0
    for name, leg, path in legs(admitted):
        for stream in (False, True):
            said = leg.ask(path, inferring(admitted, path, tokens) | {"stream": stream})
            assert said.status == 400, (name, path, stream, said.text)
            assert f"this pool takes at most {LONGEST}" in said.text
            slowest = max(slowest, said.seconds)
    measured(f"the door refuses {tokens} tokens, slowest of all ways", slowest, REFUSED_SECONDS)


def test_the_cap_is_what_the_servers_say(admitted: Legs) -> None:
    for leg in admitted.values():
        assert leg.ask("/v1/models").json["data"][0]["max_model_len"] == CAP
        info = leg.ask("/server_info").json
        assert (info["context_length"], info["max_req_input_len"]) == (CAP, CAP - 6)
        assert [state["context_length"] for state in info["internal_states"]] == [CAP]
        (rank,) = leg.status()["ranks"]
        assert rank["input_limit"] == CAP - 6
        assert rank["boot_input_limit"] in (POOL_TOKENS - 6, 4096 - 6), "what the engine had before the cap"
        assert leg.ask("/health").status == 200
        assert leg.tell("/ready").status == 200


INTERNAL: dict[str, dict[str, Any]] = {
    "InternalField": {"session_params": {"id": "1"}},
    "HealthCheckRid": {"rid": "HEALTH_CHECK_1"},
    "FakeHost": {"bootstrap_host": "2.2.2.2"},
    "UnknownPeer": {"bootstrap_host": "10.9.9.9"},
    "NoRoom": {"bootstrap_room": None},
    "CanaryRid": {"rid": "kvfence-drill-ForeignPage-1"},
}


@pytest.mark.parametrize(("why", "fields"), INTERNAL.items(), ids=INTERNAL.keys())
@pytest.mark.parametrize("stream", [False, True])
def test_internal_fields_are_refused_on_each_leg(
    admitted: Legs, why: str, fields: dict[str, Any], stream: bool
) -> None:
    for name, leg, path in legs(admitted):
        said = leg.ask(path, inferring(admitted, path) | fields | {"stream": stream})
        assert (said.status, said.json["type"]) == (400, why), (name, path)


def test_a_room_is_good_for_one_request_on_each_leg(admitted: Legs) -> None:
    for leg in admitted.values():
        asked = body(admitted, prompt="x" * 1500)
        assert leg.ask("/v1/completions", asked).status == 400, "too long, and its room is used up"
        again = leg.ask("/v1/completions", asked | {"prompt": "x"})
        assert (again.status, again.json["type"]) == (409, "SeenBefore")


def test_whoever_asks_for_evidence_is_answered_by_every_rank_of_now(admitted: Legs) -> None:
    for leg in admitted.values():
        nonce = secrets.token_hex(16)
        assert leg.ask("/server_info?kvfence_nonce=not-hexadecimal").json["type"] == "BadNonce"
        states = leg.ask(f"/server_info?kvfence_nonce={nonce}").json["internal_states"]
        ranks = leg.status()["ranks"]
        assert [nonce in said["attested"] for said in ranks] == [True] * len(ranks)
        assert [nonce in state["kvfence"]["attested"] for state in states] == [True] * len(states)
        assert states[0]["kvfence"]["nonce"] == ranks[0]["nonce"]


def test_a_header_cannot_choose_the_rank(admitted: Legs) -> None:
    said = admitted["prefill"].ask("/v1/completions", body(admitted), headers={"X-Data-Parallel-Rank": "0"})
    assert said.status == 400
    assert "routed_dp_rank is not for clients" in said.text


def test_a_batch_is_refused_before_any_of_it_is_sent(admitted: Legs) -> None:
    for leg in admitted.values():
        said = leg.ask("/v1/completions", body(admitted, prompt=["short", "x" * 1500]))
        assert (said.status, said.json["type"]) == (400, "Batch")


def test_no_path_beside_the_named_ones_is_served(admitted: Legs) -> None:
    leg = admitted["decode"]
    for method, path in paths(leg):
        if route(method, path) is Route.REFUSE:
            assert leg.ask(path, {} if method != "GET" else None, method).status == 403, (method, path)


def test_an_admission_cannot_be_replayed_overtaken_or_raise_the_cap(admitted: Legs, injection: Injection) -> None:
    leg = admitted["prefill"]
    epoch = leg.status()["epoch"]
    sent = {
        "OldEpoch": leg.admission(epoch=epoch),
        "CapRaised": leg.admission(cap=CAP + 1),
    }
    for reason, admission in sent.items():
        said = leg.tell("/admission", injection.body(admission))
        assert (said.status, said.json["reason"]) == (409, reason)
    assert leg.admit(peers=peers(admitted), epoch=epoch + 5).status == 200
    assert leg.admit(peers=peers(admitted), epoch=epoch + 3).json["reason"] == "OldEpoch"
    assert (leg.status()["epoch"], leg.status()["door"]) == (epoch + 5, "open")


def test_no_prompt_is_in_a_log(admitted: Legs) -> None:
    marker = "MARKER7ZQ"
    for leg in admitted.values():
        for spoiled in ({"rid": "HEALTH_CHECK"}, {"prompt": marker * 200}, {"prompt": [marker, marker]}, {"n": marker}):
            said = leg.ask("/v1/completions", body(admitted, prompt=marker) | spoiled)
            assert said.status == 400
        assert leg.ask("/v1/completions", b'{"prompt": "' + marker.encode()).status == 400
        assert marker not in leg.log.read_text(errors="replace")


def test_zz_a_lowered_cap_holds_at_once_without_a_restart(admitted: Legs) -> None:
    nonces = {name: leg.status()["nonces"] for name, leg in admitted.items()}
    for leg in admitted.values():
        assert leg.admit(cap=500, peers=peers(admitted)).status == 200
    assert ask_pair(admitted, 493).decode.prompt_tokens == 493
    answer = ask_pair(admitted, 494)
    assert (answer.prefill.status, answer.decode.status) == (400, 400)
    assert {name: leg.status()["nonces"] for name, leg in admitted.items()} == nonces
    assert json.loads(admitted["decode"].ask("/v1/models").text)["data"][0]["max_model_len"] == 500
