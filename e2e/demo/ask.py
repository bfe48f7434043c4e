"""Asks the pool's Service from a pod of the cluster, with nothing but Python: the demo puts this file into its client.

By hand, in that pod: `python3 /demo/ask.py /v1/models`, or with a body: `python3 /demo/ask.py /v1/completions '{...}'`.
Without arguments it reads questions, one JSON object per line, and writes one line for each: this is how the demo asks.
"""

from __future__ import annotations

import errno
import http.client
import json
import os
import socket
import sys
import time
from typing import Any

PORT = 80
SECONDS = 60.0
UNREACHABLE = frozenset({errno.ECONNREFUSED, errno.ENETUNREACH, errno.EHOSTUNREACH})
"""What the network says where nothing stands behind a Service; it depends on the network which."""


def ask(service: str, path: str, body: str | None) -> dict[str, Any]:
    """Ask once, and return what came of it; whatever goes wrong is in there too."""
    began = time.monotonic()
    said: dict[str, Any] = {"status": None, "body": "", "why": ""}
    connection = http.client.HTTPConnection(service, PORT, timeout=SECONDS)
    try:
        headers = {"Content-Type": "application/json", "Connection": "close"}
        connection.request("GET" if body is None else "POST", path, body, headers)
        answer = connection.getresponse()
        said |= {"status": answer.status, "body": answer.read().decode(errors="replace")}
    except socket.gaierror:
        said["why"] = "no such Service yet"
    except TimeoutError:
        said["why"] = "no answer in time"
    except (OSError, http.client.HTTPException) as error:
        unreachable = isinstance(error, OSError) and error.errno in UNREACHABLE
        said["why"] = "no connection" if unreachable else f"{type(error).__name__}: {error}"
    finally:
        connection.close()
    return said | {"seconds": time.monotonic() - began, "ended": time.time()}


def main() -> None:
    """Ask as the arguments say, or as the lines on standard input do."""
    service = os.environ["SERVICE"]
    if len(sys.argv) > 1:
        path, body = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
        said = ask(service, path, body)
        sys.stdout.write(f"{said['status'] or said['why']} after {said['seconds']:.3f} s\n")
        sys.stdout.write(said["body"].rstrip("\n") + "\n" if said["body"] else "")
        return
    for line in sys.stdin:
        question = json.loads(line)
        sys.stdout.write(json.dumps(ask(service, question["path"], question["body"])) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
