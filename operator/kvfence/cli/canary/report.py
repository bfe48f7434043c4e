"""What is reported of a run, whatever way it is printed. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING

from kvfence.domain.verdicts import Outcome

if TYPE_CHECKING:
    from datetime import datetime

    from kvfence.domain.verdicts import Check
    from kvfence.verify.canary.detection import Probing
    from kvfence.verify.canary.session import Target


class Output(StrEnum):
    """How the report is printed."""

    TABLE = "table"
    JSON = "json"
    JUNIT = "junit"


class Verdict(StrEnum):
    """What came of a check, in the words of the output; they are API."""

    PASS = "pass"  # noqa: S105 - a verdict
    FAIL = "fail"
    NOT_JUDGED = "notJudged"
    BROKEN = "broken"


VERDICTS = {
    Outcome.PASSED: Verdict.PASS,
    Outcome.FAILED: Verdict.FAIL,
    Outcome.NOT_JUDGED: Verdict.NOT_JUDGED,
    Outcome.BROKEN: Verdict.BROKEN,
}


class ExitCode(IntEnum):
    """How the canary ends; the numbers are API."""

    PASSED = 0
    FAILED = 1
    NOT_JUDGED = 2
    """Nothing failed, and something could not be judged, or is broken, or nothing was asked."""
    USAGE = 3
    INTERRUPTED = 130
    """Ctrl-C; what was found so far is printed."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One check."""

    check: Check
    verdict: Verdict
    reason: str
    """What was seen, and where it is no pass what to do."""
    evidence: tuple[str, ...] = ()
    requests: int = 0
    tokens: int = 0
    """Of prompts and answers, on each leg."""
    seconds: float = 0.0
    probing: Probing | None = None
    """How hard it looked; none where chance has no part in it, or nothing was asked."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A check that was not asked for, or has no use for this target."""

    check: Check
    why: str


@dataclass(frozen=True, slots=True)
class Report:
    """A run, complete or not."""

    name: str
    """The target as the user named it."""
    began: datetime
    """In UTC."""
    checks: tuple[Judged, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    target: Target | None = None
    """None when it could not be examined at all."""
    notes: tuple[str, ...] = ()
    interrupted: bool = False

    @property
    def requests(self) -> int:
        """Of all checks."""
        return sum(judged.requests for judged in self.checks)

    @property
    def tokens(self) -> int:
        """Of all checks, on each leg."""
        return sum(judged.tokens for judged in self.checks)

    @property
    def seconds(self) -> float:
        """Of all checks."""
        return sum(judged.seconds for judged in self.checks)

    @property
    def exit_code(self) -> ExitCode:
        """What the command ends with."""
        verdicts = {judged.verdict for judged in self.checks}
        if self.interrupted:
            return ExitCode.INTERRUPTED
        if Verdict.FAIL in verdicts:
            return ExitCode.FAILED
        return ExitCode.PASSED if verdicts == {Verdict.PASS} else ExitCode.NOT_JUDGED
