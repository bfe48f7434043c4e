"""Partners hear of a taint, also when one of them hangs, is gone, or takes it only when it is asked again."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from kvfence_engine import telling
from kvfence_engine.state import Partner

PREFILLS = [Partner(f"10.0.0.{n}:8901", f"10.0.0.{n}:8998", "x") for n in (1, 2)]
DECODE = Partner("10.0.1.1:8901", "", "x")


def test_the_engine_that_the_kv_came_from_is_told_and_all_when_that_is_not_known() -> None:
    assert telling.concerned(PREFILLS, "10.0.0.2:8998") == [PREFILLS[1]]
    assert telling.concerned(PREFILLS, "") == PREFILLS
    assert telling.concerned(PREFILLS, "10.0.0.3:8998") == PREFILLS, "one that is named no more"
    assert telling.concerned([*PREFILLS, DECODE], "") == [*PREFILLS, DECODE], "one without a name is not the nameless"
    assert telling.concerned([], "10.0.0.2:8998") == []


@contextmanager
def partner(*statuses: int, host: str = "127.0.0.1") -> Iterator[tuple[str, list[tuple[str, bytes]]]]:
    """Listen as a launcher that answers with these, the last again and again; yield its address and what it got."""
    got: list[tuple[str, bytes]] = []
    left = list(statuses)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(left.pop(0) if len(left) > 1 else left[0])
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    class Server(HTTPServer):
        address_family = socket.AF_INET6 if ":" in host else socket.AF_INET

    server = Server((host, 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield (f"[{host}]" if ":" in host else host) + f":{server.server_port}", got
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telling, "ANSWER_SECONDS", 0.2)
    monkeypatch.setattr(telling, "PAUSE_SECONDS", 0.02)


def told(*controls: str, body: bytes = b"the taint") -> None:
    for thread in telling.tell([Partner(control, "", "x") for control in controls], body):
        thread.join(20)
        assert not thread.is_alive()


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_partner_gets_it_once(host: str, capsys: pytest.CaptureFixture[str]) -> None:
    with partner(200, host=host) as (control, got):
        told(control)
    assert got == [("/taint", b"the taint")]
    assert capsys.readouterr().err == ""


def test_one_that_hangs_keeps_no_other_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telling, "TRIES", 1)
    with socket.create_server(("127.0.0.1", 0)) as hangs, partner(200) as (control, got):
        began = time.monotonic()
        both = (f"127.0.0.1:{hangs.getsockname()[1]}", control)
        threads = telling.tell([Partner(one, "", "x") for one in both], b"t")
        while not got:
            assert time.monotonic() - began < 1
            time.sleep(0.005)
        assert threads[0].is_alive()
        threads[0].join(20)


@pytest.mark.usefixtures("quick")
def test_one_that_is_busy_is_asked_again() -> None:
    with partner(503, 503, 200) as (control, got):
        told(control)
    assert len(got) == 3


@pytest.mark.usefixtures("quick")
def test_one_that_does_not_take_it_is_named_and_no_word_of_the_taint_is(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    with partner(403) as (control, got):
        told(control, f"127.0.0.1:{port}", "no-such-host.invalid:1", "no port", body=b"SECRET")
    assert len(got) == telling.TRIES
    lines = capsys.readouterr().err.splitlines()
    assert f"kvfence-engine: the partner {control} did not take the taint: status 403" in lines
    assert f"kvfence-engine: the partner 127.0.0.1:{port} did not take the taint: ConnectionRefusedError" in lines
    assert len(lines) == 4
    assert "SECRET" not in "".join(lines)
