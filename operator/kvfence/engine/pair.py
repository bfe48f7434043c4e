"""Asks a prefill and a decode server the way a router does: the same body to both legs at the same time.

What comes back is not to be trusted: the servers are what is being examined. Every answer, however malformed, late,
large or absent, becomes an `Answer`; `ask` raises only when it is cancelled.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from kvfence.domain.asking import ROOMS, Answer, Fault, Pair, PairAnswer, Question
from kvfence.engine.completions import completion
from kvfence.engine.web import BODY_LIMIT, DETAIL_LIMIT, OverWeb, Web, printable

__all__ = ["BODY_LIMIT", "DETAIL_LIMIT", "ROOMS", "Answer", "Client", "Fault", "Pair", "PairAnswer", "Question"]


class Client(OverWeb):
    """Asks servers; an async context manager, since it holds an HTTP session (see `web.Web`)."""

    def __init__(self, timeout_seconds: float, body_limit: int = BODY_LIMIT) -> None:
        super().__init__(Web(timeout_seconds, body_limit))

    async def ask(self, pair: Pair, question: Question, room: int, seconds: float | None = None) -> PairAnswer:
        """Ask both legs at once and wait for both.

        Args:
            pair: where they are.
            question: the same for both.
            room: under which the legs find each other's KV; below `ROOMS`, drawn anew for each question.
            seconds: until both answers must be complete, if that is less than the client's own limit.
        """
        body = _body(pair, question, room)
        prefill, decode = await asyncio.gather(
            self._post(pair.prefill_url, _named(body, question, "prefill"), seconds),
            self._post(pair.decode_url, _named(body, question, "decode"), seconds),
        )
        return PairAnswer(prefill, decode)

    async def ask_leg(self, pair: Pair, question: Question, room: int, leg: str) -> Answer:
        """Ask both legs at once, wait for one of them, and leave the other.

        Where prefill ends a request, decode waits for its KV until a time-out.

        Args:
            pair: where they are.
            question: the same for both.
            room: as in `ask`.
            leg: `prefill` or `decode`, whose answer is waited for.
        """
        body = _body(pair, question, room)
        urls = {"prefill": pair.prefill_url, "decode": pair.decode_url}
        asked = {
            name: asyncio.ensure_future(self._post(url, _named(body, question, name))) for name, url in urls.items()
        }
        try:
            return await asked[leg]
        finally:
            for one in asked.values():
                one.cancel()
            await asyncio.gather(*asked.values(), return_exceptions=True)

    async def ask_one(self, url: str, question: Question) -> Answer:
        """Ask a server that does both itself."""
        return await self._post(url, json.dumps(question.body()).encode())

    async def _post(self, url: str, body: bytes, seconds: float | None = None) -> Answer:
        reply = await self._web.fetch("POST", f"{url}/v1/completions", body, seconds)
        text, tokens, fault, detail = "", None, reply.fault, reply.detail
        if fault is None and reply.status != 200:
            fault, detail = Fault.STATUS, printable(reply.body.decode(errors="replace"), DETAIL_LIMIT)
        elif fault is None:
            try:
                text, tokens = _counted(reply.body)
            except (ValueError, RecursionError) as error:
                fault, detail = Fault.MALFORMED, printable(str(error), DETAIL_LIMIT)
        raw = (reply.body or reply.part).decode(errors="replace")
        return Answer(reply.status, text, tokens, reply.seconds, fault, detail, raw=raw)


def _body(pair: Pair, question: Question, room: int) -> dict[str, Any]:
    return question.body() | {
        "bootstrap_host": pair.bootstrap_host,
        "bootstrap_port": pair.bootstrap_port,
        "bootstrap_room": room,
    }


def _named(body: dict[str, Any], question: Question, leg: str) -> bytes:
    rid = question.rids.get(leg)
    return json.dumps(body if rid is None else body | {"rid": rid}).encode()


def _counted(raw: bytes) -> tuple[str, int]:
    """Return text and prompt tokens.

    Raises:
        ValueError: when it is not a completion, or does not say how many tokens the prompt had.
        RecursionError: when it is nested without end.
    """
    said = completion(raw)
    if said.prompt_tokens is None:
        raise ValueError("the answer is not a completion with one text and a count of the prompt's tokens")
    return said.text, said.prompt_tokens
