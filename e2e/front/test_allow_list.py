"""A hostile client of the front: nothing but the inference paths, as they are written, reaches the router."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from e2e.front.sockets import ask, question, request

if TYPE_CHECKING:
    from e2e.front.nginx import Front
    from e2e.front.router import Router

CONTROL = [
    *("/workers", "/get_server_info", "/server_info", "/flush_cache", "/engine_metrics", "/metrics", "/health"),
    *("/health_generate", "/liveness", "/readiness", "/front", "/generate", "/get_loads", "/v1/loads", "/wasm"),
    *("/v1/messages", "/v1/responses", "/v1/embeddings", "/v1/rerank", "/v1/tokenizers", "/v1/tokenize", "/v1/loads"),
    *("/parse/function_call", "/start_profile", "/openapi.json", "/docs", "/v1", "/v1/", "/", "*", "/nginx_status"),
]
"""Paths of smg and SGLang that are not for users."""

TRICKS = [
    *("//v1/completions", "/v1//completions", "/v1/completions/", "/v1/completions/.", "/v1/./completions"),
    *("/v1/completions/../completions", "/x/../v1/completions", "/v1/completions/../../workers", "/../v1/completions"),
    *("/v1/%63ompletions", "/v1%2fcompletions", "/v1%2Fchat/completions", "/%76%31/completions", "/v1/completions%00"),
    *("/v1/completions%20", "/v1/completions%3f", "/v1/completions%0d%0a", "/v1/completions;a=b", "/v1/completions#a"),
    *("/v1/completions/../../workers?", "/v1/chat/completions/..%2f..%2f..%2fworkers", "/V1/completions"),
    *("/v1/Completions", "/v1/chat//completions", "/v1/chat/./completions", "\\v1\\completions", "/v1\\completions"),
    *("/v1/completionsx", "/xv1/completions", "/v1/completions.json", "/v1/chat", "/v1/\xc3\xa7ompletions"),
    *("http://pool.example/v1/completions", "http://127.0.0.1:30080/workers", "//127.0.0.1/v1/completions"),
    *("https://pool.example/v1/chat/completions", "v1/completions", "pool.example:80", "?/v1/completions"),
]
"""Other ways to write a path, some of which a server takes for `/v1/completions`."""

BODY = b'{"url": "http://rogue.example"}'


def posted(path: str) -> bytes:
    return request(f"POST {path} HTTP/1.1", "Content-Type: application/json", body=BODY)


OTHER_LINES = [
    "post /v1/completions HTTP/1.1",
    "Post /v1/completions HTTP/1.1",
    "POST /v1/completions HTTP/1.0",
    "POST /v1/completions HTTP/0.9",
    "POST /v1/completions HTTP/2.0",
    "POST /v1/completions HTTP/1.2",
    "POST /v1/completions http/1.1",
    "POST /v1/completions",
    "POST\t/v1/completions\tHTTP/1.1",
    "POST  /v1/completions HTTP/1.1",
    "POST /v1/completions  HTTP/1.1",
    "POST /v1/completions HTTP/1.1 HTTP/1.1",
    "POST /v1/completions x HTTP/1.1",
    "PRI * HTTP/2.0",
    "CONNECT 127.0.0.1:30080 HTTP/1.1",
    *(
        f"{method} /v1/completions HTTP/1.1"
        for method in ("GET", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "POSTX")
    ),
    *(f"{method} /v1/models HTTP/1.1" for method in ("POST", "DELETE", "OPTIONS", "PUT")),
]

FRAMINGS = {
    "a length and chunks": ["Content-Length: 31", "Transfer-Encoding: chunked"],
    "chunks and a length": ["Transfer-Encoding: chunked", "Content-Length: 31"],
    "two lengths": ["Content-Length: 31", "Content-Length: 0"],
    "a length that is no number": ["Content-Length: +31"],
    "a negative length": ["Content-Length: -1"],
    "an encoding that nobody knows": ["Transfer-Encoding: xchunked"],
    "chunks that are not the last": ["Transfer-Encoding: chunked, identity"],
    "two encodings": ["Transfer-Encoding: identity", "Transfer-Encoding: chunked"],
    "a space before the colon": ["Transfer-Encoding : chunked"],
    "a folded line": ["Transfer-Encoding:\r\n chunked"],
    "no host": [],
}


@pytest.mark.parametrize("path", [*CONTROL, *TRICKS])
def test_no_other_path_reaches_the_router(front: Front, behind: Router, path: str) -> None:
    for sent in (posted(path), request(f"GET {path} HTTP/1.1")):
        said = ask(front.users_port, sent)
        assert said.statuses
        assert said.statuses[0] in (400, 404)
    assert behind.lines == []


@pytest.mark.parametrize("path", [path for path in CONTROL if path.startswith("/")])
def test_control_behind_the_front_the_same_path_answers(front: Front, behind: Router, path: str) -> None:
    assert ask(front.router_port, posted(path)).statuses == [200]
    assert behind.lines == [f"POST {path} HTTP/1.1"]


@pytest.mark.parametrize("line", OTHER_LINES)
def test_no_other_method_or_version_reaches_the_router(front: Front, behind: Router, line: str) -> None:
    said = ask(front.users_port, request(line, body=BODY), seconds=2)
    assert all(status in (400, 404, 405, 426, 505) for status in said.statuses)
    assert behind.lines == []


@pytest.mark.parametrize(("path", "allowed"), [("/v1/completions", "post"), ("/v1/models", "get, head")])
def test_a_wrong_method_is_answered_with_the_right_one(front: Front, path: str, allowed: str) -> None:
    said = ask(front.users_port, request(f"DELETE {path} HTTP/1.1"))
    assert said.statuses == [405]
    assert f"allow: {allowed}" in said.head
    assert "application/json" in said.head


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/chat/completions", "/v1/models"])
def test_an_old_client_is_told_which_version_to_speak(front: Front, path: str) -> None:
    said = ask(front.users_port, request(f"GET {path} HTTP/1.0"))
    assert said.statuses == [426]
    assert "application/json" in said.head


@pytest.mark.parametrize("headers", FRAMINGS.values(), ids=FRAMINGS.keys())
def test_two_readings_of_where_a_request_ends_do_not_smuggle_another(
    front: Front, behind: Router, headers: list[str]
) -> None:
    inner = request("POST /workers HTTP/1.1", body=BODY)
    line = "POST /v1/completions HTTP/1.1"
    sent = "\r\n".join([line, *(["Host: pool.example"] if headers else []), *headers, "", ""]).encode() + b"0\r\n\r\n"
    said = ask(front.users_port, sent + inner, seconds=2)
    assert all(arrived == line for arrived in behind.lines), said.statuses
    assert not any(b"rogue" in arrived.body for arrived in behind.arrived)


def test_a_second_request_on_the_connection_is_judged_by_itself(front: Front, behind: Router) -> None:
    first = question().replace(b"Connection: close\r\n", b"")
    said = ask(front.users_port, first + posted("/workers"))
    assert said.statuses == [200, 404]
    assert behind.lines == ["POST /v1/completions HTTP/1.1"]


def test_a_body_on_a_path_that_is_not_there_is_not_taken_for_a_request(front: Front, behind: Router) -> None:
    inner = request("POST /v1/completions HTTP/1.1", body=BODY)
    said = ask(front.users_port, request("POST /workers HTTP/1.1", body=inner))
    assert said.statuses == [404]
    assert behind.lines == []


def test_an_upgrade_to_another_protocol_goes_no_further(front: Front, behind: Router) -> None:
    upgrade = ["Upgrade: websocket", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13"]
    for line in ("GET /v1/realtime HTTP/1.1", "GET /v1/completions HTTP/1.1"):
        asked = request(line, *upgrade, close=False).replace(b"\r\n\r\n", b"\r\nConnection: Upgrade\r\n\r\n")
        assert ask(front.users_port, asked, seconds=1).statuses[0] in (404, 405)
    assert behind.lines == []


@pytest.mark.parametrize(
    "line",
    [
        "POST /workers HTTP/1.1",
        "DELETE /workers HTTP/1.1",
        "GET /workers?x HTTP/1.1",
        "GET /workers/ HTTP/1.1",
        "GET //workers HTTP/1.1",
        "GET /%77orkers HTTP/1.1",
        "GET /readiness/../flush_cache HTTP/1.1",
        "GET /flush_cache HTTP/1.1",
        "GET /get_server_info HTTP/1.1",
        "POST /v1/completions HTTP/1.1",
        "GET / HTTP/1.1",
        "GET /workers HTTP/1.0",
    ],
)
def test_the_operators_port_has_three_paths_to_read_and_no_more(front: Front, behind: Router, line: str) -> None:
    assert ask(front.operator_port, request(line, body=BODY)).statuses[0] in (400, 404)
    assert behind.lines == []
