"""What the door reads of a body, and which object a delete is for."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kvfence.kube.client import Kubernetes
from kvfence.kube.kinds import POD
from kvfence_engine import middleware
from kvfence_engine.cutting import Cutter
from kvfence_engine.gate import Gate
from kvfence_engine.middleware import DoorMiddleware
from kvfence_engine.state import Door, Grant, SharedState

LIMIT = 1000


@pytest.mark.parametrize(("size", "status"), [(LIMIT, 200), (LIMIT + 1, 413), (100 * LIMIT, 413)])
def test_a_body_over_the_limit_is_refused_before_it_is_read_to_its_end(
    monkeypatch: pytest.MonkeyPatch, size: int, status: int
) -> None:
    monkeypatch.setattr(middleware, "BODY_LIMIT", LIMIT)
    state = SharedState.create()
    state.set_grant(Grant(Door.OPEN, epoch=1, cap=100))
    parts = [b'{"prompt":"' + b"a" * (LIMIT - 13) + b'"}', *(b" " * 100 for _ in range((size - LIMIT) // 100))]
    parts += [b" " * ((size - LIMIT) % 100)]
    taken = 0
    got: list[Any] = []

    async def application(_scope: Any, receive: Any, send: Any) -> None:
        assert len((await receive())["body"]) == size
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def receive() -> dict[str, Any]:
        nonlocal taken
        taken += len(parts[0])
        return {"type": "http.request", "body": parts.pop(0), "more_body": bool(parts)}

    async def send(message: Any) -> None:
        got.append(message)

    gate = Gate(state, disaggregated=False)
    door = DoorMiddleware(application, gate, Cutter(), lambda: None, lambda _: None)
    scope: Any = {"type": "http", "method": "POST", "path": "/v1/completions", "headers": []}
    asyncio.run(door(scope, receive, send))
    assert got[0]["status"] == status
    assert taken <= LIMIT + 100


class Asked(Kubernetes):
    """A client whose requests go nowhere."""

    def __init__(self) -> None:
        self.writes = 0
        self.bodies: list[Any] = []

    async def _ask(self, *_arguments: Any, body: Any = None, **_more: Any) -> dict[str, Any]:
        self.bodies.append(body)
        return {}


def test_a_delete_says_of_which_uid_the_object_has_to_be() -> None:
    kubernetes = Asked()
    assert asyncio.run(kubernetes.delete(POD, "ns", "a", "uid-1"))
    (body,) = kubernetes.bodies
    assert body["preconditions"] == {"uid": "uid-1"}
