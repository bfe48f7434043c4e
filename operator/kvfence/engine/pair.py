"""Asks a prefill and a decode server the way a router does: the same body to both legs at the same time.

What comes back is not to be trusted: the servers are what is being examined. Every answer, however malformed, late,
large or absent, becomes an `Answer`; `ask` raises only when it is cancelled.
"""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Self

import aiohttp

if TYPE_CHECKING:
    from types import TracebackType

BODY_LIMIT = 1_000_000
"""Bytes of an answer. A completion of 4,096 tokens has some 20,000."""

DETAIL_LIMIT = 300
"""Characters that are kept of an error's text."""

ROOMS = 2**63
"""Bootstrap rooms are signed 64-bit integers in SGLang."""


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
    prompt: str = field(repr=False)
    max_tokens: int

    def body(self) -> dict[str, Any]:
        """Return the request as the OpenAI API has it, with SGLang's `ignore_eos`."""
        return {
            "model": self.model,
            "prompt": self.prompt,
            "max_tokens": self.max_tokens,
            "temperature": 0,
            "ignore_eos": True,
        }


class Client:
    """Asks servers; an async context manager, since it holds an HTTP session.

    Each request has a connection of its own: one kept open from before may have been closed by the server just now,
    and that would look like a server that cannot be reached.
    """

    def __init__(self, timeout_seconds: float, body_limit: int = BODY_LIMIT) -> None:
        self._timeout = aiohttp.ClientTimeout(total=timeout_seconds)
        self._body_limit = body_limit
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        """Open the session. Proxies, cookies and compression are off: nothing may come between us and the server."""
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(force_close=True, limit=0),
            timeout=self._timeout,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
        )
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Close the session."""
        assert self._session is not None
        await self._session.close()

    async def ask(self, pair: Pair, question: Question, room: int) -> PairAnswer:
        """Ask both legs at once and wait for both.

        Args:
            pair: where they are.
            question: the same for both.
            room: under which the legs find each other's KV; below `ROOMS`, drawn anew for each question.
        """
        body = question.body() | {
            "bootstrap_host": pair.bootstrap_host,
            "bootstrap_port": pair.bootstrap_port,
            "bootstrap_room": room,
        }
        prefill, decode = await asyncio.gather(self._post(pair.prefill_url, body), self._post(pair.decode_url, body))
        return PairAnswer(prefill, decode)

    async def ask_one(self, url: str, question: Question) -> Answer:
        """Ask a server that does both itself."""
        return await self._post(url, question.body())

    async def _post(self, url: str, body: dict[str, Any]) -> Answer:
        assert self._session is not None, "use the client as `async with Client(...)`"
        began = time.monotonic()
        status: int | None = None
        text, tokens, fault, detail = "", None, None, ""
        try:
            async with self._session.post(
                f"{url}/v1/completions", json=body, headers={"Accept-Encoding": "identity"}, allow_redirects=False
            ) as response:
                status = response.status
                raw = await self._read(response)
            if status == 200:
                text, tokens = _completion(raw)
            else:
                fault, detail = Fault.STATUS, _printable(raw.decode(errors="replace"))
        except TimeoutError:
            fault = Fault.TIMED_OUT
        except _TooLargeError:
            fault = Fault.TOO_LARGE
        except (ValueError, RecursionError, aiohttp.ClientResponseError) as error:  # this one: what came is not HTTP
            fault, detail = Fault.MALFORMED, _printable(str(error))
        except (aiohttp.ClientError, OSError) as error:
            fault, detail = Fault.UNREACHABLE, _printable(str(error))
        return Answer(status, text, tokens, time.monotonic() - began, fault, detail)

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        raw = bytearray()
        async for chunk in response.content.iter_any():
            raw += chunk
            if len(raw) > self._body_limit:
                raise _TooLargeError
        return bytes(raw)


class _TooLargeError(Exception):
    """The answer went over the limit; what was read of it is thrown away."""


def _completion(raw: bytes) -> tuple[str, int]:
    """Return text and prompt tokens.

    Raises:
        ValueError: when it is not a completion. The message says what is wrong and quotes nothing of it.
        RecursionError: when it is nested without end.
    """
    answer = json.loads(raw)
    match answer:
        case {"choices": [{"text": str(text)}], "usage": {"prompt_tokens": int(tokens)}} if tokens >= 0:
            pass
        case _:
            raise ValueError("the answer is not a completion with one text and a count of the prompt's tokens")
    if isinstance(tokens, bool):  # which Python takes for an int
        raise ValueError("the count of the prompt's tokens is no number")  # noqa: TRY004
    return text.encode(errors="replace").decode(), tokens  # half a surrogate pair could not be printed


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text[:DETAIL_LIMIT])
