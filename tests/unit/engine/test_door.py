from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st

from kvfence.engine import door
from kvfence.engine.door import (
    DoorClient,
    DoorState,
    DoorStatus,
    RankStatus,
    Refused,
    Unanswered,
    parse_status,
)
from tests.unit.engine.servers import Handler, saying, serving

RANK = {
    "index": 0,
    "pid": 70,
    "nonce": "n-rank-0",
    "pool_tokens": 1024,
    "page_size": 16,
    "boot_input_limit": 1018,
    "input_limit": 994,
    "epoch": 2,
}
SAID: dict[str, Any] = {
    "version": "0.1.0",
    "pool": "pool-uid",
    "pod": "pod-uid",
    "door": "canary",
    "epoch": 2,
    "cap": 1000,
    "peers": ["10.0.0.1:8998"],
    "started": True,
    "nonces": ["n-http", "n-rank-0", "n-rank-1"],
    "server": {"pid": 7, "nonce": "n-http", "sglang": "0.5.23", "ranks": 2, "serving": True, "epoch": 2},
    "ranks": [RANK | {"index": 1, "nonce": "n-rank-1"}, RANK],
    "fault": None,
}
STATUS = DoorStatus(
    version="0.1.0",
    pool="pool-uid",
    pod="pod-uid",
    door=DoorState.CANARY,
    epoch=2,
    cap=1000,
    peers=("10.0.0.1:8998",),
    started=True,
    nonces=("n-http", "n-rank-0", "n-rank-1"),
    sglang="0.5.23",
    ranks=(
        RankStatus(0, "n-rank-0", 1024, 16, 1018, 994, 2),
        RankStatus(1, "n-rank-1", 1024, 16, 1018, 994, 2),
    ),
    fault=None,
    server_epoch=2,
)


def raw(**changes: Any) -> bytes:
    return json.dumps(SAID | changes).encode()


def asked(handler: Handler, ask: Callable[[DoorClient, str], Any]) -> Any:
    """Return what a client of the server's port says."""

    async def run() -> Any:
        async with serving(handler) as server, DoorClient(port=server.port or 0) as client:
            return await ask(client, "127.0.0.1")

    return asyncio.run(run())


def status_of(status: int, body: bytes) -> Any:
    return asked(saying(status, body), lambda client, host: client.status(host))


def admitted(status: int, body: bytes) -> Any:
    return asked(saying(status, body), lambda client, host: client.admit(host, {"message": "m", "signature": "s"}))


# --- what a status is ---


def test_a_status_is_read_with_its_ranks_in_order() -> None:
    assert parse_status(raw()) == STATUS


def test_an_engine_that_starts_has_neither_nonces_nor_a_version() -> None:
    status = parse_status(raw(started=False, nonces=[], server=None, ranks=[], epoch=0, cap=0, door="closed", peers=[]))
    assert (status.started, status.nonces, status.sglang, status.ranks) == (False, (), None, ())


def test_a_fault_is_cut_and_made_printable() -> None:
    fault = parse_status(raw(fault="a\nb\x1b" + "c" * 1000)).fault
    assert fault is not None
    assert fault.startswith("a b c")
    assert len(fault) == 300


BROKEN: dict[str, list[Any]] = {
    "version": [None, "", 1, ["0.1"], "x" * 301, "a\nb"],
    "pool": [None, "", 7],
    "pod": [None, "", 7],
    "door": [None, "ajar", 1, "", "OPEN"],
    "epoch": [None, -1, 1.0, True, "1", 2**53],
    "cap": [None, -1, 1.5, False, 2**60],
    "peers": [None, "10.0.0.1:8998", [1], ["a\x00"]],
    "started": [None, 1, "yes"],
    "nonces": [None, "n", [None], ["only-one"]],
    "server": [
        *("0.5.23", {}, {"sglang": 5}, []),
        *({"sglang": "0.5.23"} | epoch for epoch in ({}, {"epoch": None}, {"epoch": "2"}, {"epoch": -1})),
    ],
    "ranks": [None, {}, [1], [RANK, RANK], [RANK] * 300, *[[RANK | {name: None}] for name in RANK if name != "pid"]],
    "fault": [1, {}, ["x"]],
}


@pytest.mark.parametrize(("field", "value"), [(field, value) for field, values in BROKEN.items() for value in values])
def test_a_field_that_is_not_what_it_should_be_is_named(field: str, value: Any) -> None:
    with pytest.raises(ValueError, match=r".") as refused:
        parse_status(raw(**{field: value}))
    assert field.removesuffix("s") in str(refused.value)


@pytest.mark.parametrize("field", [field for field in SAID if field not in {"server", "fault"}])
def test_a_field_that_is_missing_is_named(field: str) -> None:
    said = {name: value for name, value in SAID.items() if name != field}
    with pytest.raises(ValueError, match=field):
        parse_status(json.dumps(said).encode())


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"null", b"{", b"\xff", b"[" * 100_000, b'{"epoch": ' + b"9" * 5000 + b"}"]
)
def test_what_is_no_object_is_no_status(body: bytes) -> None:
    with pytest.raises(ValueError, match="the status is not a JSON object"):
        parse_status(body)


def test_nonces_without_a_start_contradict() -> None:
    with pytest.raises(ValueError, match="has not started"):
        parse_status(raw(started=False))


ANYTHING = st.none() | st.booleans() | st.integers() | st.text(max_size=5)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.sampled_from(sorted(SAID)), ANYTHING | st.lists(ANYTHING, max_size=3), max_size=4))
def test_whatever_stands_in_the_fields_it_is_a_status_or_a_value_error(changes: dict[str, Any]) -> None:
    with suppress(ValueError):
        assert isinstance(parse_status(raw(**changes)), DoorStatus)


# --- whether a cap was taken ---


