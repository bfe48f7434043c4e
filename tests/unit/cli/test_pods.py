"""What a pod's object tells: how the engine in it was started and where it listens, and no key."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvfence.cli import pods
from kvfence.cli.pods import Container


def pod(*containers: dict[str, Any], phase: str = "Running", **status: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "prefill-0", "namespace": "inference"},
        "spec": {"containers": list(containers)},
        "status": {"phase": phase, **status},
    }


def engine(**fields: Any) -> dict[str, Any]:
    return {"name": "engine", "image": "registry.example/engine:1", **fields}


def only(**fields: Any) -> Container:
    seen = pods.read(pod(engine(**fields)))
    assert seen is not None
    (container,) = seen.containers
    return container


def test_flags_become_settings_by_their_names_with_their_types() -> None:
    command = ["python3", "-m", "sglang.launch_server"]
    args = ["--model-path", "/models/tiny", "--context-length=4096", "--mem-fraction-static", "0.8", "--enable-metrics"]
    assert only(command=command, args=[*args, "--chunked-prefill-size", "-1"]).settings == {
        "model_path": "/models/tiny",
        "context_length": 4096,
        "mem_fraction_static": 0.8,
        "enable_metrics": True,
        "chunked_prefill_size": -1,
    }


def test_flags_in_a_line_for_a_shell_are_found() -> None:
    line = "set -e\nexec python3 -m sglang.launch_server --port 30001 \\\n  --tp 2 --allow-auto-truncate && sleep 1"
    container = only(command=["/bin/sh", "-c"], args=[line])
    assert container.settings == {"port": 30001, "tp": 2, "allow_auto_truncate": True}
    assert container.ports == (30001,)


def test_a_line_with_a_stray_quotation_mark_is_still_read() -> None:
    assert only(command=["sh", "-c", "sglang serve --port 30002 # don't"]).ports == (30002,)


@pytest.mark.parametrize("value", ["$(CONTEXT)", "$CONTEXT", "${CONTEXT:-4096}"])
def test_what_a_shell_or_kubernetes_would_put_in_is_not_told(value: str) -> None:
    assert "context_length" not in only(args=["--context-length", value]).settings


def test_keys_are_named_and_not_kept() -> None:
    container = only(
        args=["--api-key", "hunter2", "--admin-api-key=$(ADMIN)", "--tokenizer-path", "/models/t"],
        env=[{"name": "HF_TOKEN", "value": "hunter2"}, {"name": "SGLANG_X", "value": "1"}],
    )
    assert set(container.keys_shown) == {"api_key", "HF_TOKEN"}
    assert container.settings == {"tokenizer_path": "/models/t"}
    assert container.environment == {"SGLANG_X": "1"}
    assert "hunter2" not in repr(container)


def test_variables_from_elsewhere_are_said_not_to_be_known() -> None:
    reference = {"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}
    assert only(env=[reference]).environment == {}
    assert "not known" in only(env=[reference]).notes[0]
    assert "not known" in only(envFrom=[{"secretRef": {"name": "s"}}]).notes[0]
    assert only(env=[{"name": "A", "value": "1"}]).notes == ()


@pytest.mark.parametrize(
    ("fields", "ports"),
    [
        ({"args": ["sglang", "--port", "31000"], "ports": [{"containerPort": 1}]}, (31000,)),
        ({"command": ["sglang", "serve"], "ports": [{"containerPort": 9000}]}, (30000, 9000)),
        ({"image": "registry.example/vllm-openai:v0.11"}, (8000,)),
        ({"ports": [{"containerPort": 80}, {"containerPort": 53, "protocol": "UDP"}]}, (80,)),
        ({"ports": [{"containerPort": port} for port in range(1, 10)]}, (1, 2, 3, 4)),
        ({"ports": [{"containerPort": "80"}, {"containerPort": 99999}]}, ()),
        ({"args": ["--port", "99999"]}, ()),
    ],
)
def test_ports_are_told_usual_or_declared(fields: dict[str, Any], ports: tuple[int, ...]) -> None:
    assert only(**fields).ports == ports


def test_containers_that_are_no_server_are_left_out_when_one_is() -> None:
    sidecar = {"name": "istio-proxy", "image": "registry.example/proxy"}
    seen = pods.read(pod(sidecar, engine(command=["sglang", "serve"])))
    assert seen is not None
    assert [one.name for one in seen.containers] == ["engine"]
    seen = pods.read(pod(sidecar, {"name": "b"}))
    assert seen is not None
    assert [one.name for one in seen.containers] == ["istio-proxy", "b"]


def test_why_a_pod_waits_is_told_in_the_words_of_kubernetes() -> None:
    waiting = [{"state": {"waiting": {"reason": "ImagePullBackOff"}}}]
    seen = pods.read(pod(engine(), phase="Pending", containerStatuses=waiting))
    assert seen is not None
    assert seen.waiting == "ImagePullBackOff"
    seen = pods.read(pod(engine(), phase="Pending", conditions=[{"status": "False", "reason": "Unschedulable"}]))
    assert seen is not None
    assert seen.waiting == "Unschedulable"


@pytest.mark.parametrize("name", ["../../secrets", "a/b", "A", "", "a?b", None, 3])
def test_a_name_that_would_lead_elsewhere_in_the_api_is_none(name: object) -> None:
    broken = pod(engine())
    broken["metadata"]["name"] = name
    assert pods.read(broken) is None
    broken = pod(engine())
    broken["metadata"]["namespace"] = name
    assert pods.read(broken) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FIELDS = ["name", "image", "command", "args", "env", "envFrom", "ports"]


@given(st.lists(st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=7), max_size=3), JSON)
def test_any_object_is_a_pod_or_is_none(containers: list[dict[str, Any]], anything: Any) -> None:
    pods.read(anything)
    seen = pods.read(pod(*containers))
    assert seen is not None
    assert len(seen.containers) <= 3
