"""What runs in the HTTP process is ended when something escaped, and no answer that was cut looks like a whole one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

import pytest

from kvfence_engine.cutting import CutError, Cutter
from kvfence_engine.gate import PASSED, Gate, Passed
from kvfence_engine.middleware import DoorMiddleware
from kvfence_engine.state import Door, Grant, SharedState

Message = dict[str, Any]
Send = Callable[[Any], Awaitable[None]]

STREAM = "text/event-stream; charset=utf-8"
EVENT = b'data: {"text":"a"}\n\n'


def head(kind: str) -> Message:
    return {"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind.encode())]}


def body(part: bytes, *, more: bool = True) -> Message:
    return {"type": "http.response.body", "body": part, "more_body": more}


@dataclass
class Inside:
    """Stands in for SGLang's application: says what it was given and then waits, for good unless it is let go on."""

    says: list[Message] = field(default_factory=list)
    then: list[Message] = field(default_factory=list)
    """What it says when it is let go on, or ended."""
    swallows: bool = False
    """Whether it goes on as if nothing had been when it is ended, as `asyncio.wait_for` of Python 3.10 may."""
    raises: Exception | None = None
    """What it makes of its end."""
    passed: Passed | None = None
    was_ended: bool = False

    def __post_init__(self) -> None:
        self.goes_on = asyncio.Event()
        self.waits = asyncio.Event()
        self.all_wait = asyncio.Barrier(1)

    async def __call__(self, _scope: Any, receive: Callable[[], Awaitable[Any]], send: Send) -> None:
        await receive()
        self.passed = PASSED.get()
        for message in self.says:
            await send(message)
        self.waits.set()
        await self.all_wait.wait()
        try:
            await self.goes_on.wait()
        except asyncio.CancelledError:
            self.was_ended = True
            if self.raises is not None:
                raise self.raises from None
            if not self.swallows:
                raise
        for message in self.then:
            await send(message)


@dataclass
class Client:
    """One request, and what came of it."""

    task: asyncio.Task[None]
    got: list[Message]

    async def ended(self) -> BaseException | None:
        """Return how the connection ended for the server; an error breaks it off."""
        await asyncio.wait([self.task])
        return asyncio.CancelledError() if self.task.cancelled() else self.task.exception()

    @property
    def status(self) -> Any:
        return self.got[0]["status"]

    @property
    def text(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.got[1:])

    @property
    def is_whole(self) -> bool:
        return self.got[-1]["type"] == "http.response.body" and not self.got[-1].get("more_body")


