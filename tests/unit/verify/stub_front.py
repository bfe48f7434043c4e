"""A router's pod that is made of a few lines, works, and can be broken in one place."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kvfence.domain.asking import Fault, Reply
from kvfence.domain.verdicts import Verdict
from kvfence.verify.front_door import Asker, Front, front_passes_needed, prove_front

CAP = 1003
WORKERS = ("http://10.0.0.1:30000", "http://10.0.0.2:30000")
URL = "http://front"
OBSERVE_URL = "http://observed"

Answer = Callable[[dict[str, Any]], Reply]
"""Gets the body, if it was one."""


def models(cap: object = CAP, name: object = "tiny") -> dict[str, Any]:
    return {"object": "list", "data": [{"id": name, "object": "model", "max_model_len": cap}]}


def workers(*urls: object, **fields: object) -> dict[str, Any]:
    return {"workers": [{"url": url, "status": "ready"} | fields for url in urls], "total": len(urls)}


def reply(status: int, body: object = None, seconds: float = 0.01) -> Reply:
    return Reply(status, body if isinstance(body, bytes) else json.dumps(body or {}).encode(), seconds)


def saying(status: int, body: object = None, seconds: float = 0.01) -> Answer:
    """Return what says this."""
    return lambda _body: reply(status, body, seconds)


def failing(fault: Fault, status: int | None = None) -> Answer:
    """Return what gives no usable answer."""
    return lambda _body: Reply(status, b"", 1.0, fault, "no")


def _list() -> Answer:
    return saying(200, workers(*WORKERS))


@dataclass
class StubFront:
    """One token per character and one to begin with; `broken` answers a method and path in its own way."""

    broken: dict[tuple[str, str], Answer] = field(default_factory=dict)
    listed: Answer = field(default_factory=_list)
    asked: list[tuple[str, str]] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    limits: list[float | None] = field(default_factory=list)
    passes: set[str] = field(default_factory=lambda: {f"pass-{i}" for i in range(front_passes_needed())})

    async def fetch(self, method: str, url: str, body: bytes | None = None, seconds: float | None = None) -> Reply:
        await asyncio.sleep(0)
        fields = json.loads(body) if body else {}
        if url == f"{OBSERVE_URL}/workers":
            assert method == "GET"
            return self.listed(fields)
        assert url.startswith(f"{URL}/")
        place = (method, url.removeprefix(URL))
        self.asked.append(place)
        if place in self.broken:
            return self.broken[place](fields)
        if place == ("GET", "/v1/models"):
            return reply(200, models())
        if place == ("POST", "/v1/completions"):
            self.limits.append(seconds)
            return self.complete(fields)
        return reply(404)

    def complete(self, body: dict[str, Any]) -> Reply:
        """Answer as the pair behind the front does."""
        self.bodies.append(body)
        if body.get("kvfence_pass") not in self.passes:
            return reply(503)
        self.passes.discard(body["kvfence_pass"])
        tokens = len(body["prompt"]) + 1
        if tokens > CAP - 7:
            return reply(400)
        return reply(200, {"choices": [{"text": "...."}], "usage": {"prompt_tokens": tokens}})

    def proven(self, web: Asker | None = None) -> Verdict:
        """Check the front."""
        subject = Front("the front of pod r", URL, OBSERVE_URL, "tiny", CAP, frozenset(WORKERS))
        return asyncio.run(prove_front(web or self, subject, iter(sorted(self.passes))))
