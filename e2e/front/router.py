"""What stands in for smg behind the front: it answers every path, and remembers all that reached it."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

HOST = "127.0.0.1"
WAIT_SECONDS = 10.0


@dataclass(frozen=True)
class Arrived:
    """One request as it came in."""

    line: str
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes


@dataclass
class Router:
    """What reached it, and what it is to do with the next ones."""

    lines: list[str] = field(default_factory=list)
    """First lines, of requests that cannot be read too."""
    arrived: list[Arrived] = field(default_factory=list)
    answer: bytes = b'{"choices": []}'
    headers: dict[str, str] = field(default_factory=dict)
    hang_up: bool = False
    """Close the connection in place of an answer."""
    streaming: bool = False
    """Answer with two events, the second one when `go_on` is set, and end when `finish` is."""
    chatty: bool = False
    """Write a comment now and then in between."""
    go_on: threading.Event = field(default_factory=threading.Event)
    finish: threading.Event = field(default_factory=threading.Event)
    left: threading.Event = field(default_factory=threading.Event)
    """Set when a stream could not be written to its end."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    raw_requestline: bytes

    @property
    def router(self) -> Router:
        server = self.server
        assert isinstance(server, _Server)
        return server.router

    def parse_request(self) -> bool:
        """Remember the request before it is judged, and answer any method."""
        self.router.lines.append(self.raw_requestline.decode("latin-1").rstrip("\r\n"))
        if not super().parse_request():
            return False
        setattr(self, f"do_{self.command}", self._answer)
        return True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in the base class
        """Say nothing."""

    def _answer(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.router.arrived.append(Arrived(self.requestline, headers, self._body()))
        self.close_connection = True
        if self.router.hang_up:
            return
        self.send_response(200)
        for name, value in self.router.headers.items():
            self.send_header(name, value)
        if self.router.streaming:
            self._stream()
            return
        self.send_header("Content-Length", str(len(self.router.answer)))
        self.end_headers()
        self.wfile.write(self.router.answer)

    def _stream(self) -> None:
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self._chunk(b"data: first\n\n")
        try:
            while not self.router.go_on.wait(0.05):
                if self.router.chatty:
                    self._chunk(b": still here\n\n")
            self._chunk(b"data: second\n\n")
            self.router.finish.wait(WAIT_SECONDS)
            self._chunk(b"")
        except OSError:
            self.router.left.set()

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, port: int, router: Router) -> None:
        self.router = router
        super().__init__((HOST, port), _Handler)


@contextmanager
def serving(port: int, router: Router) -> Iterator[None]:
    """Serve on loopback."""
    server = _Server(port, router)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield
    finally:
        router.go_on.set()
        router.finish.set()
        server.shutdown()
        server.server_close()
        thread.join(WAIT_SECONDS)