SERVER = SAID["server"]
TAKEN: dict[str, tuple[dict[str, Any], bool]] = {
    "all took it": ({}, True),
    "nobody did yet": ({"epoch": 3}, False),
    "the server has not": ({"server": SERVER | {"epoch": 1}}, False),
    "the server does not say what it is": ({"server": None}, False),
    "one rank has not": ({"ranks": [RANK, RANK | {"index": 1, "epoch": 1}]}, False),
    "one rank took one of later": ({"ranks": [RANK, RANK | {"index": 1, "epoch": 3}]}, False),
    "one rank takes prompts as long as the cap": ({"ranks": [RANK, RANK | {"index": 1, "input_limit": 1000}]}, False),
    "one rank takes prompts up to the cap": ({"ranks": [RANK, RANK | {"index": 1, "input_limit": 999}]}, True),
    "it was never told one": (
        {
            "epoch": 0,
            "cap": 0,
            "server": SERVER | {"epoch": 0},
            "ranks": [RANK | {"index": n, "epoch": 0} for n in (0, 1)],
        },
        False,
    ),
}


@pytest.mark.parametrize(("changes", "applied"), TAKEN.values(), ids=TAKEN)
def test_a_cap_counts_when_every_process_of_the_engine_took_it(changes: dict[str, Any], *, applied: bool) -> None:
    """A door tells what it was granted before its processes have taken it."""
    assert parse_status(raw(**changes)).applied is applied


# --- asking ---


def test_a_launcher_is_asked_for_its_status() -> None:
    seen = []

    async def handler(request: web.Request) -> web.StreamResponse:
        seen.append((request.method, request.path))
        return web.json_response(SAID)

    assert asked(handler, lambda client, host: client.status(host)) == STATUS
    assert seen == [("GET", "/status")]


def test_an_admission_is_handed_over_and_the_status_after_it_comes_back() -> None:
    seen: list[Any] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        seen.append((request.method, request.path, await request.json()))
        assert request.content_length  # the launcher wants the length said
        return web.json_response(SAID)

    body = {"message": "m", "signature": "s"}
    assert asked(handler, lambda client, host: client.admit(host, body)) == STATUS
    assert seen == [("POST", "/admission", body)]


@pytest.mark.parametrize("status", [400, 403, 409, 503, 504])
def test_a_refusal_has_its_reason_and_its_words(status: int) -> None:
    said = json.dumps({"reason": "OldEpoch", "message": "epoch 3\nis not newer"}).encode()
    assert admitted(status, said) == Refused("OldEpoch", "epoch 3 is not newer")


def test_the_words_of_a_refusal_are_cut() -> None:
    refused = admitted(409, json.dumps({"reason": "R" * 9000, "message": "m" * 9000}).encode())
    assert (len(refused.reason), len(refused.message)) == (300, 300)


@pytest.mark.parametrize(
    "body",
    [b"", b"no", b"[]", b'{"message": "an admission says its length"}', b'{"reason": 5, "message": "m"}', b"[" * 9000],
)
def test_a_refusal_without_a_reason_is_no_answer(body: bytes) -> None:
    answer = admitted(413, body)
    assert answer == Unanswered("POST /admission of the launcher: the answer had status 413")


@pytest.mark.parametrize(("status", "body"), [(200, b"{}"), (200, b"not json"), (302, b""), (500, raw()), (203, raw())])
@pytest.mark.parametrize("ask", [status_of, admitted])
def test_what_is_no_status_is_no_answer(status: int, body: bytes, ask: Callable[[int, bytes], Any]) -> None:
    answer = ask(status, body)
    assert isinstance(answer, Unanswered)
    assert answer.why.startswith(("GET /status", "POST /admission"))


def test_a_status_of_an_admission_that_cannot_be_read_says_why() -> None:
    assert admitted(200, raw(cap=-1)) == Unanswered("POST /admission of the launcher: cap is not a whole number from 0")


def test_a_status_without_end_is_cut() -> None:
    async def flood(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b" " * 65536)

    answer = asked(flood, lambda client, host: client.status(host))
    assert answer == Unanswered("GET /status of the launcher: the answer was too large")


def test_a_launcher_that_is_silent_is_left_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "STATUS_SECONDS", 0.2)

    async def hang(_request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(1.5)
        return web.json_response(SAID)

    answer = asked(hang, lambda client, host: client.status(host))
    assert "no complete answer came in time" in answer.why


def test_an_admission_may_take_longer_than_the_ranks_have() -> None:
    assert door.ADMIT_SECONDS > 60


def test_a_port_where_nobody_listens_is_no_answer() -> None:
    async def ask() -> Any:
        async with DoorClient(port=9) as client:
            return await client.status("127.0.0.1")

    assert asyncio.run(ask()) == Unanswered("GET /status of the launcher: there was no connection, or it broke")


@pytest.mark.parametrize("host", ["", "a/b", "user@host", "a:80", "a b", "a?b", "a#b", "[::1]", "a\nb"])
def test_an_address_that_leads_elsewhere_is_not_asked(host: str) -> None:
    async def ask() -> list[Any]:
        async with DoorClient() as client:
            return [await client.status(host), await client.admit(host, {})]

    assert asyncio.run(ask()) == [Unanswered("the pod's address is not a host")] * 2


def test_an_address_of_ipv6_works() -> None:
    async def ask() -> Any:
        async def handler(_request: web.Request) -> web.StreamResponse:
            return web.json_response(SAID)

        app = web.Application()
        app.router.add_get("/status", handler)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "::1", 0)
        await site.start()
        try:
            (address,) = runner.addresses
            async with DoorClient(port=address[1]) as client:
                return await client.status("::1")
        finally:
            await runner.cleanup()

    assert asyncio.run(ask()) == STATUS
