"""What a check of the command line says: an outcome, a sentence for people, and what was seen.

Markers are our own and may be shown: who reads a failure wants to know whose marker came out of whose answer. Nothing
else of a prompt or an answer is shown.
"""

from __future__ import annotations

from dataclasses import dataclass

from kvfence.domain.verdicts import Outcome


@dataclass(frozen=True, slots=True)
class Result:
    """What came of one check."""

    outcome: Outcome
    message: str = ""
    """For people: what was seen, and where it is not passed what to do. Ends with a full stop unless it is empty."""
    evidence: tuple[str, ...] = ()
    """One line for each thing that was seen: user, question, leg, status, and the marker that came out."""


def passed(message: str = "") -> Result:
    """Return a result of a check that saw what it had to see."""
    return Result(Outcome.PASSED, message)


def failed(message: str, *evidence: str) -> Result:
    """Return a result of what must not be."""
    return Result(Outcome.FAILED, message, evidence)


def not_judged(message: str, *evidence: str) -> Result:
    """Return a result of what hides the answer to the question."""
    return Result(Outcome.NOT_JUDGED, message, evidence)


def no_room(characters: int, needed: int) -> Result:
    """Return a result of a target that takes no prompt that is long enough.

    Args:
        characters: that surely fit; below 0 where not even the answer does.
        needed: characters of the shortest prompt.
    """
    return not_judged(f"There is room for {max(characters, 0)} characters only, and {needed} are needed.")


def broken(message: str) -> Result:
    """Return a result of a check that did not see its own control fail, or not a sane stand-in pass."""
    return Result(Outcome.BROKEN, message)
