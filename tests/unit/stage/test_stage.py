"""A stage is whole or it is started afresh; a hung API server gets one more try, and nothing else does."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from e2e.cluster import golang, node, programs, stage
from e2e.cluster.kubectl import Kubectl
from e2e.cluster.layout import Layout, Switches
from e2e.cluster.node import Node
from e2e.cluster.stage import Parts, Stage
from e2e.errors import ApiserverHungError, StageError

if TYPE_CHECKING:
    from e2e.cluster.programs import Program
    from tests.unit.stage.conftest import FakeProc

PARTS = Parts(Path("/c/kubernetes"), Path("/c/etcd"), Path("/c/addons"), Path("/c/clients"))
ALL_ON = Switches(dns=True, network_policy=True, audit=True)
CONTROL_PLANE = {"etcd", "kube-apiserver", "kube-controller-manager"}
PROGRAMS = CONTROL_PLANE | {"containerd", "kube-scheduler", "kubelet", "kube-proxy", "coredns", "network-policy"}


class Starts:
    """In the place of starting: notes with which switches, and ends as it is told."""

    def __init__(self, *ends: Exception | None) -> None:
        self.ends = list(ends)
        self.switches: list[Switches] = []

    def __call__(self, layout: Layout, switches: Switches, parts: Parts) -> Stage:
        self.switches.append(switches)
        end = self.ends.pop(0)
        if end:
            raise end
        return Stage(layout, switches, parts, Node(layout, 41))


def broken(reason: Exception) -> Callable[..., Any]:
    def fail(*_: object, **__: object) -> None:
        raise reason

    return fail


@pytest.fixture(autouse=True)
def root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs these tests."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)


@pytest.fixture
def starting(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets what comes of each start; nothing runs yet."""
    monkeypatch.setattr(Parts, "build", lambda _: PARTS)
    monkeypatch.setattr(stage, "running", lambda *_: None)

    def ends(*outcomes: Exception | None) -> Starts:
        starts = Starts(*outcomes)
        monkeypatch.setattr(stage, "_start_afresh", starts)
        return starts

    return ends


def test_a_stage_that_comes_up_is_started_once(starting: Any, layout: Layout) -> None:
    starts = starting(None)
    assert stage.up(layout, ALL_ON).switches == ALL_ON
    assert starts.switches == [ALL_ON]


def test_a_hung_api_server_is_started_once_more_with_the_same_switches(
    starting: Any, layout: Layout, capsys: pytest.CaptureFixture[str]
) -> None:
    starts = starting(ApiserverHungError("waited 45 s for kube-apiserver to be ready"), None)
    assert stage.up(layout, ALL_ON).node.pid == 41
    assert starts.switches == [ALL_ON, ALL_ON]
    assert "waited 45 s for kube-apiserver to be ready\n    once more, from nothing" in capsys.readouterr().err


def test_an_api_server_that_hangs_twice_is_an_error(starting: Any, layout: Layout) -> None:
    starts = starting(ApiserverHungError("first"), ApiserverHungError("second"), None)
    with pytest.raises(StageError, match="second"):
        stage.up(layout, ALL_ON)
    assert len(starts.switches) == 2


@pytest.mark.parametrize("reason", [StageError("kubelet ended"), OSError("no space left")])
def test_what_would_fail_again_is_not_tried_again(reason: Exception, starting: Any, layout: Layout) -> None:
    starts = starting(reason, None)
    with pytest.raises(type(reason)):
        stage.up(layout, ALL_ON)
    assert len(starts.switches) == 1


