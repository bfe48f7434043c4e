"""What users get through the front, and what the router behind it gets to see."""

from __future__ import annotations

import json
import socket
import time
from typing import TYPE_CHECKING

import pytest

from e2e.front.router import WAIT_SECONDS, Router, serving
from e2e.front.sockets import HOST, Said, ask, question, read, request
from kvfence.render.front import models_json

if TYPE_CHECKING:
    from e2e.conftest import Measured
    from e2e.front.nginx import Front

INFERENCE = ["/v1/completions", "/v1/chat/completions"]
PASSED_ON = {"host", "connection", "content-type", "content-length", "accept", "traceparent", "tracestate"}


def error_code(said: Said) -> str:
    code = json.loads(said.body)["error"]["code"]
    assert isinstance(code, str)
    return code


@pytest.mark.parametrize("path", INFERENCE)
def test_an_inference_request_reaches_the_router_as_its_body_alone(front: Front, behind: Router, path: str) -> None:
    secret = ["Authorization: Bearer secret", "Cookie: a=secret", "X-Api-Key: secret", "X-Request-Id-Kvfence: secret"]
    steering = ["x-smg-target-worker: 1", "x-smg-routing-key: a", "X-Forwarded-For: 1.2.3.4", "Upgrade: websocket"]
    kept = ["Accept: text/event-stream", "traceparent: 00-1-2-01", "tracestate: a=b"]
    said = ask(front.users_port, question(f"{path}?api_key=secret&x=/workers", *secret, *steering, *kept))
    assert said.statuses == [200]
    assert said.body == behind.answer.decode()
    (arrived,) = behind.arrived
    assert arrived.line == f"POST {path} HTTP/1.1"
    assert arrived.body == b'{"model": "tiny"}'
    assert set(arrived.headers) == PASSED_ON
    assert arrived.headers["accept"] == "text/event-stream"
    assert "secret" not in str(arrived)


def test_a_chunked_request_arrives_whole(front: Front, behind: Router) -> None:
    head = request("POST /v1/completions HTTP/1.1", "Transfer-Encoding: chunked")
    assert ask(front.users_port, head + b'5\r\n{"a":\r\n2\r\n1}\r\n0\r\n\r\n').statuses == [200]
    assert behind.arrived[0].body == b'{"a":1}'


def test_a_client_that_waits_to_be_asked_for_its_body_is_asked(front: Front, behind: Router) -> None:
    said = ask(front.users_port, question("/v1/completions", "Expect: 100-continue"))
    assert said.statuses == [100, 200]
    assert len(behind.arrived) == 1


def test_a_stream_arrives_as_it_is_written(front: Front, behind: Router) -> None:
    behind.streaming = True
    with socket.create_connection((HOST, front.users_port)) as connection:
        connection.sendall(question())
        assert "data: first" in read(connection, b"first\n\n")
        behind.go_on.set()  # the second event is written only now
        assert "data: second" in read(connection, b"second\n\n")  # the stream has not ended yet
        behind.finish.set()
        assert read(connection, b"0\r\n\r\n").endswith("0\r\n\r\n")


def test_a_prompt_is_passed_on_as_it_comes_and_not_kept_on_a_disk(front: Front, behind: Router) -> None:
    head, _, body = question(body=b"x" * 100_000).partition(b"\r\n\r\n")
    with socket.create_connection((HOST, front.users_port)) as connection:
        connection.sendall(head + b"\r\n\r\n" + body[:50_000])
        deadline = time.monotonic() + WAIT_SECONDS
        while not behind.lines and time.monotonic() < deadline:
            time.sleep(0.01)
        assert behind.lines == ["POST /v1/completions HTTP/1.1"]
        connection.sendall(body[50_000:])
        assert Said(read(connection, b"", 2)).statuses == [200]


def test_the_router_learns_at_once_that_a_client_left(front: Front, behind: Router, measured: Measured) -> None:
    behind.streaming = behind.chatty = True
    with socket.create_connection((HOST, front.users_port)) as connection:
        connection.sendall(question())
        read(connection, b"first\n\n")
    began = time.monotonic()
    assert behind.left.wait(WAIT_SECONDS)
    measured("from a client's leaving to the router", time.monotonic() - began, 2)


