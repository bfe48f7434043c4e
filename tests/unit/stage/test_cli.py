"""What a person can act on is one line and exit code 1, never a traceback."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from e2e.cluster import cli, golang, node, stage
from e2e.cluster.layout import API_ONLY, STAGE, Layout, Switches
from e2e.cluster.node import Node
from e2e.errors import ApiserverHungError, StageError

Run = Callable[..., tuple[int, str, str]]
ROOT = Path(__file__).resolve().parents[3]
DOWN = stage.down


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the command line; returns exit code, output and complaints. Nothing that it starts is real."""

    def main(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["e2e.cluster", *arguments])
        with pytest.raises(SystemExit) as caught:
            cli.main()
        code = caught.value.code or 0
        assert isinstance(code, int)
        heard = capsys.readouterr()
        return code, heard.out, heard.err

    monkeypatch.setattr(stage.Parts, "build", broken(AssertionError("11 minutes, for which nobody asked")))
    monkeypatch.setattr(stage, "running", lambda *_: None)
    monkeypatch.setattr(node, "find", lambda _: None)
    for name in ("up", "down"):
        monkeypatch.setattr(stage, name, broken(AssertionError("not in this test")))
    return main


@pytest.fixture
def down(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """`down` is the real one, as root; no process is one of the stage."""
    monkeypatch.setattr(stage, "down", DOWN)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(node, "stop", broken(AssertionError("it came further than it may")))


def broken(reason: Exception) -> Callable[..., Any]:
    def fail(*_: object, **__: object) -> None:
        raise reason

    return fail


REASON = StageError("there is no `go` on PATH: install it")
BREAKS: list[tuple[list[str], object, str]] = [
    (["build"], stage.Parts, "build"),
    (["up"], stage, "up"),
    (["up", "--api-only"], stage, "up"),
    (["down"], stage, "down"),
    (["status"], node, "find"),
    (["kubeconfig"], stage, "running"),
    (["load-image", "it.tar"], stage, "running"),
    (["kubernetes-version"], golang, "kubernetes_version"),
    (["kubernetes-version", "v1.99.0"], golang, "change_kubernetes_version"),
]


@pytest.mark.parametrize(("arguments", "where", "what"), BREAKS, ids=[" ".join(one[0]) for one in BREAKS])
def test_an_error_of_the_stage_is_one_line_and_exit_code_1(
    arguments: list[str], where: object, what: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(where, what, broken(REASON))
    assert run(*arguments) == (1, "", f"error: {REASON}\n")


@pytest.mark.parametrize(("arguments", "where", "what"), BREAKS, ids=[" ".join(one[0]) for one in BREAKS])
def test_an_error_of_the_machine_is_one_line_and_exit_code_1(
    arguments: list[str], where: object, what: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    reason = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/cache/it")
    monkeypatch.setattr(where, what, broken(reason))
    assert run(*arguments) == (1, "", "error: [Errno 28] No space left on device: '/cache/it'\n")


def test_a_file_in_the_place_of_the_cache_folder_is_named(
    run: Run, layout: Layout, monkeypatch: pytest.MonkeyPatch, down: None
) -> None:
    layout.root.touch()
    monkeypatch.setattr(cli, "STAGE", layout)
    code, said, complaint = run("down")
    assert (code, said) == (1, "")
    assert complaint == f"error: [Errno 17] File exists: '{layout.root}'\n"


def test_an_api_server_that_hung_twice_is_an_error_like_any_other(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "up", broken(ApiserverHungError("not ready in 45 s")))
    assert run("up") == (1, "", "error: not ready in 45 s\n")


def test_a_mistake_of_the_stage_itself_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["e2e.cluster", "up"])
    monkeypatch.setattr(stage, "up", broken(ZeroDivisionError("a mistake")))
    with pytest.raises(ZeroDivisionError):
        cli.main()


def test_a_command_that_needs_the_stage_says_how_to_bring_it_up(run: Run) -> None:
    for arguments in (["kubeconfig"], ["load-image", "it.tar"]):
        assert run(*arguments) == (1, "", "error: stage stage is not up: run `python -m e2e.cluster up`\n")


@pytest.mark.parametrize("nonsense", [["nonsense"], ["up", "--nonsense"], ["load-image"]])
def test_what_is_no_command_is_exit_code_2_without_a_traceback(nonsense: list[str], run: Run) -> None:
    code, _, complaint = run(*nonsense)
    assert code == 2
    assert "Traceback" not in complaint


@pytest.fixture
def ups(monkeypatch: pytest.MonkeyPatch, run: Run) -> list[tuple[Layout, Switches]]:
    """What the stage is brought up with."""
    asked: list[tuple[Layout, Switches]] = []
    monkeypatch.setattr(stage, "up", lambda *what: asked.append(what))
    return asked


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ([], (STAGE, Switches(dns=True, network_policy=True))),
        (["--no-dns", "--audit"], (STAGE, Switches(network_policy=True, audit=True))),
        (["--no-network-policy"], (STAGE, Switches(dns=True))),
        (["--api-only"], (API_ONLY, Switches())),
        (["--api-only", "--audit"], (API_ONLY, Switches(audit=True))),
    ],
    ids=str,
)
def test_up_has_the_switches_that_it_is_given_and_says_where_the_kubeconfig_is(
    arguments: list[str], wanted: tuple[Layout, Switches], run: Run, ups: list[tuple[Layout, Switches]]
) -> None:
    code, _, said = run("up", *arguments)
    assert (code, ups) == (0, [wanted])
    assert f"export KUBECONFIG={wanted[0].kubeconfig}\n" in said


