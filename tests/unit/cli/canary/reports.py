"""Reports to print."""

from __future__ import annotations

import io
from datetime import UTC, datetime

from rich.console import Console

from kvfence.cli.canary.report import Judged, LeftOut, Report, Verdict
from kvfence.domain.asking import Pair
from kvfence.domain.verdicts import Check
from kvfence.verify.canary.detection import Probing
from kvfence.verify.canary.session import Known, Target

BEGAN = datetime(2026, 11, 30, 22, 45, 7, 123456, UTC)
PREFILL = Known("prefill", "http://10.0.0.1:30000", 1024, 4096, 1018, 16, "0.5.19")
DECODE = Known("decode", "http://10.0.0.2:30001", 4096, 4096, 4090, 16, "0.5.19")
PAIR = Target(
    "http://10.0.0.1:30000,http://10.0.0.2:30001",
    "copy",
    (PREFILL, DECODE),
    Pair(PREFILL.url, DECODE.url, "10.0.0.1"),
)
LEAKED = "decode, question 3: the answer (status 200) has the marker ABCDEFGHJKLM of user 2"

PASSED = Judged(Check.MARKER_ISOLATION, Verdict.PASS, "", (), 40, 12000, 3.25, Probing(10, 4))
FAILED = Judged(
    Check.OVERLONG_PROMPT, Verdict.FAIL, "A prompt that did not fit was answered.", (LEAKED,), 20, 50000, 9.5
)
UNKNOWN = Judged(Check.SALT_ISOLATION, Verdict.NOT_JUDGED, "The server does not say how much was cached.")
BROKEN = Judged(Check.STREAM_ERRORS, Verdict.BROKEN, "It passed on a stand-in that is broken on purpose.")
LEFT_OUT = LeftOut(Check.ROUTER_PAIRING, "not a router")


def report(*checks: Judged, interrupted: bool = False) -> Report:
    return Report(PAIR.name, BEGAN, checks, (LEFT_OUT,), PAIR, ("A note.",), interrupted=interrupted)


ALL = report(PASSED, FAILED, UNKNOWN, BROKEN)


def console(width: int = 100) -> tuple[Console, io.StringIO]:
    out = io.StringIO()
    return Console(file=out, width=width, highlight=False, markup=False, emoji=False), out
