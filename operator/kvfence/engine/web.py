"""HTTP to servers that are not trusted: an answer of bounded size in bounded time, or a value that says why none came.

Nothing here raises but what is a mistake of the caller; a cancelled call is cancelled.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Self

import aiohttp
from yarl import URL

from kvfence.domain.asking import Fault, Reply, Unanswered
from kvfence.engine.text import DETAIL_LIMIT, printable

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["BODY_LIMIT", "DETAIL_LIMIT", "OverWeb", "Unanswered", "Web", "printable", "unanswered"]

BODY_LIMIT = 1_000_000
"""Bytes of an answer. A completion of 4,096 tokens has some 20,000."""

WORKER_HEADER = "x-smg-routed-worker-id"
"""In which smg 1.13 names the engine that answered."""

_HEADERS = {"Accept-Encoding": "identity"}


class Web:
    """Asks servers; an async context manager, since it holds an HTTP session.

    Each request has a connection of its own: one kept open from before may have been closed by the server just now,
    and that would look like a server that cannot be reached.
    """

    def __init__(self, timeout_seconds: float, body_limit: int = BODY_LIMIT, api_key: str | None = None) -> None:
        self._timeout = timeout_seconds
        self._body_limit = body_limit
        self._headers = _HEADERS if api_key is None else {**_HEADERS, "Authorization": f"Bearer {api_key}"}
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        """Open the session. Proxies, cookies and compression are off: nothing may come between us and the server."""
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(force_close=True, limit=0),
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

    async def fetch(self, method: str, url: str, body: bytes | None = None, seconds: float | None = None) -> Reply:
        """Send one request and return what came of it. Redirections are answers, they are not followed.

        Args:
            method: of HTTP.
            url: sent as it stands: dots, doubled slashes and percent signs in its path arrive at the server.
            body: JSON; none sends none.
            seconds: until the answer must be complete, if that is less than the client's own limit.
        """
        assert self._session is not None, "use the client as `async with`"
        limit = self._timeout if seconds is None else min(seconds, self._timeout)
        began = time.monotonic()
        status: int | None = None
        raw, fault, detail = b"", None, ""
        came = bytearray()
        worker: str | None = None
        try:
            async with self._session.request(
                method,
                URL(url, encoded=True),
                data=body,
                headers=self._headers if body is None else {**self._headers, "Content-Type": "application/json"},
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=limit),
            ) as response:
                status, worker = response.status, response.headers.get(WORKER_HEADER)
                raw = await self._read(response, came)
        except TimeoutError:
            fault = Fault.TIMED_OUT
        except _TooLargeError:
            fault = Fault.TOO_LARGE
        except (ValueError, aiohttp.ClientResponseError) as error:  # this one: what came is not HTTP
            fault, detail = Fault.MALFORMED, printable(str(error), DETAIL_LIMIT)
        except (aiohttp.ClientError, OSError) as error:
            fault, detail = Fault.UNREACHABLE, printable(str(error), DETAIL_LIMIT)
        part = b"" if fault is None else bytes(came[: self._body_limit])
        named = None if worker is None else printable(worker, DETAIL_LIMIT)
        return Reply(status, raw, time.monotonic() - began, fault, detail, part=part, worker=named)

    async def _read(self, response: aiohttp.ClientResponse, raw: bytearray) -> bytes:
        async for chunk in response.content.iter_any():
            raw += chunk
            if len(raw) > self._body_limit:
                raise _TooLargeError
        return bytes(raw)


class OverWeb:
    """What asks in its own words over a session, and is an async context manager for it."""

    def __init__(self, web: Web) -> None:
        self._web = web

    async def __aenter__(self) -> Self:
        """Open the session."""
        await self._web.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the session."""
        await self._web.__aexit__(kind, error, trace)


def unanswered(what: str, reply: Reply) -> Unanswered:
    """Return in words why this is no answer with status 200."""
    came = {
        Fault.TIMED_OUT: "no complete answer came in time",
        Fault.UNREACHABLE: "there was no connection, or it broke",
        Fault.TOO_LARGE: "the answer was too large",
        Fault.MALFORMED: "what came was not HTTP",
    }
    why = came.get(reply.fault, "the answer was not usable") if reply.fault else f"the answer had status {reply.status}"
    return Unanswered(f"{what}: {why}")


class _TooLargeError(Exception):
    """The answer went over the limit; what was read of it is thrown away."""
