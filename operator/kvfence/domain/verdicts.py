"""What a check says about isolation, in words that carry nothing of a user's."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Check(StrEnum):
    """The named checks; the names are API."""

    MARKER_ISOLATION = "MarkerIsolation"
    """Each request's answer repeats its own marker, and no other's."""
    OVERLONG_PROMPT = "OverlongPrompt"
    """A prompt that fits is answered with the right count of its tokens; one that does not is refused with a 4xx on
    each leg, at once, and nobody's marker comes out."""
    FRONT_DOOR = "FrontDoor"
    """Through router and front: the two inference paths and the capped model list are there, and nothing else."""


class Outcome(StrEnum):
    """What came of a check."""

    PASSED = "Passed"
    FAILED = "Failed"
    """Something happened that must not: the engine, or the front, is not let in."""
    NOT_JUDGED = "NotJudged"
    """It could not be judged, and for admission that counts as no. It is tried again."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of one check on one subject."""

    check: Check
    outcome: Outcome
    subject: str
    """What was checked: a pair such as `pod a with pod b`, or the front of a pod."""
    message: str = ""
    """For people: what was seen and what to do; empty when passed. No prompt, no completion, no marker."""
