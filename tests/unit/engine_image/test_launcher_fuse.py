"""The fuse in a launcher as a process: its flags, and partners that are told by an engine that dies at once."""

from __future__ import annotations

import base64
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from kvfence_engine import ed25519, launcher, taint
from kvfence_engine.admission import Admission
from kvfence_engine.fuse import Trip
from kvfence_engine.integrity.classes import Finding
from kvfence_engine.state import Alarm, Partner
from tests.unit.engine_image.conftest import Operator, ask
from tests.unit.engine_image.test_launcher import ADMITTED, command, free_port, injected, post, sglang, when_started

__all__ = ["injected"]

SOUND = """
import json
from kvfence_engine.state import Alarm

state.set_alarm(0, Alarm(**json.loads(os.environ["SOUNDS"])))
"""
WAIT = """
deadline = time.monotonic() + 20
while state.grant().blown is None and time.monotonic() < deadline:
    time.sleep(0.01)
if blown := state.grant().blown:
    print(state.grant().door.value, blown.finding, blown.source, flush=True)
"""
OPENED, ENDS = ADMITTED.split('print("the prompt of a user", flush=True)\n')


class Told:
    """A partner's launcher that takes what it is told."""

    def __init__(self) -> None:
        self.bodies: list[tuple[str, bytes]] = []
        told = self.bodies

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                told.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Keep quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def told() -> Iterator[Told]:
    made = Told()
    yield made
    made.server.shutdown()
    made.server.server_close()


def options(*arguments: str) -> list[str]:
    return ["--pool", "p", "--pod", "p", "--keys", "k", *arguments]


def test_the_flags_say_how_many_contained_findings_within_how_long() -> None:
    fuse = launcher._options(options("--contained-limit", "4", "--contained-seconds", "0.5")).fuse
    for now, contained in ((0.0, 1), (0.6, 2), (0.7, 3), (0.8, 4)):
        assert fuse.see(now, 0, Alarm(contained=contained, kind="Coverage")) is None
    assert fuse.see(0.9, 0, Alarm(contained=5, kind="Coverage")) == Trip(Finding.CONTAINED, "Coverage", "")


def test_without_flags_three_within_five_minutes() -> None:
    fuse = launcher._options(options()).fuse
    assert [fuse.see(now, 0, Alarm(contained=1 + now)) is None for now in range(3)] == [True, True, False]
    fuse = launcher._options(options()).fuse
    assert all(fuse.see(150.0 * now, 0, Alarm(contained=1 + now)) is None for now in range(9))


@pytest.mark.parametrize(
    "flags",
    [("--contained-limit", "0"), ("--contained-seconds", "0"), ("--contained-seconds", "nan"), ("--contained", "3")],
)
def test_a_fuse_that_could_never_blow_is_no_setting(flags: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        launcher._options(options(*flags))
    assert ended.value.code == 2
    assert "usage:" in capsys.readouterr().err


def run(
    injected: Path, operator: Operator, admitted: Admission, code: str, sounds: str, *flags: str
) -> tuple[str, str]:
    """Run a launcher whose engine sounds an alarm once it is open; return what it printed, and its boot's key."""
    (injected.parent / "keys").mkdir()
    (injected.parent / "keys" / "current").write_text(base64.b64encode(operator.public).decode())
    path, port = sglang(injected.parent / "image", code), free_port()
    environment = dict(os.environ) | {"PYTHONPATH": path, "ENDS_WITH": "9", "SOUNDS": sounds}
    with subprocess.Popen(
        command(injected, "--port", str(port), *flags, "--", "x"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        text=True,
    ) as running:
        when_started(port)
        status = ask(port, "GET", "/status")[1]
        assert isinstance(status, dict)
        post(port, operator.body(admitted))
        printed = running.communicate(timeout=30)[0]
    assert running.returncode == 9
    return printed, status["key"]


def test_an_engine_is_tainted_by_as_many_findings_as_the_flag_says(
    injected: Path, operator: Operator, admit: Callable[..., Admission]
) -> None:
    admitted = admit(nonces=("http", "rank"), door="open")
    one = '{"contained": 1, "kind": "Coverage"}'
    printed, _ = run(injected, operator, admitted, OPENED + SOUND + WAIT + ENDS, one, "--contained-limit", "1")
    assert printed == "tainted Contained rank 0\n"


def test_partners_are_told_of_an_engine_that_dies_as_soon_as_something_escaped(
    injected: Path, operator: Operator, admit: Callable[..., Admission], told: Told
) -> None:
    partner = Partner(f"127.0.0.1:{told.server.server_port}", "", base64.b64encode(bytes(32)).decode())
    admitted = admit(nonces=("http", "rank"), door="open", partners=(partner,))
    _, key = run(injected, operator, admitted, OPENED + SOUND + ENDS, '{"escaped": "HookMissing"}')
    ((path, body),) = told.bodies
    assert path == "/taint"
    assert len(base64.b64decode(key)) == ed25519.KEY_BYTES
    this = Partner("10.0.0.9:8901", "", key)
    assert taint.judge(body, "pool-uid", [this]) == (this, taint.Taint("HookMissing", key, "pod-uid", "pool-uid"))
