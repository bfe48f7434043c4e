"""The demo removes what it made, and no operator that somebody else's pool needs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from e2e.chart.helm import Helm
from e2e.cluster.kubectl import Kubectl
from e2e.demo import installation
from e2e.demo.ground import Ground
from e2e.errors import StageError

OURS = {"kvfence.io/made-by": "demo"}


class Cluster:
    """Namespaces, releases and pools, with as much of kubectl and helm as is asked of them; notes what is removed."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.namespaces: dict[str, dict[str, str]] = {}
        self.releases: dict[str, list[str]] = {}
        self.pools: list[str] = []
        self.removed: list[str] = []
        kubectl, helm = Kubectl(folder / "k", folder / "c"), Helm(folder / "h", folder / "c", folder)
        self.ground = Ground(kubectl, helm, None, "a cluster", "", "kubectl")
        monkeypatch.setattr(installation, "_namespace", self._namespace)
        monkeypatch.setattr(installation, "_releases", lambda _: self.releases)
        monkeypatch.setattr(installation, "_crd_is_ours", lambda *_: True)
        monkeypatch.setattr(installation, "pools", lambda _: self.pools)
        monkeypatch.setattr(Kubectl, "run", lambda _, *arguments, **__: self._delete(arguments))
        monkeypatch.setattr(Helm, "uninstall", lambda _, namespace: self.removed.append(f"release {namespace}"))

    def remove(self) -> list[str]:
        return installation.remove(self.ground, "system", "demo")

    def _namespace(self, _: Kubectl, name: str) -> dict[str, Any] | None:
        labels = self.namespaces.get(name)
        return None if labels is None else {"metadata": {"labels": labels}, "status": {"phase": "Active"}}

    def _delete(self, arguments: tuple[str, ...]) -> str:
        assert arguments[0] == "delete", arguments
        self.removed.append(" ".join(arguments[1:3]))
        return ""


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster(tmp_path, monkeypatch)
    made.namespaces = {"demo": OURS, "system": OURS}
    made.releases = {"system": []}
    return made


CRD = "crd inferencepools.kvfence.io"


def test_what_the_demo_made_is_removed_the_pool_first(cluster: Cluster) -> None:
    said = cluster.remove()
    assert cluster.removed == ["namespace demo", "release system", CRD, "namespace system"]
    assert len(said) == 2


def test_namespaces_that_the_demo_did_not_make_stay_with_what_is_in_them(cluster: Cluster) -> None:
    cluster.namespaces = {"demo": {}, "system": {}}
    assert cluster.remove() == ["Nothing of the demo is there."]
    assert cluster.removed == []


def test_the_operator_stays_while_another_pool_needs_it(cluster: Cluster) -> None:
    cluster.pools = ["other/pool"]
    assert "since other pools need it: other/pool" in cluster.remove()[1]
    assert cluster.removed == ["namespace demo"]


def test_a_pool_of_another_operator_keeps_the_crd_and_not_the_demos_operator(cluster: Cluster) -> None:
    cluster.pools, cluster.releases["another"] = ["other/pool"], ["other"]
    cluster.remove()
    assert cluster.removed == ["namespace demo", "release system", "namespace system"]


@pytest.mark.parametrize(
    ("releases", "found"),
    [
        ({}, None),
        ({"theirs": []}, "theirs"),
        ({"theirs": ["a", "demo"]}, "theirs"),
        ({"theirs": ["a"]}, None),
        ({"ours": []}, None),
    ],
    ids=str,
)
def test_an_operator_of_somebody_else_is_used_where_it_looks_after_the_demos_namespace(
    cluster: Cluster, releases: dict[str, list[str]], found: str | None
) -> None:
    cluster.namespaces = {"theirs": {}, "ours": OURS}
    cluster.releases = releases
    assert installation._found(cluster.ground, "system", "demo") == found


def test_an_operator_in_the_way_that_looks_elsewhere_is_said_with_what_to_do(cluster: Cluster) -> None:
    cluster.namespaces, cluster.releases = {"system": {}}, {"system": ["a", "b"]}
    with pytest.raises(StageError, match=r"looks after a, b only\. Add demo to its watchNamespaces"):
        installation._found(cluster.ground, "system", "demo")


def test_releases_are_read_off_helm(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    listed = [
        {"name": "kvfence", "namespace": "a", "chart": "kvfence-0.1.0"},
        {"name": "x", "namespace": "b", "chart": "nginx-1"},
        {"name": "kvfence", "namespace": "c", "chart": "kvfence-0.1.0"},
    ]

    def run(_: Helm, *arguments: str) -> str:
        if arguments[0] == "list":
            return json.dumps(listed)
        return json.dumps({"watchNamespaces": ["d"] if "c" in arguments else []})

    monkeypatch.setattr(Helm, "run", run)
    assert installation._releases(cluster.ground.helm) == {"a": [], "c": ["d"]}


def test_a_namespace_of_somebody_else_is_not_used(cluster: Cluster) -> None:
    cluster.namespaces = {"demo": {}}
    with pytest.raises(StageError, match="the demo did not make: give another name with --namespace"):
        installation.have_namespace(cluster.ground.kubectl, "demo")
