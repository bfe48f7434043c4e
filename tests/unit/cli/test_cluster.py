"""Pods as a source: their servers' answers, their logs and their objects, through the user's own kubectl."""

from __future__ import annotations

import asyncio
import io
import json
import os
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from kvfence.api.v1alpha1.pool import RoleType
from kvfence.cli.cluster import MOST, Cluster
from kvfence.cli.kubectl import ERRORS, Kubectl, end_of, last_words
from kvfence.domain.diagnosis.seen import EngineSeen, Seen, Unreadable
from tests.unit.cli.fake_kubectl import FakeKubectl

FIELD = Path(__file__).resolve().parents[2] / "field"
INFO = (FIELD / "server_info" / "001-r1-tp16-pd-prefill-nixl.json").read_bytes()
LOG = (FIELD / "logs" / "001-llama31-8b-laptop-pool-lt-ctx.log").read_bytes()
MODELS = (FIELD / "server_info" / "006-openai-models.json").read_bytes()
LONG = 20
"""Seconds; a run of the fake takes some 20 ms."""


def pod(name: str = "prefill-0", phase: str = "Running", **container: Any) -> dict[str, Any]:
    fields = {"name": "engine", "command": ["sglang", "serve"], "args": ["--port", "30000"], **container}
    return {
        "metadata": {"name": name, "namespace": "inference"},
        "spec": {"containers": [fields]},
        "status": {"phase": phase},
    }


def seen(target: str, namespace: str | None = "inference", context: str | None = None) -> tuple[Seen, ...]:
    async def run() -> tuple[Seen, ...]:
        cluster = Cluster(Kubectl(namespace, context))
        work: Coroutine[Any, Any, tuple[Seen, ...]]
        work = cluster.selected(target) if "=" in target else cluster.named(target)
        return await asyncio.wait_for(work, LONG)

    return asyncio.run(run())


def test_a_running_server_is_asked_through_the_api_server(kubectl: FakeKubectl) -> None:
    kubectl.says("get pod prefill-0", pod(args=["--port", "30001", "--api-key", "hunter2", "--trust-remote-code"]))
    kubectl.says("/api/v1/namespaces/inference/pods/prefill-0:30001/proxy/server_info", INFO)
    (engine,) = seen("prefill-0")
    assert isinstance(engine, EngineSeen)
    assert (engine.source, engine.kv_pool_tokens, engine.role) == ("pod/prefill-0", 326_223, RoleType.PREFILL)
    assert engine.settings["trust_remote_code"] is True
    assert "api_key" in engine.keys_shown
    assert "hunter2" not in repr(engine) + str(engine.settings)


def test_every_call_of_kubectl_only_reads(kubectl: FakeKubectl) -> None:
    kubectl.says("get pods", {"items": [pod()]})
    kubectl.says("logs", LOG)
    seen("app=sglang", "inference", "--my context")
    assert len(kubectl.called) > 3
    for call in kubectl.called:
        assert call[:2] == ["--context=--my context", "--namespace=inference"]
        assert call[2] in {"get", "logs"}
    assert kubectl.called[0][2:] == ["get", "pods", "--selector=app=sglang", "--output=json", "--chunk-size=100"]


def test_the_log_speaks_when_the_server_does_not(kubectl: FakeKubectl) -> None:
    kubectl.says("get pod ", pod())
    kubectl.says("--raw", status=1, error="error dialing backend: connection refused\n")
    kubectl.says("logs prefill-0 --container=engine", LOG)
    (engine,) = seen("prefill-0")
    assert isinstance(engine, EngineSeen)
    assert (engine.source, engine.kv_pool_tokens) == ("pod/prefill-0", 38_141)


def test_the_log_fills_in_what_the_server_does_not_tell(kubectl: FakeKubectl) -> None:
    kubectl.says("get pod ", pod())
    kubectl.says("/proxy/v1/models", MODELS)
    kubectl.says("logs prefill-0", LOG)
    (engine,) = seen("prefill-0")
    assert isinstance(engine, EngineSeen)
    assert (engine.kv_pool_tokens, engine.context_length) == (38_141, 262_144)


