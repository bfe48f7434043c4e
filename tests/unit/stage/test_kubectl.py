"""What `kubectl` is called with, and what is heard when it fails or hangs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from e2e.cluster.kubectl import Kubectl
from e2e.errors import StageError

Make = Callable[[str], Kubectl]


@pytest.fixture
def kubectl(tmp_path: Path) -> Make:
    """Makes a `kubectl` out of a shell script; what it was called with stands in `asked`, what it read in `given`."""

    def make(script: str) -> Kubectl:
        program = tmp_path / "kubectl"
        program.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\n{script}\n')
        program.chmod(0o755)
        return Kubectl(program, tmp_path / "admin.kubeconfig")

    return make


def test_it_is_called_with_the_kubeconfig_and_its_output_is_returned(kubectl: Make, tmp_path: Path) -> None:
    assert kubectl("echo warning >&2; echo pods").run("get", "pods") == "pods\n"
    assert (tmp_path / "asked").read_text() == f"--kubeconfig {tmp_path}/admin.kubeconfig get pods\n"


def test_a_failure_has_the_command_and_what_it_said(kubectl: Make) -> None:
    failing = kubectl('echo out; echo "  pods is forbidden  " >&2; exit 1')
    with pytest.raises(StageError, match=r"^`kubectl get pods` failed: pods is forbidden$"):
        failing.run("get", "pods")
    assert failing.try_run("get", "pods").returncode == 1


def test_a_call_that_hangs_ends_with_124_and_says_so(kubectl: Make) -> None:
    hanging = kubectl("exec sleep 60")
    began = time.monotonic()
    ran = hanging.try_run("get", "pods", seconds=0.1)
    assert time.monotonic() - began < 10
    assert (ran.returncode, ran.stdout, ran.stderr) == (124, "", "no end in 0 s")
    with pytest.raises(StageError, match=r"`kubectl get pods` failed: no end in 0 s"):
        hanging.run("get", "pods", seconds=0.1)


def test_a_very_long_complaint_is_cut_to_its_end(kubectl: Make) -> None:
    with pytest.raises(StageError) as caught:
        kubectl('head -c 100000 /dev/zero | tr "\\0" x >&2; echo the point >&2; exit 1').run("apply")
    assert str(caught.value).endswith("the point")
    assert len(str(caught.value)) < 2100


def test_it_asks_no_proxy_for_the_api_server(kubectl: Make, proxies: None) -> None:
    heard = kubectl("env").run("get", "pods").splitlines()
    assert [line for line in heard if line.partition("=")[0].lower().endswith("_proxy")] == []
    assert "UNRELATED=stays" in heard


def test_objects_are_read_as_json(kubectl: Make, tmp_path: Path) -> None:
    assert kubectl("""echo '{"kind": "List"}'""").get("pods", "--namespace", "x") == {"kind": "List"}
    assert (tmp_path / "asked").read_text().endswith("get pods --namespace x --output json\n")


def test_objects_are_applied_from_standard_input_in_one_call(kubectl: Make, tmp_path: Path) -> None:
    objects: list[dict[str, Any]] = [{"kind": "Pod", "metadata": {"name": "it"}}, {"kind": "Service"}]
    kubectl(f"cat > {tmp_path}/given").apply(objects)
    assert json.loads((tmp_path / "given").read_text()) == {"apiVersion": "v1", "kind": "List", "items": objects}
    assert "apply --server-side --force-conflicts --filename -" in (tmp_path / "asked").read_text()


def test_nothing_is_waited_for_on_standard_input(kubectl: Make) -> None:
    assert kubectl("cat; echo end").run("get", "pods", seconds=10) == "end\n"


@pytest.mark.parametrize(("code", "ready"), [(0, True), (1, False)])
def test_the_api_server_is_ready_when_it_says_so(code: int, ready: bool, kubectl: Make, tmp_path: Path) -> None:
    assert kubectl(f"exit {code}").ready() is ready
    assert "get --raw /readyz" in (tmp_path / "asked").read_text()
