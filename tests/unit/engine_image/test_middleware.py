"""The door in an application: who gets to it, with which body, and what becomes of refusals inside streams."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any

import pytest

from kvfence_engine.cutting import Cutter
from kvfence_engine.gate import PASSED, Gate, Passed
from kvfence_engine.middleware import DoorMiddleware
from kvfence_engine.requests import Refused
from kvfence_engine.state import Door, Grant, SharedState

Message = dict[str, Any]


@dataclass
class Inside:
    """Stands in for SGLang's application: notes what reached it, and answers with the messages that it was given."""

    answer: list[Message] = field(default_factory=lambda: [*head("application/json"), body(b'{"text":"x"}')])
    raises: Exception | None = None
    seen: list[tuple[str, bytes, Passed | None]] = field(default_factory=list)

    async def __call__(
        self, scope: Any, receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]
    ) -> None:
        if scope["type"] == "http":
            read = (await receive())["body"] if scope["method"] == "POST" else b""
            self.seen.append((scope["path"], read, PASSED.get()))
            for message in self.answer:
                await send(message)
            if self.raises is not None:
                raise self.raises


def head(kind: str, status: int = 200) -> list[Message]:
    return [{"type": "http.response.start", "status": status, "headers": [(b"content-type", kind.encode())]}]


def body(part: bytes, *, more: bool = False) -> Message:
    return {"type": "http.response.body", "body": part, "more_body": more}