@pytest.mark.parametrize(("arguments", "layout"), [([], STAGE), (["--api-only"], API_ONLY)])
def test_down_takes_away_the_stage_that_is_named(
    arguments: list[str], layout: Layout, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[Layout] = []
    monkeypatch.setattr(stage, "down", taken.append)
    assert run("down", *arguments)[0] == 0
    assert taken == [layout]


def test_the_status_of_no_stage_builds_nothing_and_is_exit_code_1(run: Run) -> None:
    assert run("status") == (1, "stage stage is not up\n", "")


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch, run: Run) -> SimpleNamespace:
    """A stage that is up, with images that note what is loaded."""
    loads: list[tuple[str, tuple[object, ...]]] = []
    images = SimpleNamespace(
        load_archive_file=lambda *what: loads.append(("archive", what)),
        load_thin=lambda *what: loads.append(("thin", what)),
    )
    found = SimpleNamespace(switches=Switches(dns=True, audit=True), layout=STAGE, images=images, loads=loads)
    monkeypatch.setattr(node, "find", lambda layout: Node(layout, 41))
    monkeypatch.setattr(Node, "processes", lambda _: {"kubelet": 52, "etcd": 50})
    monkeypatch.setattr(stage, "running", lambda *_: found)
    return found


def test_the_status_of_a_whole_stage_has_its_programs_and_switches(run: Run, there: SimpleNamespace) -> None:
    code, said, _ = run("status")
    assert code == 0
    assert [line.split() for line in said.splitlines()] == [
        ["stage", "stage:", "up"],
        ["etcd", "pid", "50"],
        ["kubelet", "pid", "52"],
        ["switches:", "dns,", "audit"],
        ["kubeconfig:", str(STAGE.kubeconfig)],
    ]


def test_the_status_of_a_stage_that_is_not_whole_is_exit_code_1(
    run: Run, there: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "running", lambda *_: None)
    code, said, _ = run("status")
    assert code == 1
    assert said.startswith("stage stage: not whole: run `up`\n")


def test_the_kubeconfig_is_printed_alone_for_use_in_a_shell(run: Run, there: SimpleNamespace) -> None:
    assert run("kubeconfig") == (0, f"{STAGE.kubeconfig}\n", "")


def test_an_archive_is_loaded_as_it_is(run: Run, there: SimpleNamespace) -> None:
    assert run("load-image", "it.tar")[0] == 0
    assert there.loads == [("archive", (Path("it.tar"),))]


def test_a_folder_is_laid_over_an_image(run: Run, there: SimpleNamespace, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    code, _, _ = run("load-image", str(tmp_path), "--base", "b:1", "--name", "n:1", "--at", "/opt")
    ((kind, (name, base, layer)),) = there.loads
    assert (code, kind, name, base) == (0, "thin", "n:1", "b:1")
    assert b"opt/file" in layer


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["--base", "b:1"], "give it a --name"), (["--base", "b:1", "--name", "n:1"], "nosuch is not a folder")],
)
def test_a_load_that_makes_no_sense_is_explained(
    arguments: list[str], said: str, run: Run, there: SimpleNamespace
) -> None:
    code, _, complaint = run("load-image", "nosuch", *arguments)
    assert (code, there.loads) == (1, [])
    assert said in complaint
    assert complaint.count("\n") == 1


@pytest.fixture
def logs(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(cli, "STAGE", layout)
    layout.logs.mkdir(parents=True)
    (layout.logs / "kubelet.log").write_text("one\ntwo\n")
    (layout.logs / "etcd.log").touch()
    return layout.logs


def test_logs_are_listed_and_printed(run: Run, logs: Path) -> None:
    assert run("logs") == (0, "etcd\nkubelet\n", "")
    assert run("logs", "kubelet") == (0, "    one\n    two\n", "")


@pytest.mark.parametrize("name", ["nosuch", "../pki/admin", "kubelet.log"])
def test_a_log_that_there_is_not_is_answered_with_those_that_there_are(name: str, run: Run, logs: Path) -> None:
    assert run("logs", name) == (1, "", f"error: no log of {name!r}; there are: etcd, kubelet\n")


def test_the_kubernetes_version_is_printed(run: Run) -> None:
    assert run("kubernetes-version") == (0, f"{golang.kubernetes_version()}\n", "")


def test_the_module_runs_as_people_call_it() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "e2e.cluster", "kubernetes-version", "newest"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith("error: 'newest' is not a Kubernetes version")
    assert ran.stderr.count("\n") == 1
