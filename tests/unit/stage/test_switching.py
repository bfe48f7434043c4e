"""DNS is off when CoreDNS has ended, and a stage without a node has none."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from e2e.cluster import process_table, stage
from e2e.cluster.layout import Layout, Switches
from e2e.cluster.node import Node
from e2e.cluster.stage import Parts, Stage
from e2e.errors import StageError

PARTS = Parts(Path("/c/kubernetes"), Path("/c/etcd"), Path("/c/addons"), Path("/c/clients"))


class Switched:
    """In the place of a node on which CoreDNS runs: it ends so many looks after it was asked to."""

    def __init__(self, looks: int) -> None:
        self.looks = looks
        self.asked: list[int] = []

    def processes(self) -> dict[str, int]:
        there = {"etcd": 50, "kubelet": 52, "coredns": 77}
        if self.asked:
            self.looks -= 1
            if self.looks < 0:
                del there["coredns"]
        return there


@pytest.fixture
def switched_off(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Switched]:
    """Switches DNS off on a node where CoreDNS takes so many looks to end."""
    layout.state.mkdir(parents=True)

    def switch(looks: int) -> Switched:
        fake = Switched(looks)
        monkeypatch.setattr(Node, "processes", lambda _: fake.processes())
        monkeypatch.setattr(process_table, "terminate", fake.asked.append)
        stage._switched(Stage(layout, Switches(dns=True), PARTS, Node(layout, 41)), Switches())
        return fake

    return switch


def test_switching_dns_off_waits_until_it_is_off(switched_off: Callable[[int], Switched], layout: Layout) -> None:
    fake = switched_off(2)
    assert fake.asked == [77]
    assert fake.looks < 0, "it was there when it was last looked for"
    assert json.loads((layout.state / "stage.json").read_text())["switches"]["dns"] is False


def test_dns_that_does_not_go_off_is_an_error_and_the_record_does_not_say_that_it_is_off(
    switched_off: Callable[[int], Switched], layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "ADDON_SECONDS", 0.0)
    with pytest.raises(StageError, match="for coredns to end"):
        switched_off(1000)
    assert not (layout.state / "stage.json").exists()


@pytest.mark.parametrize("switches", [Switches(dns=True), Switches(network_policy=True)])
def test_a_stage_without_a_node_has_no_dns_and_says_so(
    switches: Switches, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = Layout("trial", 7, with_node=False, root=tmp_path)
    monkeypatch.setattr(Node, "processes", lambda _: {})
    with pytest.raises(StageError, match="has no node, so it has neither DNS nor NetworkPolicy"):
        stage._switched(Stage(layout, Switches(), PARTS, Node(layout, 41)), switches)
    assert not layout.state.exists()
