"""A stage that is gone has left nothing on the machine but its logs and its image store."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from e2e.cluster import busybox, node, process_table, stage
from e2e.cluster.layout import STAGE, Layout, Switches
from e2e.lifecycle import leftovers
from e2e.lifecycle.conftest import ALL_ON

if TYPE_CHECKING:
    from e2e.cluster.stage import Stage


def used(up: Stage) -> Stage:
    """The stage with pods that have volumes, a port on the node, memory limits and a life of their own."""
    volumes = [{"name": "disk", "emptyDir": {}}, {"name": "memory", "emptyDir": {"medium": "Memory"}}]
    pod = busybox.web_server("web", "hello", {"app": "web"})
    pod["spec"] |= {"volumes": volumes}
    pod["spec"]["containers"][0] |= {
        "volumeMounts": [{"name": one["name"], "mountPath": f"/volumes/{one['name']}"} for one in volumes],
        "ports": [{"containerPort": busybox.PORT, "hostPort": 18080}],
        "resources": {"limits": {"memory": "64Mi", "cpu": "100m"}},
    }
    up.kubectl.run("apply", "--filename", "-", given=json.dumps(pod))
    up.kubectl.run("wait", "--for=condition=Ready", "pod/web", "--timeout=60s")
    return up


@pytest.mark.usefixtures("no_stage")
def test_nothing_is_left_behind_by_a_stage_with_pods() -> None:
    before = leftovers.look()
    subprocess.run([sys.executable, "-m", "e2e.cluster", "up", "--audit"], check=True)  # its children are orphans now
    used(stage.up(STAGE, ALL_ON))
    during = leftovers.difference(before, leftovers.look())
    assert set(during) == {"orphans", "namespaces", "network", "cgroups"}, "it sees these, and the others never differ"
    stage.down(STAGE)
    assert leftovers.difference(before, leftovers.look()) == {}
    assert [entry.name for entry in STAGE.state.iterdir()] == ["logs"]


@pytest.mark.usefixtures("no_stage")
def test_nothing_is_left_behind_when_its_first_process_is_killed_and_down_follows() -> None:
    before = leftovers.look()
    up = used(stage.up(STAGE, ALL_ON))
    process_table.kill(up.node.pid)
    stage.down(STAGE)
    assert leftovers.difference(before, leftovers.look()) == {}


@pytest.mark.usefixtures("no_stage")
def test_a_second_down_does_nothing() -> None:
    stage.up(STAGE, ALL_ON)
    stage.down(STAGE)
    stage.down(STAGE)
    assert node.find(STAGE) is None


@pytest.mark.usefixtures("no_stage")
def test_the_images_stay_and_the_containers_of_the_start_before_do_not() -> None:
    first = used(stage.up(STAGE, ALL_ON))
    images = set(first.images.names())
    stage.down(STAGE)
    second = stage.up(STAGE, ALL_ON)
    assert images <= set(second.images.names())
    assert second.images.containers() == []


@pytest.mark.usefixtures("no_stage")
def test_the_api_alone_leaves_nothing_and_does_not_touch_the_whole_stage() -> None:
    whole = stage.up(STAGE, ALL_ON)
    before = leftovers.look()
    another = Layout("second", 2, with_node=False)
    assert stage.up(another, Switches(audit=True)).kubectl.ready()
    assert leftovers.difference(before, leftovers.look()) != {}
    stage.down(another)
    assert leftovers.difference(before, leftovers.look()) == {}
    assert stage.missing_programs(whole) == []
