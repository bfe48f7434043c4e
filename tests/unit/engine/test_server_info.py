from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web

from kvfence.engine.server_info import ServerFacts, Unanswered, fetch, parse
from kvfence.engine.web import Web
from tests.unit.engine.servers import Handler, serving

INFO: dict[str, Any] = {
    "version": "0.5.23",
    "disaggregation_enable_kv_checksum": True,
    "disaggregation_mode": "prefill",
    "context_length": 4096,
    "page_size": 16,
    "max_req_input_len": 1018,
    "num_reserved_decode_tokens": 512,
    "allow_auto_truncate": False,
    "api_key": "a-key-of-the-server",
    "internal_states": [{"context_length": 1, "page_size": 2}],
}
MODELS = {"object": "list", "data": [{"id": "tiny", "object": "model", "max_model_len": 4096}]}
FACTS = ServerFacts("0.5.23", True, "prefill", 4096, 16, 1018, 512, False, ("tiny",))
NOTHING = ServerFacts(None, None, None, None, None, None, None, None, ())
FIELDS = {
    "version": "version",
    "disaggregation_enable_kv_checksum": "kv_checksum",
    "disaggregation_mode": "disaggregation_mode",
    "context_length": "context_length",
    "page_size": "page_size",
    "max_req_input_len": "max_input_tokens",
    "num_reserved_decode_tokens": "reserved_decode_tokens",
    "allow_auto_truncate": "allow_auto_truncate",
}


def facts(info: object, models: object = MODELS) -> ServerFacts:
    return parse(json.dumps(info).encode(), json.dumps(models).encode())


def test_a_running_server_s_facts_are_read() -> None:
    assert facts(INFO) == FACTS


@pytest.mark.parametrize("name", FIELDS)
def test_what_is_absent_or_null_is_not_known(name: str) -> None:
    wanted = replace(FACTS, **{FIELDS[name]: None})  # type: ignore[arg-type]
    assert facts({key: value for key, value in INFO.items() if key != name}) == wanted
    assert facts(INFO | {name: None}) == wanted


@pytest.mark.parametrize("name", FIELDS)
def test_what_has_another_type_is_not_guessed(name: str) -> None:
    odd: list[Any] = ["true", "1", 1, 1.0, True, [], {}]
    odd = [value for value in odd if type(value) is not type(INFO[name])]
    wrong: dict[type, list[Any]] = {str: ["x" * 1000, "a\x00b"], int: [-1, 2**60], bool: []}
    odd += wrong[type(INFO[name])]
    for value in odd:
        assert getattr(facts(INFO | {name: value}), FIELDS[name]) is None, value


# Excerpts in the shape of bodies seen in the field: two-node prefill of about 0.5.8, which has its arguments inside
# `internal_states`; a development version; a notebook's; a stub's; a mismatch of context and pool.
FIELD: list[tuple[dict[str, Any], ServerFacts]] = [
    (
        {
            "status": "ready",
            "max_total_num_tokens": 326223,
            "max_req_input_len": 163834,
            "internal_states": [{"context_length": None, "page_size": 1, "disaggregation_mode": "prefill"}],
        },
        replace(NOTHING, max_input_tokens=163834),
    ),
    (
        {"version": "0.0.0.dev1+g70df09b83", "context_length": 262144, "max_req_input_len": 262138},
        replace(NOTHING, version="0.0.0.dev1+g70df09b83", context_length=262144, max_input_tokens=262138),
    ),
    ({"internal_states": [{"memory_usage": {"token_capacity": 20480, "graph": 0.57}}]}, NOTHING),
    ({"page_size": 16, "disaggregation_mode": "null"}, replace(NOTHING, page_size=16, disaggregation_mode="null")),
    ({"max_total_num_tokens": 1000000}, NOTHING),
    (
        {"version": "0.5.11", "context_length": 1048576, "max_req_input_len": 284922, "page_size": 64},
        replace(NOTHING, version="0.5.11", context_length=1048576, max_input_tokens=284922, page_size=64),
    ),
]


@pytest.mark.parametrize(("info", "wanted"), FIELD)
def test_bodies_of_the_field_say_what_they_say_and_no_more(info: dict[str, Any], wanted: ServerFacts) -> None:
    assert facts(info, {"data": []}) == wanted


@pytest.mark.parametrize(
    ("listed", "names"),
    [
        ([{"id": "a"}, {"id": "b"}], ("a", "b")),
        ([{"id": 5}, {"id": ""}, {}, None, "x", {"id": "a"}, {"id": "a\nb"}], ("a",)),
        (None, ()),
        ({"id": "a"}, ()),
        ("a", ()),
    ],
)
def test_served_models_are_those_that_can_be_read(listed: object, names: tuple[str, ...]) -> None:
    assert facts(INFO, {"data": listed}).served_models == names


@pytest.mark.parametrize("body", [b"", b"[]", b"null", b"nope", b"[" * 100_000, b"\xff"])
def test_what_is_no_json_object_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match="/server_info is not a JSON object"):
        parse(body, b"{}")
    with pytest.raises(ValueError, match="/v1/models is not a JSON object"):
        parse(b"{}", body)


def test_no_key_of_the_server_is_kept() -> None:
    assert "a-key-of-the-server" not in repr(facts(INFO))


# --- asking ---


def fetched(handler: Handler) -> ServerFacts | Unanswered:
    async def ask() -> ServerFacts | Unanswered:
        async with serving(handler) as server, Web(5) as client:
            return await fetch(client, str(server.make_url("")).rstrip("/"))

    return asyncio.run(ask())


def saying(bodies: dict[str, web.Response]) -> Handler:
    async def handler(request: web.Request) -> web.StreamResponse:
        return bodies[request.path]

    return handler


def test_both_are_asked_for() -> None:
    assert fetched(saying({"/server_info": web.json_response(INFO), "/v1/models": web.json_response(MODELS)})) == FACTS


@pytest.mark.parametrize(
    ("path", "body", "why"),
    [
        ("/server_info", web.Response(status=503), "GET /server_info of the engine: the answer had status 503"),
        ("/v1/models", web.Response(status=404), "GET /v1/models of the engine: the answer had status 404"),
        ("/server_info", web.Response(body=b"[]"), "the engine's /server_info is not a JSON object"),
        ("/v1/models", web.Response(body=b"x"), "the engine's /v1/models is not a JSON object"),
    ],
)
def test_one_that_does_not_answer_well_is_no_answer(path: str, body: web.Response, why: str) -> None:
    bodies = {"/server_info": web.json_response(INFO), "/v1/models": web.json_response(MODELS)}
    assert fetched(saying(bodies | {path: body})) == Unanswered(why)


def test_a_server_that_cannot_be_reached_is_no_answer() -> None:
    async def ask() -> ServerFacts | Unanswered:
        async with Web(5) as client:
            return await fetch(client, "http://127.0.0.1:9")

    assert asyncio.run(ask()) == Unanswered("GET /server_info of the engine: there was no connection, or it broke")
