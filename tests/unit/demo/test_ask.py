"""What runs in the client's pod, against a real HTTP server."""

from __future__ import annotations

import io
import json
import socket
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from e2e.demo import ask


class Echo(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.reply(404 if self.path == "/workers" else 200, self.path)

    def do_POST(self) -> None:
        self.reply(200, self.rfile.read(int(self.headers["Content-Length"])).decode())

    def reply(self, status: int, text: str) -> None:
        self.send_response(status)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Echo) as server:
        monkeypatch.setattr(ask, "PORT", server.server_port)
        monkeypatch.setenv("SERVICE", "127.0.0.1")
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield "127.0.0.1"
        server.shutdown()
        thread.join()


def test_an_answer_comes_back_with_status_and_body(service: str) -> None:
    said = ask.ask(service, "/v1/models", None)
    assert (said["status"], said["body"], said["why"]) == (200, "/v1/models", "")
    assert 0 < said["seconds"] < 5
    assert ask.ask(service, "/x", '{"a": 1}')["body"] == '{"a": 1}'
    assert ask.ask(service, "/workers", None)["status"] == 404


def test_a_service_that_nobody_stands_behind_is_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:  # bound, and not listened at
        taken.bind(("127.0.0.1", 0))
        monkeypatch.setattr(ask, "PORT", taken.getsockname()[1])
        said = ask.ask("127.0.0.1", "/v1/models", None)
    assert (said["status"], said["why"]) == (None, "no connection")


def test_a_server_that_does_not_speak_http_is_an_answer_too(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        monkeypatch.setattr(ask, "PORT", server.getsockname()[1])

        def babble() -> None:
            with server.accept()[0] as connection:
                connection.sendall(b"what?\r\n\r\n")

        thread = threading.Thread(target=babble)
        thread.start()
        said = ask.ask("127.0.0.1", "/v1/models", None)
        thread.join()
    assert said["status"] is None
    assert "BadStatusLine" in said["why"]


def test_questions_on_standard_input_are_answered_line_by_line(
    service: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [{"path": "/v1/models", "body": None}, {"path": "/x", "body": "{}"}]
    monkeypatch.setattr(sys, "argv", ["ask.py"])
    monkeypatch.setattr(sys, "stdin", io.StringIO("".join(json.dumps(line) + "\n" for line in lines)))
    ask.main()
    assert [json.loads(line)["body"] for line in capsys.readouterr().out.splitlines()] == ["/v1/models", "{}"]


def test_by_hand_it_shows_status_time_and_body(
    service: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["ask.py", "/workers"])
    ask.main()
    first, body = capsys.readouterr().out.splitlines()
    assert first.startswith("404 after 0.")
    assert body == "/workers"