class Process:
    """The door of an open engine with an application behind it, in the event loop that runs."""

    def __init__(self, inside: Inside) -> None:
        state = SharedState.create()
        state.set_grant(Grant(Door.OPEN, epoch=1, cap=100))
        self.inside = inside
        self.cutter = Cutter()
        gate = Gate(state, disaggregated=False)
        self.door = DoorMiddleware(inside, gate, self.cutter, lambda: None, lambda _: None)

    def ask(self) -> Client:
        parts = [{"type": "http.request", "body": b'{"text":"a"}', "more_body": False}]
        got: list[Message] = []

        async def receive() -> Message:
            return parts.pop(0) if parts else {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            got.append(message)

        scope: Message = {"type": "http", "method": "POST", "path": "/generate", "headers": []}
        return Client(asyncio.ensure_future(self.door(scope, receive, send)), got)


def play(scene: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(scene(), 10))


def check_503(client: Client) -> None:
    assert [message["type"] for message in client.got] == ["http.response.start", "http.response.body"]
    assert (client.status, client.is_whole) == (503, True)
    assert json.loads(client.text)["message"].startswith("this engine was closed")


def check_error_event(client: Client, *before: bytes) -> None:
    *events, last, rest = client.text.split(b"\n\n")
    assert [event + b"\n\n" for event in events] == list(before)
    assert json.loads(last.removeprefix(b"data: "))["error"]["code"] == 503
    assert (client.status, rest, client.is_whole) == (200, b"", True)


SILENT: dict[str, list[Message]] = {
    "nothing was said": [],
    "the head of a stream is held": [head(STREAM)],
    "the head of a stream and an empty piece": [head(STREAM), body(b"")],
}


@pytest.mark.parametrize("says", SILENT.values(), ids=SILENT.keys())
def test_a_request_that_was_sent_nothing_gets_503(says: list[Message]) -> None:
    async def scene() -> None:
        process = Process(Inside(says))
        client = process.ask()
        await process.inside.waits.wait()
        assert process.cutter.cut() == 1
        assert await client.ended() is None
        check_503(client)
        assert process.inside.was_ended

    play(scene)


def test_a_stream_that_has_begun_ends_with_one_event_that_says_why() -> None:
    async def scene() -> None:
        process = Process(Inside([head(STREAM), body(EVENT), body(EVENT)]))
        client = process.ask()
        await process.inside.waits.wait()
        process.cutter.cut()
        assert await client.ended() is None
        check_error_event(client, EVENT, EVENT)

    play(scene)


@pytest.mark.parametrize("says", [[head("application/json")], [head("application/json"), body(b'{"text": "a')]])
def test_a_plain_answer_that_has_begun_is_broken_off(says: list[Message]) -> None:
    async def scene() -> None:
        process = Process(Inside(says))
        client = process.ask()
        await process.inside.waits.wait()
        process.cutter.cut()
        assert isinstance(await client.ended(), CutError), "the server closes the connection on an error"
        assert client.got == says
        assert not client.is_whole

    play(scene)


@pytest.mark.parametrize("kind", [STREAM, "application/json"])
def test_an_answer_that_is_whole_already_is_left_alone(kind: str) -> None:
    async def scene() -> None:
        says = [head(kind), body(EVENT, more=False)]
        process = Process(Inside(says))
        client = process.ask()
        await process.inside.waits.wait()
        process.cutter.cut()
        assert await client.ended() is None
        assert client.got == says

    play(scene)


def test_a_refusal_that_became_the_answer_is_followed_by_nothing() -> None:
    async def scene() -> None:
        refusal = b'data: {"error":{"message":"too long","code":400}}\n\n'
        process = Process(Inside([head(STREAM), body(refusal)]))
        client = process.ask()
        await process.inside.waits.wait()
        process.cutter.cut()
        assert await client.ended() is None
        assert (client.status, len(client.got)) == (400, 2)

    play(scene)


@pytest.mark.parametrize("says", [[], [head(STREAM)], [head(STREAM), body(EVENT)]])
@pytest.mark.parametrize("raises", [None, ValueError("x")])
def test_what_an_application_says_after_its_end_is_not_sent(says: list[Message], raises: Exception | None) -> None:
    async def scene() -> None:
        rest = [body(b"another user's", more=False)] if says else [head(STREAM), body(b"another user's", more=False)]
        process = Process(Inside(says, then=rest, swallows=True, raises=raises))
        client = process.ask()
        await process.inside.waits.wait()
        process.cutter.cut()
        assert await client.ended() is None
        if len(says) == 2:
            check_error_event(client, EVENT)
        else:
            check_503(client)

    play(scene)


def test_all_that_run_are_ended_and_those_that_ended_before_are_not() -> None:
    async def scene() -> None:
        process = Process(Inside(then=[head("application/json"), body(b"{}", more=False)]))
        early = process.ask()
        await process.inside.waits.wait()
        process.inside.goes_on.set()
        assert await early.ended() is None
        assert (early.status, early.text) == (200, b"{}")
        process.inside.goes_on.clear()
        process.inside.all_wait = asyncio.Barrier(6)
        late = [process.ask() for _ in range(5)]
        await process.inside.all_wait.wait()
        assert process.cutter.cut() == 5
        for client in late:
            assert await client.ended() is None
            check_503(client)
        assert not process.cutter._running

    play(scene)


def test_what_comes_after_the_cut_never_reaches_the_application() -> None:
    async def scene() -> None:
        process = Process(Inside())
        assert process.cutter.cut() == 0
        client = process.ask()  # the gate may not have seen yet that the door is tainted
        assert await client.ended() is None
        check_503(client)
        assert process.inside.passed is None

    play(scene)


def test_a_request_keeps_as_what_it_passed_in_the_task_that_serves_it() -> None:
    async def scene() -> None:
        process = Process(Inside())
        process.ask()
        await process.inside.waits.wait()
        assert process.inside.passed is Passed.USER
        process.cutter.cut()

    play(scene)


def test_a_server_that_gives_a_request_up_ends_what_serves_it() -> None:
    async def scene() -> None:
        process = Process(Inside([head(STREAM), body(EVENT)]))
        client = process.ask()
        await process.inside.waits.wait()
        client.task.cancel()
        assert isinstance(await client.ended(), asyncio.CancelledError)
        assert process.inside.was_ended
        assert client.text == EVENT
        assert process.cutter.cut() == 0

    play(scene)


@pytest.mark.parametrize("error", [ValueError("of the application"), asyncio.CancelledError()], ids=repr)
def test_without_a_cut_an_application_ends_as_it_does(error: BaseException) -> None:
    async def fails() -> None:
        raise error

    async def scene() -> None:
        with pytest.raises(type(error)):
            await Cutter().run(fails())

    play(scene)
