"""The parts together: what watches, what works and what looks again now and then; and how they end."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from kvfence.app import operator
from kvfence.app.settings import Settings, settings_from
from kvfence.controller.cuts import Cuts
from kvfence.controller.metrics import REGISTRY
from kvfence.controller.queue import Key, Priority, WorkQueue
from kvfence.controller.reconciling import Reconciler
from kvfence.controller.watchlists import Watchlists
from kvfence.kube.errors import Unreachable
from kvfence.kube.kinds import SECRET, SERVICE
from tests.unit.app.test_settings import GIVEN
from tests.unit.controller.fake_kubernetes import FakeKubernetes
from tests.unit.controller.virtual_time import run
from tests.unit.controller.world import KEY, pool_object

SETTINGS = settings_from(GIVEN | {"KVFENCE_RESYNC_SECONDS": "100"})


class Noted(WorkQueue):
    """A queue that notes what is added."""

    def __init__(self) -> None:
        self.added: list[tuple[Key, Priority]] = []

    def add(self, key: Key, priority: Priority = Priority.CHANGED) -> None:
        self.added.append((key, priority))


def resynced(kubernetes: FakeKubernetes, seconds: float, settings: Settings = SETTINGS) -> Noted:
    queue = Noted()

    async def go() -> None:
        task = asyncio.create_task(operator._resync(settings, kubernetes, queue, Cuts(None)))
        await asyncio.sleep(seconds)
        assert not task.done()
        task.cancel()

    run(go())
    return queue


def with_pool(namespace: str = "ns") -> FakeKubernetes:
    kubernetes = FakeKubernetes()
    pool = pool_object()
    kubernetes.put(pool | {"metadata": pool["metadata"] | {"namespace": namespace}})
    return kubernetes


def test_each_pool_is_looked_at_again_now_and_then_behind_what_changed() -> None:
    before = REGISTRY.get_sample_value("kvfence_resyncs_total") or 0.0
    queue = resynced(with_pool(), 1000)
    assert set(queue.added) == {(KEY, Priority.RESYNC)}
    assert 8 <= len(queue.added) <= 12
    assert REGISTRY.get_sample_value("kvfence_resyncs_total") == before + len(queue.added)


def test_pools_of_other_namespaces_are_not_looked_at_where_some_are_named() -> None:
    named = replace(SETTINGS, watch_namespaces=("ns", "other"))
    assert resynced(with_pool("ns"), 150, named).added
    assert not resynced(with_pool("strange"), 150, named).added


def test_an_api_server_that_does_not_answer_once_does_not_end_the_rounds(caplog: pytest.LogCaptureFixture) -> None:
    class Flaky(FakeKubernetes):
        async def list(self, *arguments: object, **more: object) -> list[dict[str, object]]:
            if not caplog.records:
                raise Unreachable(None, "Unreachable", "cannot list inferencepools: no answer")
            return [pool_object()]

    assert resynced(Flaky(), 500).added
    assert "no answer" in caplog.text


def test_the_operator_works_on_what_is_watched_and_leaves_nothing_running(monkeypatch: pytest.MonkeyPatch) -> None:
    kubernetes = with_pool()

    async def watch(_: Settings, queue: WorkQueue) -> None:
        queue.add(KEY)
        await asyncio.Event().wait()

    async def go() -> None:
        monkeypatch.setattr(operator, "_watch", watch)
        working = asyncio.create_task(operator._work(SETTINGS, kubernetes))
        await asyncio.sleep(50)
        assert kubernetes.all(SERVICE)
        assert len(kubernetes.all(SECRET)) == 1
        assert REGISTRY.get_sample_value("kvfence_queue_length") == 0
        working.cancel()
        await asyncio.wait({working})
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run(go())


@pytest.mark.parametrize("how", ["ends", "fails"])
def test_when_the_watch_ends_the_work_ends_with_it(monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    async def watch(_: Settings, queue: WorkQueue) -> None:
        await asyncio.sleep(5)
        if how == "fails":
            raise RuntimeError("of the watch")

    stopped: list[Reconciler] = []

    async def stop(this: Reconciler) -> None:
        stopped.append(this)

    async def go() -> None:
        monkeypatch.setattr(operator, "_watch", watch)
        monkeypatch.setattr(Reconciler, "stop", stop)
        async with asyncio.timeout(10):
            await operator._work(SETTINGS, with_pool())
        assert asyncio.all_tasks() == {asyncio.current_task()}

    if how == "ends":
        run(go())
    else:
        with pytest.raises(RuntimeError, match="of the watch"):
            run(go())
    assert len(stopped) == 1, "and jobs are ended too"


def test_when_other_advisories_count_every_pool_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operator, "ADVISORIES_SECONDS", 0.005)
    queue = Noted()
    watchlists = Watchlists(tmp_path / "advisories.json")  # which is not there
    watchlists.current()

    async def go() -> int:
        task = asyncio.create_task(operator._follow(watchlists, SETTINGS, with_pool(), queue))
        await asyncio.sleep(0.1)
        quiet = len(queue.added)
        for name in ("advisories.json", "advisories.json.sig"):
            (tmp_path / name).write_bytes(b"none")  # now something else is wrong
        await asyncio.sleep(1)
        task.cancel()
        return quiet

    assert asyncio.run(go()) == 0
    assert set(queue.added) == {(KEY, Priority.RESYNC)}
