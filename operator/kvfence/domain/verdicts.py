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
    TRANSFER_RECEIPT = "TransferReceipt"
    """Both legs have a receipt for a canary's request: the same room and tokens, every page looked at, all of the
    prompt handed over. At admission, where the engines have page tagging, page scrubbing and coverage enforced."""
    TAG_LIVE = "TagLive"
    """A fault that a canary asks for in its own pages is found on each rank, by each defence that is enforced, and ends
    the request. At admission alone: engines make no faults once users are let in."""
    FRONT_DOOR = "FrontDoor"
    """Through router and front: the two inference paths and the capped model list are there, and nothing else."""
    PROMPT_TOKENS = "PromptTokens"
    """`usage.prompt_tokens` is what was sent, at every length and on each leg: a prompt that was cut counts less."""
    STREAM_ERRORS = "StreamErrors"
    """With `stream` a refusal is a 4xx or an error in the stream, never the end of a successful answer."""
    FAKE_TRANSFER = "FakeTransfer"
    """A client cannot have decode answer without KV from prefill, by naming SGLang's fake bootstrap host."""
    HEALTH_CHECK_RID = "HealthCheckRid"
    """A client cannot pass for a health check, whose KV is not verified, by the name of its request."""
    ABORT_REUSE = "AbortReuse"
    """Who gets the pages of an aborted request does not get its words."""
    SALT_ISOLATION = "SaltIsolation"
    """Requests with different salts share no cached prefix."""
    PAIR_IDENTITY = "PairIdentity"
    """A pair answers as a server with the same weights does that computes prompt and answer itself."""
    ROUTER_PAIRING = "RouterPairing"
    """Which pairs of prefill and decode the router really uses; one that is never used is never examined."""


class Outcome(StrEnum):
    """What came of a check."""

    PASSED = "Passed"
    FAILED = "Failed"
    """Something happened that must not: the engine, or the front, is not let in."""
    NOT_JUDGED = "NotJudged"
    """It could not be judged, and for admission that counts as no. It is tried again."""
    BROKEN = "Broken"
    """The check did not see its own control fail, so that it says nothing. Of the command line; no admission runs so.
    """


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of one check on one subject."""

    check: Check
    outcome: Outcome
    subject: str
    """What was checked: a pair such as `pod a with pod b`, or the front of a pod."""
    message: str = ""
    """For people: what was seen and what to do; empty when passed. No prompt, no completion, no marker."""
