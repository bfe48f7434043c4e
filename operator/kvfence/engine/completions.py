"""Reads OpenAI completions from servers that are not trusted, as one JSON body and as server-sent events. Pure.

The shapes are those of SGLang: a stream that fails has status 200 and says so in an event, `{"error": {...}}`, or ends
with `finish_reason` abort.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from kvfence.domain.asking import Fault
from kvfence.engine.text import DETAIL_LIMIT, printable

_DONE = "[DONE]"


@dataclass(frozen=True)
class Completion:
    """What a server generated and counted; none for what it does not tell."""

    text: str
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    finish_reason: str | None = None
    error: str = ""
    """Of an event in a stream; cut short."""
    done: bool = False
    """Whether a stream ended with `[DONE]`."""
    fault: Fault | None = None
    """`MALFORMED` for a stream of which something cannot be read; what could be is there."""


@dataclass(frozen=True)
class _Usage:
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None


def completion(raw: bytes) -> Completion:
    """Return what one JSON body says.

    Raises:
        ValueError: when it is not a completion. The message says what is wrong and quotes nothing of it.
        RecursionError: when it is nested without end.
    """
    answer = json.loads(raw)
    match answer:
        case {"choices": [{"text": str(text)} as choice]}:
            pass
        case _:
            raise ValueError("the answer is not a completion with one text and a count of the prompt's tokens")
    usage = _usage(answer.get("usage"))
    finish, error = _finish(choice.get("finish_reason"))
    return Completion(
        _clean(text),
        usage.prompt_tokens,
        usage.completion_tokens,
        usage.cached_tokens,
        finish_reason=finish,
        error=error,
    )


def stream(raw: bytes) -> Completion:
    """Return what all events of a stream say together; never raises, since each event may be broken by itself."""
    texts: list[str] = []
    usage, finish, error = _Usage(), None, ""
    done, read, wrong = False, 0, False
    for data in _events(raw):
        if data == _DONE:
            done = True
            continue
        try:
            event = json.loads(data)
            said = _error(event)
            if said:
                error, read = error or said, read + 1
                continue
            text, reason, counted = _event(event)
            ended, why = _finish(reason)
        except (ValueError, RecursionError):
            wrong = True
            continue
        read += 1
        texts.append(text)
        finish, error, usage = ended or finish, error or why, counted or usage
    fault = Fault.MALFORMED if wrong or not (read or done) else None
    return Completion(
        *("".join(texts), usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens),
        *(finish, error, done, fault),
    )


def _events(raw: bytes) -> list[str]:
    """Return the data of each event; lines that are no data, as comments and names, are left out."""
    events: list[str] = []
    data: list[str] = []
    for line in [*raw.decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n").split("\n"), ""]:
        if line.startswith("data:"):
            data.append(line.removeprefix("data:").removeprefix(" "))
        elif not line and data:
            events.append("\n".join(data).strip())
            data = []
    return events


def _event(event: object) -> tuple[str, object, _Usage | None]:
    """Return text, reason to end, and counts of one event. The last one may have counts and no choice.

    Raises:
        ValueError: when it is no part of a completion.
    """
    match event:
        case {"choices": []}:
            text, reason = "", None
        case {"choices": [{"text": str(said)} as choice]}:
            text, reason = said, choice.get("finish_reason")
        case _:
            raise ValueError("an event is no part of a completion with one text")
    assert isinstance(event, dict)
    counted = _usage(event["usage"]) if event.get("usage") is not None else None
    return _clean(text), reason, counted


def _error(event: object) -> str:
    """Return the words of an error event; empty when it is none."""
    match event:
        case {"error": {"message": str(words)}} | {"error": str(words)} | {"object": "error", "message": str(words)}:
            return printable(words, DETAIL_LIMIT) or "an error without words"
        case {"error": error} if error is not None:
            return "an error without words"
        case {"object": "error"}:
            return "an error without words"
    return ""


def _finish(reason: object) -> tuple[str | None, str]:
    """Return why an answer ended, and the words of an abort where SGLang brings them along."""
    match reason:
        case str():
            return printable(reason, DETAIL_LIMIT), ""
        case {"type": str(kind), **more}:
            words = more.get("message")
            why = words if kind == "abort" and isinstance(words, str) else ""
            return printable(kind, DETAIL_LIMIT), printable(why, DETAIL_LIMIT)
    return None, ""


def _usage(said: Any) -> _Usage:
    """Return what a server counted.

    Raises:
        ValueError: when a count is none.
    """
    if said is None:
        return _Usage()
    if not isinstance(said, dict):
        raise ValueError("the counts of the answer cannot be read")  # noqa: TRY004 - of what came, not of an argument
    details = said.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else None
    return _Usage(_count(said.get("prompt_tokens")), _count(said.get("completion_tokens")), _count(cached))


def _count(said: object) -> int | None:
    if said is None:
        return None
    if isinstance(said, bool) or not isinstance(said, int) or said < 0:  # Python takes a bool for an int
        raise ValueError("the count of the prompt's tokens is no number")
    return said


def _clean(text: str) -> str:
    return text.encode(errors="replace").decode()  # half a surrogate pair could not be printed
