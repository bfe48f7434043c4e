"""What is asked of a server or a pair, and what came back: values for those who ask and for those who judge.

Servers are not to be trusted: they are what is being examined. So every answer, however malformed, late, large or
absent, is one of these values.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOMS = 2**63
"""Bootstrap rooms are signed 64-bit integers in SGLang."""

PASS_FIELD = "kvfence_pass"  # noqa: S105 - the name of a field
"""Of a body, at its top level, where the door looks for a canary's pass."""


class Fault(StrEnum):
    """Why there is no usable answer."""

    UNREACHABLE = "Unreachable"
    """No connection, or it broke before the answer was complete."""
    TIMED_OUT = "TimedOut"
    TOO_LARGE = "TooLarge"
    MALFORMED = "Malformed"
    """Not HTTP, not JSON, or not a completion."""
    STATUS = "Status"
    """A complete answer with a status other than 200."""


@dataclass(frozen=True)
class Reply:
    """An HTTP answer as it came. Its `repr` shows no body, so that it may be logged."""

    status: int | None
    """HTTP status; none when no head of an answer came."""
    body: bytes = field(repr=False)
    """Complete and within the limit, or empty when there was a fault."""
    seconds: float
    fault: Fault | None = None
    """Never `STATUS`: whoever asked knows which status is wanted."""
    detail: str = field(default="", repr=False)
    """The client's own words about the fault, cut short."""
    part: bytes = field(default=b"", repr=False, kw_only=True)
    """What had come of a body when a fault ended it."""
    worker: str | None = field(default=None, repr=False, kw_only=True)
    """`x-smg-routed-worker-id`, where a router names the engine that answered."""


@dataclass(frozen=True)
class Unanswered:
    """A question to which no usable answer came."""

    why: str
    """For people: what was asked and what came instead. Quotes nothing of the answer."""


@dataclass(frozen=True)
class Answer:
    """What one leg answered. Its `repr` shows no text, so that an answer may be logged."""

    status: int | None
    """HTTP status; none when no head of an answer came."""
    text: str = field(repr=False)
    """The completion; empty unless there was no fault."""
    prompt_tokens: int | None
    """How many tokens the prompt had, as the server counted."""
    seconds: float
    fault: Fault | None = None
    detail: str = field(default="", repr=False)
    """The server's or the client's own words about the fault, cut short."""
    raw: str = field(default="", repr=False, kw_only=True)
    """All that came, within the client's limit: to be searched for markers, and never to be shown."""


@dataclass(frozen=True)
class Call:
    """One request exactly as it is sent, for checks that need more of it than a completion."""

    url: str
    body: Mapping[str, Any] = field(repr=False)
    """JSON. `stream` in it asks for server-sent events."""
    hang_up_after: float | None = None
    """Seconds after which the client closes the connection, whatever has come by then."""


@dataclass(frozen=True)
class Heard:
    """All that came back of one call. Its `repr` shows no text, so that it may be logged."""

    status: int | None
    """HTTP status; none when no head of an answer came."""
    text: str = field(default="", repr=False)
    """What was generated: of one JSON body, or of all events of a stream."""
    prompt_tokens: int | None = None
    """As the server counted; so are the others."""
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    """`usage.prompt_tokens_details.cached_tokens`; none unless the server reports it."""
    finish_reason: str | None = None
    """Of the last choice; `abort` where SGLang ends a stream so."""
    error: str = field(default="", repr=False)
    """Of an error body, or of an error event in a stream that has status 200; cut short."""
    raw: str = field(default="", repr=False, kw_only=True)
    """All that came, within the client's limit: to be searched for markers, and never to be shown."""
    done: bool = False
    """Whether a stream ended with `[DONE]`."""
    hung_up: bool = False
    """Whether we closed the connection first, as asked."""
    worker: str | None = None
    """`x-smg-routed-worker-id`, where a router names the engine that answered."""
    seconds: float = 0.0
    fault: Fault | None = None
    """`STATUS` for a complete answer with another status than 200."""


@dataclass(frozen=True)
class PairAnswer:
    """What both legs answered to one question."""

    prefill: Answer
    decode: Answer


@dataclass(frozen=True)
class Pair:
    """Where the two legs are."""

    prefill_url: str
    decode_url: str
    bootstrap_host: str
    """Where decode asks for the KV: prefill's address as decode sees it."""
    bootstrap_port: int = 8998


@dataclass(frozen=True)
class Question:
    """A greedy completion of exactly so many tokens."""

    model: str
    prompt: str | tuple[int, ...] = field(repr=False)
    """Text, or ids of tokens: then the prompt has exactly so many, whatever the tokenizer, which puts nothing in front.
    """
    max_tokens: int
    pass_: str | None = field(default=None, kw_only=True, repr=False)
    """Lets one request through a door on canary."""
    rids: Mapping[str, str] = field(default_factory=dict, kw_only=True, repr=False)
    """By leg, the id that the request has there; a leg that is not named gets none."""

    def body(self) -> dict[str, Any]:
        """Return the request as the OpenAI API has it, with SGLang's `ignore_eos`."""
        shown = {} if self.pass_ is None else {PASS_FIELD: self.pass_}
        return {
            "model": self.model,
            "prompt": self.prompt if isinstance(self.prompt, str) else list(self.prompt),
            "max_tokens": self.max_tokens,
            "temperature": 0,
            "ignore_eos": True,
            **shown,
        }
