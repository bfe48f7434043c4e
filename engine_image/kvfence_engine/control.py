"""The launcher's own port: GET /started, /ready, /status, /metrics and /receipt?rid=, POST /admission and /taint.

It answers when SGLang does not: while it loads, hangs or dies. Nothing secret is said, and nothing is done on the word
of a client that is not signed.
"""

from __future__ import annotations

import json
import re
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

from kvfence_engine import metrics
from kvfence_engine.doorkeeper import Doorkeeper, Reply

if TYPE_CHECKING:
    from collections.abc import Callable

BODY_LIMIT = 128 * 1024
"""Bytes of an admission with some hundred peers, partners and passes."""

_DIGITS = re.compile(r"[0-9]{1,9}")

_CLIENT_SECONDS = 15.0
"""How long a client may take to send what it wants."""


class Control:
    """Serves in threads of its own from when it is made.

    Args:
        address: host and port to listen on.
        keeper: decides and knows.

    Raises:
        OSError: when the port is taken.
    """

    def __init__(self, address: tuple[str, int], keeper: Doorkeeper) -> None:
        self._server = _Server(address, _handler(keeper))
        threading.Thread(target=self._server.serve_forever, name="control", daemon=True).start()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64


def _get(keeper: Doorkeeper, target: str) -> tuple[int, str, bytes]:
    """Return status, content type and body of an answer."""
    path, _, query = target.partition("?")
    if path == "/metrics":
        return 200, "text/plain; version=0.0.4; charset=utf-8", metrics.text(keeper.status())
    if path == "/status":
        reply = Reply(200, keeper.status())
    elif path in ("/started", "/ready"):
        yes = keeper.has_started() if path == "/started" else keeper.is_open()
        reply = Reply(200 if yes else 503, {path[1:]: yes})
    elif path == "/receipt":
        reply = keeper.receipts(urllib.parse.parse_qs(query).get("rid", [""])[0])
    else:
        reply = Reply(404, {"message": "there are /started, /ready, /status, /metrics and /receipt?rid="})
    return _encoded(reply)


def _encoded(reply: Reply) -> tuple[int, str, bytes]:
    return reply.status, "application/json", json.dumps(reply.body).encode()


def _handler(keeper: Doorkeeper) -> type[BaseHTTPRequestHandler]:
    told: dict[str, Callable[[bytes], Reply]] = {"/admission": keeper.admit, "/taint": keeper.told}

    class Handler(BaseHTTPRequestHandler):
        timeout = _CLIENT_SECONDS
        server_version = "kvfence-engine"
        sys_version = ""

        def do_GET(self) -> None:
            self._send(*_get(keeper, self.path))

        def do_POST(self) -> None:
            length = self.headers.get("Content-Length", "")
            if self.path not in told:
                reply = Reply(404, {"message": "there are POST /admission and /taint"})
            elif not _DIGITS.fullmatch(length) or int(length) > BODY_LIMIT:
                reply = Reply(413, {"message": f"a body says its length, of at most {BODY_LIMIT} bytes"})
            else:
                reply = told[self.path](self.rfile.read(int(length)))
            self._send(*_encoded(reply))

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - named by the standard library
            """Keep quiet: probes ask every few seconds."""

        def _send(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler
