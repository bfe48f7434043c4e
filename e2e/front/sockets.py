"""Raw HTTP: bytes are sent as they are, so that a request can be wrong in every way."""

from __future__ import annotations

import contextlib
import re
import socket
import time
from dataclasses import dataclass

HOST = "127.0.0.1"
SECONDS = 5.0


@dataclass(frozen=True)
class Said:
    """What came back."""

    text: str

    @property
    def statuses(self) -> list[int]:
        """Of all answers, in their order."""
        return [int(status) for status in re.findall(r"HTTP/1\.1 (\d{3}) ", self.text)]

    @property
    def head(self) -> str:
        """The first answer's head, in lower case."""
        return self.text.partition("\r\n\r\n")[0].lower()

    @property
    def body(self) -> str:
        """The first answer's body."""
        return self.text.partition("\r\n\r\n")[2]


def ask(port: int, request: bytes, *, seconds: float = SECONDS) -> Said:
    """Send bytes, and read until the other side closes or falls silent."""
    with socket.create_connection((HOST, port), seconds) as connection:
        with contextlib.suppress(ConnectionError):  # it may have closed before it had everything
            connection.sendall(request)
        return Said(read(connection, b"", seconds))


def read(connection: socket.socket, until: bytes, seconds: float = SECONDS) -> str:
    """Read until `until` has come, the other side closes, or the time is up."""
    data = b""
    deadline = time.monotonic() + seconds
    while not until or until not in data:
        left = deadline - time.monotonic()
        if left <= 0:
            break
        connection.settimeout(left)
        try:
            part = connection.recv(65536)
        except OSError:
            break
        if not part:
            break
        data += part
    return data.decode("latin-1")


def request(line: str, *headers: str, body: bytes = b"", close: bool = True) -> bytes:
    """Return a request with the right Content-Length when it has a body."""
    lines = [line, "Host: pool.example", *headers]
    lines += [f"Content-Length: {len(body)}"] if body else []
    lines += ["Connection: close"] if close else []
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def question(path: str = "/v1/completions", *headers: str, body: bytes = b'{"model": "tiny"}') -> bytes:
    """Return a request as users send it."""
    return request(f"POST {path} HTTP/1.1", "Content-Type: application/json", *headers, body=body)
