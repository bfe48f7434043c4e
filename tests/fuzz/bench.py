"""How fast a long log is read, beside reading its bytes alone in the same run."""

from __future__ import annotations

import random
import tempfile
import time
from typing import BinaryIO

from kvfence.engine.logs import read
from tests.fuzz.corpus import field_logs

BLOCK = 1 << 20
DECODE = (
    "[2025-07-14 05:50:02 TP0] Decode batch, #running-req: {}, #token: {}, token usage: 0.80, cuda graph: True, "
    "gen throughput (token/s): 512.20, #queue-req: 0\n"
)
ACCESS = '[2025-07-14 05:50:02] INFO:     10.0.0.1:{} - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'


def write(stream: BinaryIO, megabytes: int) -> int:
    """Write a log as an engine leaves it: its start, then requests; return its size in bytes."""
    rng = random.Random(0)
    size = stream.write(field_logs()[0].body.encode())
    lines = []
    for _ in range(8192):
        lines += [DECODE.format(rng.randrange(99), rng.randrange(99999)), ACCESS.format(rng.randrange(65536))]
    part = "".join(lines).encode()
    while size < megabytes * 1_000_000:
        size += stream.write(part)
    return size


def bench(megabytes: int) -> str:
    """Return both speeds, in words."""
    with tempfile.TemporaryFile() as stream:
        size = write(stream, megabytes)
        stream.seek(0)
        begun = time.perf_counter()
        while stream.read(BLOCK):
            pass
        bare = time.perf_counter() - begun
        stream.seek(0)
        begun = time.perf_counter()
        read(stream, "bench")
        parsed = time.perf_counter() - begun
    speed, alone = size / 1e6 / parsed, size / 1e6 / bare
    times = f"{parsed / bare:.1f} times"
    return f"{size / 1e6:.0f} MB: read as a log {speed:.0f} MB/s, its bytes alone {alone:.0f} MB/s ({times})"
