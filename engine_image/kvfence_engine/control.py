"""The launcher's own port: GET /started, /ready and /status, POST /admission.

It answers when SGLang does not: while it loads, hangs or dies. Nothing secret is said, and nothing is done on the word
of a client that is not signed.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

from kvfence_engine.doorkeeper import Doorkeeper, Reply

if TYPE_CHECKING:
    from collections.abc import Callable

BODY_LIMIT = 128 * 1024
"""Bytes of an admission with some hundred peers and passes."""

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


def _handler(keeper: Doorkeeper) -> type[BaseHTTPRequestHandler]:
    asked: dict[str, Callable[[], bool]] = {"/started": keeper.has_started, "/ready": keeper.is_open}

    class Handler(BaseHTTPRequestHandler):
        timeout = _CLIENT_SECONDS
        server_version = "kvfence-engine"
        sys_version = ""

        def do_GET(self) -> None:
            if self.path == "/status":
                self._send(Reply(200, keeper.status()))
            elif self.path in asked:
                yes = asked[self.path]()
                self._send(Reply(200 if yes else 503, {self.path[1:]: yes}))
            else:
                self._send(Reply(404, {"message": "there are /started, /ready, /status and /admission"}))

        def do_POST(self) -> None:
            length = self.headers.get("Content-Length", "")
            if self.path != "/admission":
                self._send(Reply(404, {"message": "there is POST /admission alone"}))
            elif not length.isdecimal() or int(length) > BODY_LIMIT:
                self._send(Reply(413, {"message": f"an admission says its length, of at most {BODY_LIMIT} bytes"}))
            else:
                self._send(keeper.admit(self.rfile.read(int(length))))

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - named by the standard library
            """Keep quiet: probes ask every few seconds."""

        def _send(self, reply: Reply) -> None:
            body = json.dumps(reply.body).encode()
            self.send_response(reply.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler
