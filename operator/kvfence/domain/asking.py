"""What is asked of a server or a pair, and what came back: values for those who ask and for those who judge.

Servers are not to be trusted: they are what is being examined. So every answer, however malformed, late, large or
absent, is one of these values.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

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
