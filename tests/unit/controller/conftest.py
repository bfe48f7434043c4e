"""A world for the reconciler, with the checks scripted and the operator's clock the loop's own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from kvfence.controller import memory
from kvfence.verify import front_door, pair_suite
from tests.unit.controller.world import World, pool_object


@pytest.fixture
def make_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., World]]:
    """Call it with the numbers of engines; the world that was made last is the one whose checks are scripted."""
    made: list[World] = []
    clock = SimpleNamespace(monotonic=lambda: asyncio.get_running_loop().time())
    monkeypatch.setattr(memory, "time", clock)

    def make(prefill: int = 1, decode: int = 1) -> World:
        folder = tmp_path / str(len(made))
        folder.mkdir()
        world = World(folder)
        made.append(world)
        monkeypatch.setattr(pair_suite, "prove_pair", world.prove_pair)
        monkeypatch.setattr(front_door, "prove_front", world.prove_front)
        world.kubernetes.put(pool_object(prefill, decode))
        return world

    yield make
    for world in made:
        world.close()


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    """One prefill engine and one decode engine; nothing but the pool is there."""
    return make_world()
