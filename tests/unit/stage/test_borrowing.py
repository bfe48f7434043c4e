"""A stage that was up before is put back as it was, one that was brought up for the while goes, and no other ends."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from e2e.cluster import stage
from e2e.cluster.layout import Layout, Switches
from e2e.cluster.node import Node
from e2e.cluster.stage import Parts, Stage
from e2e.errors import StageError

if TYPE_CHECKING:
    from tests.unit.stage.conftest import FakeProc

PARTS = Parts(Path("/c/kubernetes"), Path("/c/etcd"), Path("/c/addons"), Path("/c/clients"))
ALL_ON = Switches(dns=True, network_policy=True, audit=True)


class Lent:
    """In the place of a machine on which a stage is up or not: what is done with it, in order."""

    def __init__(self, layout: Layout, there: Switches | None) -> None:
        self.there = Stage(layout, there, PARTS, Node(layout, 7)) if there else None
        self.fails: Exception | None = None
        self.done: list[Switches | str] = []

    def up(self, layout: Layout, switches: Switches) -> Stage:
        self.done.append(switches)
        if self.fails:
            raise self.fails
        return Stage(layout, switches, PARTS, Node(layout, 41))

    def down(self, _: Layout) -> None:
        self.done.append("down")


@pytest.fixture
def lent(layout: Layout, proc: FakeProc, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Lent]:
    """Call it with the switches of the stage that is up; without, none is."""

    def make(there: Switches | None = None) -> Lent:
        machine = Lent(layout, there)
        monkeypatch.setattr(stage, "running", lambda _: machine.there)
        monkeypatch.setattr(stage, "up", machine.up)
        monkeypatch.setattr(stage, "down", machine.down)
        return machine

    return make


@pytest.mark.parametrize(
    ("there", "wanted", "has"),
    [
        (Switches(network_policy=True), Switches(dns=True), Switches(dns=True)),
        (Switches(network_policy=True), None, Switches(network_policy=True)),
        (Switches(audit=True), None, Switches(audit=True)),
        (Switches(audit=True), Switches(dns=True), Switches(dns=True, audit=True)),  # not afresh for having too much
        (ALL_ON, ALL_ON, ALL_ON),
    ],
    ids=str,
)
@pytest.mark.parametrize("ends", [None, KeyError("the test that borrows it failed"), KeyboardInterrupt()], ids=repr)
def test_a_borrowed_stage_that_is_up_is_put_back_as_it_was_and_stays(
    there: Switches,
    wanted: Switches | None,
    has: Switches,
    ends: BaseException | None,
    lent: Callable[..., Lent],
    layout: Layout,
) -> None:
    machine = lent(there)
    with pytest.raises(type(ends)) if ends else nullcontext(), stage.borrowed(layout, wanted) as borrowed:
        assert borrowed.switches == has
        machine.done.append("used")
        if ends:
            raise ends
    assert machine.done == [has, "used", there]


@pytest.mark.parametrize("wanted", [None, Switches(dns=True, audit=True)])
@pytest.mark.parametrize("ends", [None, KeyError("the test that borrows it failed"), KeyboardInterrupt()], ids=repr)
def test_a_borrowed_stage_that_was_not_up_goes_again_however_its_use_ends(
    wanted: Switches | None, ends: BaseException | None, lent: Callable[..., Lent], layout: Layout
) -> None:
    machine = lent()
    with pytest.raises(type(ends)) if ends else nullcontext(), stage.borrowed(layout, wanted) as borrowed:
        assert borrowed.switches == (wanted or Switches())
        machine.done.append("used")
        if ends:
            raise ends
    assert machine.done == [wanted or Switches(), "used", "down"]


def test_a_borrowed_stage_that_does_not_come_up_leaves_nothing(lent: Callable[..., Lent], layout: Layout) -> None:
    machine = lent()
    machine.fails = StageError("kubelet ended")
    with pytest.raises(StageError, match=r"^kubelet ended$"), stage.borrowed(layout, ALL_ON):
        raise AssertionError("it is not up")
    assert machine.done == [ALL_ON, "down"]


def test_a_stage_that_would_lose_its_objects_for_an_audit_log_is_not_borrowed(
    lent: Callable[..., Lent], layout: Layout
) -> None:
    machine = lent(Switches(dns=True))
    said = r"^stage trial is up without its audit log: take it down first \(`make stage-down`\)$"
    with pytest.raises(StageError, match=said), stage.borrowed(layout, Switches(audit=True)):
        raise AssertionError("it has no audit log")
    assert machine.done == []


def test_a_stage_of_another_cache_folder_is_neither_borrowed_nor_taken_down(
    lent: Callable[..., Lent], layout: Layout, elsewhere: Path
) -> None:
    machine = lent()
    with pytest.raises(StageError, match=f"another cache folder is up .{elsewhere}.: take"), stage.borrowed(layout):
        raise AssertionError("it belongs to somebody else")
    assert machine.done == []
