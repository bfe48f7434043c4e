"""Changes to the bytes: how they are coded, what is thrown in, where they end."""

from __future__ import annotations

import gzip
import random
import re


def windows_ends(rng: random.Random, raw: bytes) -> bytes:
    """Line ends of Windows: keeps."""
    return raw.replace(b"\n", b"\r\n")


def colours(rng: random.Random, raw: bytes) -> bytes:
    """Colours of a terminal, at words and at line ends: keeps."""
    code = rng.choice([b"\x1b[32m", b"\x1b[1;31m", b"\x1b[38;5;120m", b"\x1b[K"])
    target = rng.choice([rb"(\[20[^\]]*\])", rb"(max_total_num_tokens)", rb"(\d+)", rb"(?m)^(.*)$"])
    return re.sub(target, lambda m: code + m[1] + b"\x1b[0m", raw)


def byte_order_mark(rng: random.Random, raw: bytes) -> bytes:
    """The mark that editors put in front: keeps."""
    return b"\xef\xbb\xbf" + raw


def wide(rng: random.Random, raw: bytes) -> bytes:
    """PowerShell's redirection: keeps."""
    coding = rng.choice(["utf-16", "utf-16-le", "utf-16-be"])
    return raw.decode(errors="replace").encode(coding)


def nuls(rng: random.Random, raw: bytes) -> bytes:
    """A file system that came down leaves NULs: keeps."""
    at = raw.find(b"\n", rng.randrange(len(raw) + 1)) + 1
    return raw[:at] + b"\x00" * rng.randint(1, 5000) + raw[at:]


def rubbish(rng: random.Random, raw: bytes) -> bytes:
    """A line of bytes that are no text: keeps or loses."""
    at = raw.find(b"\n", rng.randrange(len(raw) + 1)) + 1
    return raw[:at] + rng.randbytes(rng.randint(1, 300)).replace(b"\n", b"") + b"\n" + raw[at:]


def no_last_end(rng: random.Random, raw: bytes) -> bytes:
    """The last line end is missing: keeps or loses."""
    return raw.rstrip(b"\n")


def cut(rng: random.Random, raw: bytes) -> bytes:
    """It ends anywhere: keeps or loses."""
    return raw[: rng.randrange(len(raw) + 1)]


def packed(rng: random.Random, raw: bytes) -> bytes:
    """Compressed, in one piece or two: keeps."""
    at = rng.choice([0, rng.randrange(len(raw) + 1)])
    return gzip.compress(raw[:at], 1) + gzip.compress(raw[at:], 1)


def packed_and_cut(rng: random.Random, raw: bytes) -> bytes:
    """Compressed, and the end is missing: keeps or loses."""
    whole = gzip.compress(raw, 1)
    return whole[: rng.randrange(len(whole) + 1)]


CUTS = (cut, packed_and_cut)
"""What may leave no more than an earlier start of the log, or cut a number where a terminal had broken it."""

CODINGS = (windows_ends, colours, nuls, rubbish, no_last_end, cut, byte_order_mark, wide, packed, packed_and_cut)
