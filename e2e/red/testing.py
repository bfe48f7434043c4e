"""Runs named tests in a copy and tells which of them failed: an error before or after a test is no failure of it."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from typing import TYPE_CHECKING

from e2e.red.copies import environment
from e2e.red.defences import NamedTest

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

SAID_LINES = 12
"""Of pytest's last words, where they are shown."""


@dataclass(frozen=True)
class Ran:
    """One call of pytest."""

    code: int | None
    """Its exit code: 0 all passed, 1 some failed, others are its own troubles; none when it took too long."""
    passed: frozenset[NamedTest]
    """Of which every case passed."""
    failed: frozenset[NamedTest]
    """Of which a case failed in the test itself."""
    said: str
    """The end of what it printed."""


def run(copy: Path, tests: Collection[NamedTest], seconds: float) -> Ran:
    """Run these tests and no others.

    Args:
        copy: a checkout of its own; its configuration of pytest holds.
        tests: which.
        seconds: after which the call is ended.
    """
    report = copy.parent / "report.xml"
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "--quiet", "--rootdir", str(copy), "-p", "no:cacheprovider"]
    command += [f"--junitxml={report}", "--override-ini=junit_family=xunit1", *sorted(map(str, tests))]
    try:
        done = subprocess.run(
            command,
            cwd=copy,
            env=environment(copy),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=seconds,
            text=True,
            errors="replace",
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Ran(None, frozenset(), frozenset(), f"the tests did not end in {seconds:.0f} s")
    said = "\n".join(done.stdout.strip().splitlines()[-SAID_LINES:])
    passed, failed = _read(report) if report.exists() else (frozenset(), frozenset())
    return Ran(done.returncode, passed & set(tests), failed & set(tests), said)


def _read(report: Path) -> tuple[frozenset[NamedTest], frozenset[NamedTest]]:
    """Return which tests passed in all cases, and which failed in one."""
    failed: set[NamedTest] = set()
    unclear: set[NamedTest] = set()
    seen: set[NamedTest] = set()
    for case in ET.parse(report).iter("testcase"):  # noqa: S314 - pytest wrote it just now
        test = NamedTest(case.get("file", ""), case.get("name", "").partition("[")[0])
        seen.add(test)
        if case.find("failure") is not None:
            failed.add(test)
        if case.find("error") is not None or case.find("skipped") is not None:
            unclear.add(test)
    return frozenset(seen - failed - unclear), frozenset(failed)