def test_a_server_that_tells_all_is_not_asked_for_its_log(kubectl: FakeKubectl) -> None:
    whole = json.dumps({**json.loads(INFO), "version": "0.5.23", "context_length": 163_840}).encode()
    kubectl.says("get pod ", pod())
    kubectl.says("/proxy/server_info", whole)
    seen("prefill-0")
    assert [call for call in kubectl.called if "logs" in call] == []


def test_pods_keep_the_order_of_the_list(kubectl: FakeKubectl) -> None:
    names = [f"decode-{number}" for number in range(6)]
    kubectl.says("get pods", {"items": [pod(name) for name in names]})
    kubectl.says("--raw", status=1, error="refused")
    kubectl.says("logs", LOG)
    assert [one.source for one in seen("app=sglang")] == [f"pod/{name}" for name in names]


def test_a_pod_that_waits_says_why_and_nobody_looks_for_its_log(kubectl: FakeKubectl) -> None:
    waiting = pod(phase="Pending")
    waiting["status"]["containerStatuses"] = [{"state": {"waiting": {"reason": "ImagePullBackOff"}}}]
    kubectl.says("get pod ", waiting)
    (one,) = seen("prefill-0")
    assert isinstance(one, Unreadable)
    assert "Pending (ImagePullBackOff)" in one.why
    assert "kubectl describe pod prefill-0" in one.why
    assert len(kubectl.called) == 1


@pytest.mark.parametrize(
    ("out", "word"),
    [
        ({"items": []}, "No pod with these labels"),
        ({"items": None}, "No pod with these labels"),
        ({"items": [{"metadata": {"name": "../x", "namespace": "n"}}]}, "No pod with these labels"),
        ("[]", "something else"),
        ("not json", "something else"),
        (b"\xff" * 100, "something else"),
        ("[" * 100_000, "something else"),
    ],
)
def test_whatever_kubectl_prints_is_a_list_or_is_words(
    kubectl: FakeKubectl, out: str | bytes | dict[str, Any], word: str
) -> None:
    kubectl.says("get pods", out)
    (one,) = seen("app=sglang")
    assert isinstance(one, Unreadable)
    assert word in one.why


def test_what_kubectl_complains_of_is_passed_on_without_control_characters(kubectl: FakeKubectl) -> None:
    kubectl.says(
        "get pod ", status=1, error='W1130 noise\nError from server (Forbidden): pods "x" \x1b[2Jis forbidden\n\n'
    )
    (one,) = seen("x")
    assert one == Unreadable("pod/x", 'kubectl: Error from server (Forbidden): pods "x"  [2Jis forbidden.')


def test_a_kubectl_that_says_nothing_is_said(kubectl: FakeKubectl) -> None:
    kubectl.says("get pod ", status=3)
    (one,) = seen("x")
    assert isinstance(one, Unreadable)
    assert "status 3" in one.why
    assert last_words(b"", 3) == one.why


@pytest.mark.parametrize(
    "error", ["error: You must be logged in to the server (Unauthorized)", "Error from server (Forbidden): no"]
)
def test_a_server_that_wants_a_key_says_how_to_give_it_one(kubectl: FakeKubectl, error: str) -> None:
    kubectl.says("get pod ", pod())
    kubectl.says("--raw", status=1, error=error)
    kubectl.says("logs", b"nothing of an engine\n")
    found = seen("prefill-0")
    assert isinstance(found[0], Unreadable)
    assert "kubectl port-forward --namespace inference pod/prefill-0 30000" in found[0].why


def test_a_missing_right_is_not_taken_for_the_servers_no(kubectl: FakeKubectl) -> None:
    refusal = 'Error from server (Forbidden): pods "a" is forbidden: User "x" cannot get resource "pods/proxy"'
    kubectl.says("get pod ", pod())
    kubectl.says("--raw", status=1, error=refusal)
    kubectl.says("logs", b"nothing of an engine\n")
    assert not any("wants an API key" in one.why for one in seen("prefill-0") if isinstance(one, Unreadable))


def test_more_pods_than_are_looked_at_are_said(kubectl: FakeKubectl) -> None:
    kubectl.says("get pods", {"items": [pod(f"p-{number}", phase="Pending") for number in range(MOST + 3)]})
    found = seen("app=sglang")
    assert len(found) == MOST + 1
    assert isinstance(found[-1], Unreadable)
    assert "3 more pods" in found[-1].why


