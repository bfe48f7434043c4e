"""What the doctor says: a row for each engine, findings with their cures, and what is missing to be sure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from kvfence.domain.severity import Severity

if TYPE_CHECKING:
    from kvfence.domain.diagnosis.doubts import Doubt
    from kvfence.domain.diagnosis.seen import EngineSeen

__all__ = ["ExitCode", "Finding", "Report", "Severity"]


class ExitCode(IntEnum):
    """How the doctor ends; the numbers are API."""

    NOTHING_FOUND = 0
    FINDINGS = 1
    CANNOT_TELL = 2
    """No finding, but something grave cannot be told: `kvfence.domain.diagnosis.doubts` has what."""
    USAGE = 3


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong, and its cure."""

    id: str
    """Stable: a name such as `ContextAbovePool`, or the id of an advisory."""
    severity: Severity
    message: str
    """What, where (the engine's source and rank), and why it matters. Carries no key and nothing of a user's."""
    fix: str
    """What to do, as a command or a flag where there is one."""


@dataclass(frozen=True, slots=True)
class Report:
    """All that is said.

    Findings win over doubts, and doubts over an exit code of 0. Of an engine alone, or a log that does not say that it
    is a half of a pair, pool and context are enough for 0 where they fit: a log never tells a version, and what may be
    wrong in some release is in `missing` then. It cannot be told

    - where no source tells of an engine, a source tells nothing, pool or context is not told, or ranks are not;
    - where a version is told that is no release (a local build, a release candidate);
    - where a half of a pair was seen without the other, or a running server in a pair does not tell its version;
    - where it is not told of a router whether its control plane, or an engine's settings through it, are open.
    """

    engines: tuple[EngineSeen, ...]
    findings: tuple[Finding, ...]
    """The gravest first."""
    missing: tuple[str, ...]
    """What could not be told and how to get it, each one sentence."""
    doubts: tuple[Doubt, ...]
    """Why it cannot be told that all is well."""

    @property
    def exit_code(self) -> ExitCode:
        """What the command ends with."""
        if self.findings:
            return ExitCode.FINDINGS
        return ExitCode.CANNOT_TELL if self.doubts else ExitCode.NOTHING_FOUND

    def json(self) -> dict[str, Any]:
        """Return the report as `--output json` prints it. The shape is API."""
        return {
            "engines": [
                {
                    "source": engine.source,
                    "rank": engine.rank,
                    "version": engine.version,
                    "started": engine.started,
                    "kvPoolTokens": engine.kv_pool_tokens,
                    "contextLength": engine.context_length,
                    "maxInputTokens": engine.max_input_tokens,
                    "contextFits": engine.context_fits,
                    "advertisableContext": engine.advertisable_context,
                }
                for engine in self.engines
            ],
            "findings": [
                {"id": one.id, "severity": one.severity.value, "message": one.message, "fix": one.fix}
                for one in self.findings
            ],
        }