@dataclass
class Asked:
    """A door with an application behind it, and a client."""

    inside: Inside
    state: SharedState
    started: int = 0
    nonces: list[tuple[str, int]] = field(default_factory=list)
    """Each with how many requests had reached the application before it was told."""

    def __post_init__(self) -> None:
        self.gate = Gate(self.state, disaggregated=False)
        self.door = DoorMiddleware(self.inside, self.gate, Cutter(), self.start, self.draw)

    def draw(self, nonce: str) -> None:
        self.nonces.append((nonce, len(self.inside.seen)))

    def start(self) -> None:
        self.started += 1

    def stand(self, door: Door, **fields: Any) -> None:
        self.state.set_grant(replace(Grant(door, epoch=self.state.grant().epoch + 1, cap=100), **fields))

    def ask(
        self,
        path: str,
        sent: bytes | object = None,
        method: str = "POST",
        headers: tuple[tuple[bytes, bytes], ...] = (),
        query: bytes = b"",
    ) -> tuple[int, str]:
        raw = sent if isinstance(sent, bytes) else json.dumps(sent).encode()
        half = len(raw) // 2
        parts = [{"type": "http.request", "body": raw[:half], "more_body": True}]
        parts += [{"type": "http.request", "body": raw[half:], "more_body": False}]
        got: list[Message] = []

        async def receive() -> Message:
            return parts.pop(0) if parts else {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            got.append(message)

        scope: Message = {"type": "http", "method": method, "path": path, "headers": list(headers)}
        scope["query_string"] = query
        asyncio.run(self.door(scope, receive, send))
        assert [message["type"] for message in got].count("http.response.start") == 1
        return got[0]["status"], b"".join(message.get("body", b"") for message in got[1:]).decode()


@pytest.fixture
def asked() -> Asked:
    return Asked(Inside(), SharedState.create())


INFER = ["/v1/completions", "/v1/chat/completions", "/generate"]
HEALTH = ["/health", "/health_generate", "/ready"]


@pytest.mark.parametrize("door", [Door.CLOSED, Door.DRAINING, Door.TAINTED])
@pytest.mark.parametrize("path", [*INFER, *HEALTH, "/v1/embeddings", "/flush_cache", "/no/such/path"])
def test_a_door_that_is_shut_answers_503_and_nothing_gets_inside(asked: Asked, door: Door, path: str) -> None:
    asked.stand(door)
    status, text = asked.ask(path, {"prompt": "a"}, "GET" if path in HEALTH else "POST")
    assert status == 503
    assert json.loads(text)["message"].startswith("this engine is ")
    assert asked.inside.seen == []


@pytest.mark.parametrize("path", INFER)
def test_an_open_door_hands_the_body_on_as_it_came(asked: Asked, path: str) -> None:
    asked.stand(Door.OPEN)
    sent = b'{"prompt" :\t"a", "kvfence_pass": 1}'
    assert asked.ask(path, sent) == (200, '{"text":"x"}')
    assert asked.inside.seen == [(path, sent, Passed.USER)]


def test_what_only_observes_passes_a_closed_door(asked: Asked) -> None:
    assert asked.ask("/server_info", method="GET")[0] == 200
    assert asked.inside.seen == [("/server_info", b"", None)]


NONCE = "0123456789abcdefABCDEF"


@pytest.mark.parametrize("nonce", [NONCE, NONCE[:16], "f" * 64])
def test_a_nonce_is_taken_before_the_ranks_are_asked_and_through_a_closed_door(asked: Asked, nonce: str) -> None:
    assert asked.ask("/server_info", method="GET", query=f"a=1&kvfence_nonce={nonce}".encode())[0] == 200
    assert asked.nonces == [(nonce, 0)]
    assert [path for path, _, _ in asked.inside.seen] == ["/server_info"]


MALFORMED = {
    "empty": b"kvfence_nonce=",
    "no value": b"kvfence_nonce",
    "too short": b"kvfence_nonce=" + b"a" * 15,
    "too long": b"kvfence_nonce=" + b"a" * 65,
    "no hexadecimal digits": b"kvfence_nonce=" + b"g" * 16,
    "a line of a log": b"kvfence_nonce=" + b"a" * 16 + b"%0Aroot",
    "an end of line": b"kvfence_nonce=" + b"a" * 16 + b"%0A",
    "two": b"kvfence_nonce=" + b"a" * 16 + b"&kvfence_nonce=" + b"b" * 16,
    "one and an empty one": b"kvfence_nonce=" + b"a" * 16 + b"&kvfence_nonce=",
    "not ASCII": b"kvfence_nonce=" + b"\xff" * 16,
    "digits of another script": b"kvfence_nonce=" + "\u0661".encode() * 16,
    "escaped digits of another script": b"kvfence_nonce=" + b"%D9%A1" * 16,
    "no UTF-8": b"kvfence_nonce=" + b"%FF" * 16,
}


@pytest.mark.parametrize("query", MALFORMED.values(), ids=MALFORMED.keys())
def test_a_nonce_that_is_none_is_refused_and_no_rank_is_asked(asked: Asked, query: bytes) -> None:
    status, text = asked.ask("/server_info", method="GET", query=query)
    assert (status, json.loads(text)["type"]) == (400, "BadNonce")
    assert (asked.nonces, asked.inside.seen) == ([], [])


def test_who_asks_without_a_nonce_gets_the_answer_and_draws_none(asked: Asked) -> None:
    assert asked.ask("/server_info", method="GET", query=b"a=1&b")[0] == 200
    assert asked.nonces == []


def test_an_open_door_has_no_other_paths(asked: Asked) -> None:
    asked.stand(Door.OPEN)
    assert asked.ask("/v1/embeddings", {})[0] == 403
    assert asked.ask("/generate", {}, "PUT")[0] == 403
    assert asked.ask("/health", method="GET")[0] == 200
    assert asked.inside.seen == [("/health", b"", Passed.HEALTH)]


BAD: dict[str, tuple[object, int]] = {
    "no JSON": (b"prompt=a", 400),
    "a list": ([1], 400),
    "nested without end": (b"[" * 100_000, 400),
    "nothing": (b"", 400),
    "an internal field": ({"prompt": "a", "session_params": {}}, 400),
}


@pytest.mark.parametrize(("sent", "status"), BAD.values(), ids=BAD.keys())
def test_a_bad_body_stays_outside(asked: Asked, sent: object, status: int) -> None:
    asked.stand(Door.OPEN)
    assert asked.ask("/generate", sent)[0] == status
    assert asked.inside.seen == []


def test_a_body_that_the_door_cannot_read_stays_outside(asked: Asked) -> None:
    asked.stand(Door.OPEN)
    assert asked.ask("/generate", {"text": "a"}, headers=((b"content-encoding", b"gzip"),))[0] == 415
    assert asked.ask("/generate", {"text": "a"}, headers=((b"content-encoding", b"identity"),))[0] == 200


def test_a_pass_is_good_for_one_request_on_canary(asked: Asked) -> None:
    asked.stand(Door.CANARY, passes=(sha256(b"in").hexdigest(),))
    sent = {"prompt": "a", "kvfence_pass": "in"}
    assert asked.ask("/generate", {"prompt": "a"})[0] == 503
    assert asked.ask("/generate", sent | {"kvfence_pass": "out"})[0] == 503
    assert asked.ask("/generate", sent | {"session_params": {}})[0] == 400, "a refused request uses up no pass"
    assert asked.ask("/generate", sent)[0] == 200
    assert asked.ask("/generate", sent)[0] == 503
    asked.stand(Door.CANARY, passes=(sha256(b"in").hexdigest(),))
    assert asked.ask("/generate", sent)[0] == 503, "nor in a later epoch"
    assert [passed for _, _, passed in asked.inside.seen] == [Passed.CANARY]


def test_an_engine_on_canary_is_healthy_and_serves_no_user(asked: Asked) -> None:
    asked.stand(Door.CANARY, passes=(sha256(b"in").hexdigest(),))
    assert [asked.ask(path, method="GET")[0] for path in HEALTH] == [200, 200, 200]
    assert [asked.ask(path, {"prompt": "a"})[0] for path in [*INFER, "/flush_cache", "/no/such/path"]] == [503] * 5
    assert asked.inside.seen == [(path, b"", Passed.HEALTH) for path in HEALTH]


def test_a_state_that_cannot_be_read_is_a_closed_door(asked: Asked) -> None:
    asked.stand(Door.OPEN)
    asked.state._grant.write(b"not JSON")
    assert asked.ask("/generate", {"prompt": "a"})[0] == 503


def test_what_did_not_come_through_the_door_is_refused_deep_inside(asked: Asked) -> None:
    asked.stand(Door.OPEN)
    assert isinstance(asked.gate.confirm(None, {}), Refused)
    assert asked.gate.confirm(Passed.USER, {}) is None
    assert isinstance(asked.gate.confirm(Passed.USER, {"routed_dp_rank": 0}), Refused)
    assert asked.gate.confirm(Passed.HEALTH, {"rid": "HEALTH_CHECK_1", "bootstrap_host": "2.2.2.2"}) is None
    asked.stand(Door.CANARY)
    assert isinstance(asked.gate.confirm(Passed.USER, {}), Refused)
    assert asked.gate.confirm(Passed.CANARY, {}) is None
    assert asked.gate.confirm(Passed.HEALTH, {"rid": "HEALTH_CHECK_1"}) is None
    for door in (Door.CLOSED, Door.DRAINING, Door.TAINTED):
        asked.stand(door)
        for passed in Passed:
            assert isinstance(asked.gate.confirm(passed, {}), Refused)


STREAM = "text/event-stream; charset=utf-8"
ERROR = b'data: {"error":{"message":"too long","code":400}}\n\n'


def test_an_error_at_the_start_of_a_stream_becomes_its_status(asked: Asked) -> None:
    asked.stand(Door.OPEN)
    asked.inside.answer = [*head(STREAM), body(b"", more=True), body(ERROR, more=True), body(b"data: [DONE]\n\n")]
    assert asked.ask("/generate", {"text": "a", "stream": True}) == (400, '{"error":{"message":"too long","code":400}}')


def test_a_stream_that_begins_well_is_left_alone(asked: Asked) -> None:
    asked.stand(Door.OPEN)
    asked.inside.answer = [*head(STREAM), body(b'data: {"text":"a"}\n\n', more=True), body(ERROR)]
    assert asked.ask("/generate", {"text": "a"}) == (200, 'data: {"text":"a"}\n\n' + ERROR.decode())


def test_a_stream_without_any_event_is_sent(asked: Asked) -> None:
    asked.stand(Door.OPEN)
    asked.inside.answer = [*head(STREAM), body(b"")]
    assert asked.ask("/generate", {"text": "a"}) == (200, "")


class StatusError(Exception):
    status_code = 503


def test_what_is_raised_before_the_first_event_has_its_status(asked: Asked) -> None:
    asked.stand(Door.OPEN)
    asked.inside.answer = head(STREAM)
    asked.inside.raises = StatusError()
    assert asked.ask("/generate", {"text": "a"})[0] == 503


def test_the_start_of_the_server_is_told_once(asked: Asked) -> None:
    async def never(*_: object) -> Message:
        return {}

    async def ignore(_: object) -> None:
        return

    asyncio.run(asked.door({"type": "lifespan"}, never, ignore))
    assert asked.started == 1


def test_a_websocket_is_refused(asked: Asked) -> None:
    asked.stand(Door.OPEN)
    got: list[Message] = []

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        got.append(message)

    asyncio.run(asked.door({"type": "websocket", "path": "/v1/realtime"}, receive, send))
    assert got == [{"type": "websocket.close", "code": 1008}]