def test_without_kubectl_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (one,) = seen("app=sglang")
    assert isinstance(one, Unreadable)
    assert "install it" in one.why


def test_a_kubectl_that_hangs_is_ended(kubectl: FakeKubectl, tmp_path: Path) -> None:
    (tmp_path / "bin" / "kubectl").write_text(f"#!/bin/sh\necho $$ >{tmp_path}/pid\nexec sleep 60\n")
    said = asyncio.run(Kubectl().say("get", "pods", seconds=0.5))
    assert "did not answer within" in said.error
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_a_log_of_which_half_is_read_does_not_hold_it_up(kubectl: FakeKubectl) -> None:
    kubectl.says("logs", b"x\n" * 500_000)
    found = asyncio.run(
        asyncio.wait_for(Kubectl().stream(lambda out: (Unreadable("a", out.read(1).decode()),), "logs"), 10)
    )
    assert found == (Unreadable("a", "x"),)


def test_a_server_beside_another_that_tells_nothing_is_not_swallowed_and_a_sidecar_is(kubectl: FakeKubectl) -> None:
    fields = pod()
    fields["spec"]["containers"] += [{"name": "decode", "image": "lmsysorg/sglang:v0.5.23"}, {"name": "proxy"}]
    kubectl.says("get pod ", fields)
    kubectl.says("--raw", status=1, error="refused")
    kubectl.says("--container=engine", LOG)
    kubectl.says("logs", b"nothing of an engine\n")
    found = seen("prefill-0")
    assert {(one.source, isinstance(one, Unreadable)) for one in found} == {
        ("pod/prefill-0 (engine)", False),
        ("pod/prefill-0 (decode)", True),
    }


def test_what_is_no_server_is_not_missed_beside_one_that_tells(kubectl: FakeKubectl) -> None:
    fields = pod(command=["/start"])
    fields["spec"]["containers"][0]["name"] = "main"
    fields["spec"]["containers"].append({"name": "proxy"})
    kubectl.says("get pod ", fields)
    kubectl.says("--raw", status=1, error="refused")
    kubectl.says("--container=main", LOG)
    kubectl.says("logs", b"nothing of an engine\n")
    assert [one.source for one in seen("prefill-0")] == ["pod/prefill-0 (main)"]


def everything(out: BinaryIO) -> tuple[Seen, ...]:
    read = bytearray()
    while piece := out.read(1 << 16):
        read += piece
    return (Unreadable("a", f"{len(read)}"),)


def test_a_log_that_stops_coming_is_given_up_and_its_kubectl_is_reaped(kubectl: FakeKubectl, tmp_path: Path) -> None:
    script = f"#!/bin/sh\necho $$ >{tmp_path}/pid\necho word\nexec sleep 60\n"
    (tmp_path / "bin" / "kubectl").write_text(script)
    began = time.monotonic()
    found = asyncio.run(asyncio.wait_for(Kubectl().stream(everything, "logs", idle=0.4), LONG))
    assert "sent nothing" in str(found)
    assert time.monotonic() - began < 10
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_a_log_that_comes_slowly_is_waited_for(kubectl: FakeKubectl, tmp_path: Path) -> None:
    script = "#!/bin/sh\nfor i in 1 2 3 4 5 6; do echo word; sleep 0.3; done\n"
    (tmp_path / "bin" / "kubectl").write_text(script)
    found = asyncio.run(asyncio.wait_for(Kubectl().stream(everything, "logs", idle=1.2), LONG))
    assert found == (Unreadable("a", "30"),)


def test_of_endless_complaints_the_last_is_kept(kubectl: FakeKubectl) -> None:
    read = end_of(io.BytesIO(b"x\n" * ERRORS + b"the last"), ERRORS)
    assert len(read) == ERRORS
    assert read.endswith(b"the last")
    kubectl.says("logs", status=1, error="noise\n" * 100_000 + "no such pod\n")
    assert asyncio.run(Kubectl().stream(everything, "logs")) == "kubectl: no such pod."
