"""The operator's own port: probes and metrics."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine
from typing import Any

import aiohttp
import pytest

from kvfence.app.serving import Health, serving
from kvfence.controller import metrics
from kvfence.controller.metrics import ApiWrites

Ask = Callable[[str], Coroutine[Any, Any, tuple[int, str]]]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def served(health: Health, questions: Callable[[Ask], Coroutine[Any, Any, None]]) -> None:
    async def go() -> None:
        port = free_port()
        async with serving(health, port), aiohttp.ClientSession() as session:

            async def ask(path: str) -> tuple[int, str]:
                async with session.get(f"http://127.0.0.1:{port}{path}") as answer:
                    return answer.status, await answer.text()

            await questions(ask)

    asyncio.run(go())


def test_it_is_alive_before_it_is_ready() -> None:
    health = Health()

    async def questions(ask: Ask) -> None:
        assert await ask("/healthz") == (200, "ok\n")
        assert (await ask("/readyz"))[0] == 503
        health.ready = True
        assert await ask("/readyz") == (200, "ok\n")
        assert (await ask("/"))[0] == 404

    served(health, questions)


def test_metrics_show_what_is_counted_and_no_name_of_a_user() -> None:
    async def questions(ask: Ask) -> None:
        metrics.RECONCILES.labels("done").inc()
        status, text = await ask("/metrics")
        assert status == 200
        for name in ("kvfence_reconciles_total", "kvfence_queue_length", "kvfence_leading", "kvfence_resyncs_total"):
            assert f"\n{name}" in text
        labels = {part.split("=")[0] for line in text.splitlines() if "{" in line for part in labels_of(line)}
        assert labels <= {"kind", "result", "step", "le"}

    served(Health(), questions)


def labels_of(line: str) -> list[str]:
    return line.partition("{")[2].rpartition("}")[0].split(",")


def test_api_writes_are_shown_as_they_stand() -> None:
    writes = [3]
    collector = ApiWrites(lambda: writes[0])
    for expected in (3, 7):
        writes[0] = expected
        (family,) = collector.collect()
        assert [(sample.name, sample.value) for sample in family.samples] == [("kvfence_api_writes_total", expected)]


def test_a_port_that_is_taken_is_an_error() -> None:
    async def go() -> None:
        with socket.socket() as taken:
            taken.bind(("0.0.0.0", 0))
            taken.listen()
            async with serving(Health(), int(taken.getsockname()[1])):
                pass

    with pytest.raises(OSError, match="address already in use"):
        asyncio.run(go())