@pytest.mark.parametrize(("had", "wanted", "restarts"), [(True, True, 0), (False, True, 1), (True, False, 1)])
def test_a_whole_stage_is_switched_as_it_runs_unless_the_api_server_must_be_called_with_other_flags(
    had: bool, wanted: bool, restarts: int, starting: Any, layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts = starting(None)
    there = Stage(layout, Switches(audit=had), PARTS, Node(layout, 7))
    switched: list[Switches] = []

    def switch(found: Stage, switches: Switches) -> Stage:
        switched.append(switches)
        return found

    monkeypatch.setattr(stage, "running", lambda *_: there)
    monkeypatch.setattr(stage, "_switched", switch)
    stage.up(layout, Switches(dns=True, audit=wanted))
    assert len(starts.switches) == restarts
    assert switched == ([] if restarts else [Switches(dns=True, audit=wanted)])


@pytest.fixture
def healthy(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A whole stage; a test changes one thing about it."""
    now: dict[str, Any] = {"node": Node(layout, 41), "programs": set(PROGRAMS), "ready": True}
    monkeypatch.setattr(node, "find", lambda _: now["node"])
    monkeypatch.setattr(Node, "processes", lambda _: dict.fromkeys(now["programs"], 9))
    monkeypatch.setattr(Kubectl, "ready", lambda _: now["ready"])
    write_record(layout, json.dumps(record()))
    return now


def record(**changes: Any) -> dict[str, Any]:
    return {"switches": asdict(ALL_ON), "parts": {name: str(path) for name, path in asdict(PARTS).items()}} | changes


def write_record(layout: Layout, content: str | bytes) -> None:
    layout.state.mkdir(parents=True, exist_ok=True)
    (layout.state / "stage.json").write_bytes(content if isinstance(content, bytes) else content.encode())


def test_a_whole_stage_is_found_with_its_switches(healthy: dict[str, Any], layout: Layout) -> None:
    assert stage.running(layout) == Stage(layout, ALL_ON, PARTS, Node(layout, 41))


BROKEN_RECORDS: dict[str, str | bytes] = {
    "empty": "",
    "garbage": b"\xff\xfe\x00garbage",
    "cut short": json.dumps(record())[:40],
    "null": "null",
    "a list": "[]",
    "a text": '"up"',
    "without switches": json.dumps({"parts": record()["parts"]}),
    "without parts": json.dumps({"switches": record()["switches"]}),
    "switches of another version": json.dumps(record(switches={"dns": True, "gpu": True})),
    "switches that are none": json.dumps(record(switches=[1])),
    "parts of another version": json.dumps(record(parts=record()["parts"] | {"registry": "/c/registry"})),
    "too few parts": json.dumps(record(parts={"etcd": "/c/etcd"})),
    "parts that are none": json.dumps(record(parts=7)),
    "parts that are no paths": json.dumps(record(parts=record()["parts"] | {"etcd": 7})),
}


@pytest.mark.parametrize("content", BROKEN_RECORDS.values(), ids=BROKEN_RECORDS.keys())
def test_a_stage_whose_record_is_not_that_of_a_whole_one_counts_as_half_up(
    content: str | bytes, healthy: dict[str, Any], layout: Layout
) -> None:
    write_record(layout, content)
    assert stage.running(layout) is None


def test_a_whole_stage_is_found_with_the_parts_that_it_was_started_with(
    healthy: dict[str, Any], layout: Layout
) -> None:
    write_record(layout, json.dumps(record(parts=record()["parts"] | {"etcd": "/c/another-etcd"})))
    assert stage.running(layout) == Stage(
        layout, ALL_ON, replace(PARTS, etcd=Path("/c/another-etcd")), Node(layout, 41)
    )


@pytest.mark.parametrize(("built", "restarts"), [(PARTS, 0), (replace(PARTS, etcd=Path("/c/another-etcd")), 1)])
def test_a_whole_stage_of_other_parts_than_are_built_now_is_started_afresh(
    built: Parts,
    restarts: int,
    healthy: dict[str, Any],
    layout: Layout,
    proc: FakeProc,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    starts, switched = Starts(None), list[Stage]()

    def switch(found: Stage, _: Switches) -> Stage:
        switched.append(found)
        return found

    proc.add(41, [str(layout.root / golang.INIT), "trial"])
    monkeypatch.setattr(Parts, "build", lambda _: built)
    monkeypatch.setattr(stage, "_start_afresh", starts)
    monkeypatch.setattr(stage, "_switched", switch)
    assert stage.up(layout, ALL_ON).parts == built
    assert (len(starts.switches), len(switched)) == (restarts, 1 - restarts)


@pytest.mark.parametrize("do", [lambda layout: stage.up(layout, ALL_ON), stage.down], ids=["up", "down"])
def test_whoever_is_not_root_is_told_so_before_anything_is_built_or_made(
    do: Callable[[Layout], object], layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(Parts, "build", broken(AssertionError("11 minutes for nothing")))
    monkeypatch.setattr(node, "stop", broken(AssertionError("who is not root cannot")))
    with pytest.raises(StageError, match=r"run this as root$"):
        do(layout)
    assert not layout.root.exists()


def test_a_stage_of_another_cache_folder_is_named_and_not_ended(elsewhere: Path, starting: Any, layout: Layout) -> None:
    starts = starting(None)
    with pytest.raises(StageError) as caught:
        stage.up(layout, ALL_ON)
    said = f"a stage of another cache folder is up ({elsewhere}): take it down first (`make stage-down`)"
    assert str(caught.value) == said
    assert starts.switches == []


@pytest.mark.parametrize("way", ["cache", "link", "sub/../cache"])
def test_what_is_left_of_a_stage_of_this_cache_folder_is_started_afresh_by_whatever_way_the_folder_is_named(
    way: str, starting: Any, layout: Layout, proc: FakeProc, tmp_path: Path
) -> None:
    layout.root.mkdir()
    (tmp_path / "sub").mkdir()
    (tmp_path / "link").symlink_to(layout.root)
    proc.add(41, [f"{tmp_path}/{way}/go-init/0/{golang.INIT}", "trial"], inside=1, namespace="pid:[4026532001]")
    starts = starting(None)
    stage.up(layout, ALL_ON)
    assert starts.switches == [ALL_ON]


def test_a_node_that_ends_while_it_is_looked_at_is_no_stage_of_another_cache_folder(
    starting: Any, layout: Layout, proc: FakeProc, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node, "find", lambda _: Node(layout, 41))
    starts = starting(None)
    stage.up(layout, ALL_ON)
    assert starts.switches == [ALL_ON]


def test_a_stage_without_a_record_counts_as_half_up(healthy: dict[str, Any], layout: Layout) -> None:
    (layout.state / "stage.json").unlink()
    assert stage.running(layout) is None


def test_a_record_without_a_node_is_of_a_stage_that_was_killed(healthy: dict[str, Any], layout: Layout) -> None:
    healthy["node"] = None
    assert stage.running(layout) is None


@pytest.mark.parametrize("program", sorted(PROGRAMS))
def test_a_stage_that_lost_a_program_is_not_whole(
    program: str, healthy: dict[str, Any], layout: Layout, capsys: pytest.CaptureFixture[str]
) -> None:
    healthy["programs"].remove(program)
    assert stage.running(layout) is None
    assert f"not whole ({program})" in capsys.readouterr().err


def test_a_stage_whose_api_server_does_not_answer_is_not_whole(
    healthy: dict[str, Any], layout: Layout, capsys: pytest.CaptureFixture[str]
) -> None:
    healthy["ready"] = False
    assert stage.running(layout) is None
    assert "the API server does not answer" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("with_node", "switches", "wanted"),
    [
        (True, ALL_ON, PROGRAMS),
        (True, Switches(), PROGRAMS - {"coredns", "network-policy"}),
        (True, Switches(dns=True), PROGRAMS - {"network-policy"}),
        (False, Switches(audit=True), CONTROL_PLANE),
    ],
)
def test_a_stage_wants_the_programs_that_its_switches_name(
    with_node: bool, switches: Switches, wanted: set[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    layout = Layout("trial", 7, with_node=with_node, root=tmp_path)
    monkeypatch.setattr(Node, "processes", lambda _: {})
    assert set(stage.missing_programs(Stage(layout, switches, PARTS, Node(layout, 41)))) == wanted


@pytest.fixture
def used(layout: Layout, tmp_path: Path) -> Layout:
    """A layout with all that a stage leaves in its folder, a link to elsewhere among it."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "precious").touch()
    for folder in (layout.logs, layout.pki, layout.state / "etcd" / "member", layout.images):
        folder.mkdir(parents=True)
    (layout.logs / "etcd.log").write_text("log")
    (layout.state / "stage.json").write_text("{}")
    (layout.state / "link").symlink_to(tmp_path / "elsewhere")
    return layout


def test_the_files_of_a_stage_go_and_its_logs_stay_when_asked(used: Layout, tmp_path: Path) -> None:
    stage._clear_state(used, keep_logs=True)
    assert [path.name for path in used.state.iterdir()] == ["logs"]
    assert (used.logs / "etcd.log").read_text() == "log"
    assert (tmp_path / "elsewhere" / "precious").exists()


def test_a_new_start_begins_with_an_empty_folder(used: Layout, tmp_path: Path) -> None:
    stage._clear_state(used, keep_logs=False)
    assert list(used.state.iterdir()) == []
    assert (tmp_path / "elsewhere" / "precious").exists()


def test_clearing_what_was_never_there_is_fine(layout: Layout) -> None:
    stage._clear_state(layout, keep_logs=True)
    assert not layout.state.exists()


def test_down_ends_the_node_before_its_files_go_and_keeps_logs_and_images(
    used: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    files_at_stop: list[bool] = []
    monkeypatch.setattr(node, "stop", lambda _: files_at_stop.append(used.pki.exists()))
    stage.down(used)
    assert files_at_stop == [True]
    assert not used.pki.exists()
    assert used.logs.exists()
    assert used.images.exists()


def test_a_stage_that_could_not_be_ended_keeps_its_files(used: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Layout) -> None:
        raise StageError("process 41 does not end")

    monkeypatch.setattr(node, "stop", fail)
    with pytest.raises(StageError):
        stage.down(used)
    assert used.kubeconfig.parent.exists()


@pytest.mark.parametrize(("exit_code", "kind"), [(None, ApiserverHungError), (1, StageError)])
def test_an_api_server_hung_only_if_it_still_runs(
    exit_code: int | None, kind: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(_: Node, program: Program) -> Any:
        def wait_until(*_: object) -> None:
            if program.name == "kube-apiserver":
                raise StageError("not ready")

        return SimpleNamespace(process=SimpleNamespace(poll=lambda: exit_code), wait_until=wait_until)

    layout = Layout("trial", 7, with_node=False, root=tmp_path)
    monkeypatch.setattr(programs, "start", start)
    with pytest.raises(StageError) as caught:
        stage._start_control_plane(Stage(layout, Switches(), PARTS, Node(layout, 41)))
    assert type(caught.value) is kind


@pytest.mark.parametrize(
    ("said", "ready"),
    [
        ("", False),
        ('{"status": {"conditions": []}}', False),
        ('{"status": {"conditions": [{"type": "Ready", "status": "False"}]}}', False),
        ('{"status": {"conditions": [{"type": "MemoryPressure", "status": "True"}]}}', False),
        ('{"status": {"conditions": [{"type": "Ready", "status": "True"}]}}', True),
    ],
)
def test_a_node_is_ready_when_its_condition_says_so(said: str, ready: bool) -> None:
    answer = subprocess.CompletedProcess([], 0, said, "")
    asked = cast("Kubectl", SimpleNamespace(try_run=lambda *_: answer))
    assert stage._node_ready(asked) is ready
