"""kopf watches, and does nothing but put a pool into the queue: nothing is ever written on an object by it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kvfence.app import watching
from kvfence.controller.metrics import REGISTRY
from kvfence.controller.queue import Key
from kvfence.kube.kinds import CHILDREN, POD, POOL

CHILD = {"app.kubernetes.io/managed-by": "kvfence", "kvfence.io/pool": "web"}


def handlers(added: list[Key]) -> dict[str, Any]:
    registry = watching.registry(added.append)
    return {str(handler.id): handler for handler in registry._watching.get_all_handlers()}


def see(plural: str, metadata: dict[str, Any]) -> list[Key]:
    added: list[Key] = []
    handler = handlers(added)[plural]
    asyncio.run(handler.fn(body={"metadata": metadata}, type="MODIFIED", logger=None, memo=None))
    return added


def test_a_pool_is_watched_and_each_kind_that_belongs_to_one() -> None:
    watched = {(h.selector.group, h.selector.version, h.selector.any_name) for h in handlers([]).values()}
    kinds = (POOL, POD, *CHILDREN)
    assert watched == {(*kind.api_version.rpartition("/")[::2], kind.plural) for kind in kinds}


def test_an_event_about_a_pool_is_about_that_pool() -> None:
    assert see("inferencepools", {"namespace": "shop", "name": "web"}) == [("shop", "web")]


@pytest.mark.parametrize("plural", [kind.plural for kind in (POD, *CHILDREN)])
def test_an_event_about_what_belongs_to_a_pool_is_about_the_pool(plural: str) -> None:
    metadata = {"namespace": "shop", "name": "web-prefill-abc", "labels": CHILD}
    before = count(plural)
    assert see(plural, metadata) == [("shop", "web")]
    assert count(plural) == before + 1


@pytest.mark.parametrize("labels", [{}, None, {"kvfence.io/pool": ""}, {"app": "other"}])
def test_an_event_about_something_else_is_about_no_pool(labels: object) -> None:
    assert see("pods", {"namespace": "shop", "name": "other", "labels": labels}) == []
    assert see("pods", {"namespace": "shop", "name": "other"}) == []


def test_no_handler_is_there_that_would_keep_something_on_an_object() -> None:
    registry = watching.registry(lambda _: None)
    for others in (registry._changing, registry._spawning, registry._indexing, registry._webhooks):
        assert list(others.get_all_handlers()) == []


def test_kopf_posts_no_events_scans_no_cluster_and_lists_our_own_objects_alone() -> None:
    settings = watching.settings()
    assert settings.posting.enabled is False
    assert settings.scanning.disabled is True
    selectors = settings.watching.label_selectors
    own = "app.kubernetes.io/managed-by=kvfence"
    chosen = {getattr(selector, "any_name", None): value for selector, value in selectors.items()}
    assert chosen == {kind.plural: own for kind in (POD, *CHILDREN)}, "not every pod of the cluster; and every pool"


def count(plural: str) -> float:
    kind = next(kind.kind for kind in (POD, *CHILDREN) if kind.plural == plural)
    return REGISTRY.get_sample_value("kvfence_watch_events_total", {"kind": kind}) or 0.0