def test_a_prompt_is_not_sent_again_when_the_router_hangs_up(front: Front, behind: Router) -> None:
    behind.hang_up = True
    said = ask(front.users_port, question())
    assert said.statuses == [502]
    assert error_code(said) == "router_unavailable"
    assert len(behind.lines) == 1


def test_a_front_whose_router_is_not_up_yet_says_so_and_serves_as_soon_as_it_is(front: Front) -> None:
    said = ask(front.users_port, question())
    assert (said.statuses, error_code(said)) == ([502], "router_unavailable")
    with serving(front.router_port, Router()):
        assert ask(front.users_port, question()).statuses == [200]


def test_addresses_of_engines_do_not_come_back_and_an_engine_does_not_steer_the_front(
    front: Front, behind: Router
) -> None:
    behind.headers = {
        "x-smg-routed-worker-id": "http://10.0.0.1:30000",
        "X-Accel-Redirect": "/v1/models",
        "Set-Cookie": "a=b",
        "x-smg-error-code": "kept",
    }
    said = ask(front.users_port, question())
    assert said.statuses == [200]
    assert said.body == behind.answer.decode()
    assert "x-smg-error-code: kept" in said.head
    assert not any(word in said.head for word in ("10.0.0.1", "accel", "cookie"))


def test_what_the_router_refuses_comes_back_as_the_router_said_it(front: Front, behind: Router) -> None:
    behind.answer = b'{"error": {"code": "prefill_bad_request"}}'
    assert error_code(ask(front.users_port, question())) == "prefill_bad_request"


def test_a_request_that_is_too_long_is_refused_before_it_is_sent(front: Front, behind: Router) -> None:
    said = ask(
        front.users_port, request("POST /v1/completions HTTP/1.1", f"Content-Length: {64 * 2**20 + 1}"), seconds=1
    )
    assert said.statuses == [413]
    assert error_code(said) == "request_too_large"
    assert behind.lines == []


def test_the_list_of_models_is_the_fronts_own_and_a_change_is_served_at_once(front: Front, behind: Router) -> None:
    ask_for_models = request("GET /v1/models HTTP/1.1", close=False)
    with socket.create_connection((HOST, front.users_port)) as connection:
        for tokens in (1000, 984, None, 970):
            front.publish(models_json("tiny", tokens))
            connection.sendall(ask_for_models)
            said = Said(read(connection, b"]}\n"))
            assert said.statuses == [200]
            assert "content-type: application/json" in said.head
            assert "cache-control: no-store" in said.head
            assert [model["max_model_len"] for model in json.loads(said.body)["data"]] == ([tokens] if tokens else [])
    assert behind.lines == []


def test_what_a_client_keeps_of_the_list_is_not_taken_for_news(front: Front) -> None:
    asked = "GET /v1/models HTTP/1.1"
    (kept,) = [line for line in ask(front.users_port, request(asked)).text.splitlines() if "Last-Modified" in line]
    again = request(asked, kept.replace("Last-Modified", "If-Modified-Since"))
    assert ask(front.users_port, again).statuses == [200]
    again = request(asked, "Range: bytes=0-3")
    assert ask(front.users_port, again).statuses == [200]
    said = ask(front.users_port, request("HEAD /v1/models HTTP/1.1"))
    assert (said.statuses, said.body) == ([200], "")


@pytest.mark.parametrize("path", ["/readiness", "/workers"])
def test_the_operator_sees_readiness_and_workers_on_its_own_port(front: Front, behind: Router, path: str) -> None:
    assert ask(front.operator_port, request(f"GET {path} HTTP/1.1")).statuses == [200]
    assert behind.lines == [f"GET {path} HTTP/1.1"]


def test_the_front_answers_for_itself_without_a_router(front: Front) -> None:
    assert ask(front.operator_port, request("GET /front HTTP/1.1")).statuses == [200]
    assert ask(front.operator_port, request("GET /readiness HTTP/1.1")).statuses == [502]


def test_nothing_that_a_user_wrote_is_in_the_log(front: Front, behind: Router) -> None:
    asked = question("/v1/completions?key=planted", "X-Planted: planted", body=b'{"prompt": "planted"}')
    assert ask(front.users_port, asked).statuses == [200]
    behind.hang_up = True
    assert ask(front.users_port, asked).statuses == [502]
    ask(front.users_port, request("GET /planted HTTP/1.1"))
    ask(front.users_port, b"planted\r\n\r\n")
    assert "planted" not in front.log.read_text()
