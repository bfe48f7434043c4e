"""Tells the partners of a tainted engine, each in a thread of its own: one that hangs keeps nobody waiting."""

from __future__ import annotations

import http.client
import sys
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kvfence_engine.state import Partner

TRIES = 5
ANSWER_SECONDS = 2.0
PAUSE_SECONDS = 0.5


def concerned(partners: Iterable[Partner], peer: str) -> list[Partner]:
    """Return whom a taint concerns: the prefill engine that the KV came from, or all when that is not known."""
    every = list(partners)
    return [one for one in every if one.peer == peer] or every if peer else every


def tell(partners: Iterable[Partner], body: bytes) -> list[threading.Thread]:
    """Post a taint to each of them; return the threads that do.

    Args:
        partners: whom to tell.
        body: of `taint.sign`.
    """
    threads = [threading.Thread(target=_tell, args=(one.control, body), daemon=True) for one in partners]
    for thread in threads:
        thread.start()
    return threads


def _tell(control: str, body: bytes) -> None:
    said = ""
    for _ in range(TRIES):
        try:
            status = _post(control, body)
        except (OSError, http.client.HTTPException, ValueError) as error:
            said = type(error).__name__
        else:
            if status == 200:
                return
            said = f"status {status}"
        time.sleep(PAUSE_SECONDS)
    # In one piece: other threads say something too.
    sys.stderr.write(f"kvfence-engine: the partner {control} did not take the taint: {said}\n")


def _post(control: str, body: bytes) -> int:
    host, _, port = control.rpartition(":")
    connection = http.client.HTTPConnection(host.strip("[]"), int(port), timeout=ANSWER_SECONDS)
    try:
        connection.request("POST", "/taint", body, {"Content-Type": "application/json"})
        return connection.getresponse().status
    finally:
        connection.close()
