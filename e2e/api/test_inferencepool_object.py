"""An InferencePool as the real API server stores, explains and shows it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from e2e.api.inference_pools import changed, pool
from e2e.chart.crd import CRD
from e2e.cluster.stage import Stage
from kvfence.api.v1alpha1.pool import InferencePool

KIND = "inferencepools.kvfence.io"

STATUS = {
    "observedGeneration": 1,
    "conditions": [
        {
            "type": name,
            "status": "True",
            "reason": "ContextCapped",
            "message": "1,003 of the 4,096 tokens asked for are on offer.",
            "lastTransitionTime": "2026-11-30T12:00:00Z",
            "observedGeneration": 1,
        }
        for name in ("Ready", "TrafficAdmitted")
    ],
    "contextLength": {
        "requestedTokens": 4096,
        "advertisedTokens": 1003,
        "limitingRole": "prefill",
        "limitingPod": "pool-prefill-0",
        "kvPoolTokens": 1024,
        "measurementTime": "2026-11-30T11:59:00Z",
    },
    "roles": [{"name": "prefill", "replicas": 1, "readyReplicas": 1, "admittedReplicas": 1, "kvPoolTokens": 1024}],
    "currentRevision": "abc123",
    "updateRevision": "abc123",
}


@pytest.fixture
def namespace(pools_api: Stage, api_namespace: str) -> str:
    """A namespace in which pools can be made."""
    return api_namespace


def created(stage: Stage, namespace: str, given: dict[str, Any]) -> dict[str, Any]:
    stage.kubectl.run("create", "--namespace", namespace, "--filename", "-", given=json.dumps(given))
    return stage.kubectl.get(KIND, given["metadata"]["name"], "--namespace", namespace)


def report(stage: Stage, namespace: str, status: dict[str, Any], *subresource: str) -> dict[str, Any]:
    patch = (
        "patch",
        KIND,
        "pool",
        "--namespace",
        namespace,
        "--type",
        "merge",
        "--patch",
        json.dumps({"status": status}),
    )
    stage.kubectl.run(*patch, *subresource)
    return stage.kubectl.get(KIND, "pool", "--namespace", namespace)


def test_what_was_left_out_is_stored_with_its_default(pools_api: Stage, namespace: str) -> None:
    given = pool()
    stored = created(pools_api, namespace, given)["spec"]
    role = {"replicas": 1, "parallelism": {"tensor": 1, "pipeline": 1, "data": 1}, "startupTimeoutSeconds": 3600}
    assert stored == {
        "model": given["spec"]["model"],
        "engine": {"type": "SGLang", **given["spec"]["engine"]},
        "roles": [{**one, **role} for one in given["spec"]["roles"]],
        "router": {"replicas": 1},
        "disaggregation": {"transferBackend": "Mooncake", "bootstrapPort": 8998, "transferTimeoutSeconds": 300},
        "contextLength": {"requestedTokens": 4096, "reserveTokens": 0, "headroomPercent": 2, "policy": "CapToFit"},
        "integrity": dict.fromkeys(("kvChecksum", "pageTagging", "pageScrubbing", "coverage"), "Enforce"),
        "advisories": {"action": "Block"},
        "strategy": {"type": "Recreate"},
    }


def test_the_operator_reads_the_same_from_what_was_given_and_from_what_is_stored(
    pools_api: Stage, namespace: str
) -> None:
    template = {
        "metadata": {"labels": {"team": "a"}},
        "spec": {
            "nodeSelector": {"gpu": "h200"},
            "tolerations": [{"key": "gpu", "operator": "Exists"}],
            "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []}},
            "volumes": [{"name": "models", "persistentVolumeClaim": {"claimName": "models"}}],
            "containers": [
                {
                    "name": "engine",
                    "resources": {"limits": {"nvidia.com/gpu": 8, "memory": "100Gi"}},
                    "volumeMounts": [{"name": "models", "mountPath": "/models", "readOnly": True}],
                    "securityContext": {"capabilities": {"add": ["IPC_LOCK"]}},
                }
            ],
        },
    }
    given = changed(pool(), "spec.roles.1.template", template)
    stored = created(pools_api, namespace, given)
    assert stored["spec"]["roles"][1]["template"] == template
    assert InferencePool.model_validate(stored).spec == InferencePool.model_validate(given).spec


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec.quarantine", {"action": "CutPool"}),
        ("spec.contextLength.requestTokens", 1),
        ("spec.roles.0.template.spec.hostNetwork", True),
        ("spec.roles.0.template.spec.initContainers", []),
        ("spec.roles.0.template.spec.containers", [{"name": "engine", "command": ["sh"]}]),
    ],
)
def test_a_field_that_nothing_implements_is_refused_by_its_name(
    pools_api: Stage, namespace: str, path: str, value: object
) -> None:
    refused = pools_api.kubectl.try_run(
        *("create", "--dry-run=server", "--namespace", namespace, "--filename", "-"),
        given=json.dumps(changed(pool(), path, value)),
    )
    assert refused.returncode != 0
    assert "unknown field" in refused.stderr
    assert path.rsplit(".", 1)[1] in refused.stderr


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("", ["one user's data cannot reach another's answer", "measured, capped to what fits"]),
        (
            ".spec.contextLength.policy",
            ["ENUM:", "CapToFit", "RequireFit admits nothing unless all of requestedTokens fits"],
        ),
        (".spec.contextLength", ["requestedTokens <integer> -required- What to offer if it fits"]),
        (".spec.roles.type", ["Unified, which does both, is not supported yet"]),
        (".status.contextLength", ["advertisedTokens", "limitingPod"]),
    ],
)
def test_kubectl_explains_a_field(pools_api: Stage, field: str, words: list[str]) -> None:
    text = " ".join(pools_api.kubectl.run("explain", f"{KIND}{field}").split())
    assert [word for word in words if word not in text] == [], text


def test_kubectl_get_shows_what_is_asked_for_and_what_is_on_offer(pools_api: Stage, namespace: str) -> None:
    created(pools_api, namespace, pool())
    report(pools_api, namespace, STATUS, "--subresource=status")
    head, line = (row.split() for row in pools_api.kubectl.run("get", "kvpool", "-n", namespace).splitlines())
    assert head == ["NAME", "MODEL", "READY", "ADMITTED", "CONTEXT", "REQUESTED", "AGE"]
    assert line[:-1] == ["pool", "tiny", "True", "True", "1003", "4096"]
    head, line = (
        r.split() for r in pools_api.kubectl.run("get", "inference", "-n", namespace, "-o", "wide").splitlines()
    )
    assert head[6:-1] == ["LIMITED-BY", "KV-POOL", "REASON", "REVISION"]
    assert line[6:-1] == ["prefill", "1024", "ContextCapped", "abc123"]


def test_status_is_written_apart_from_the_rest(pools_api: Stage, namespace: str) -> None:
    stored = created(pools_api, namespace, {**pool(), "status": STATUS})
    assert "status" not in stored
    assert "status" not in report(pools_api, namespace, STATUS)
    reported = report(pools_api, namespace, STATUS, "--subresource=status")
    assert reported["status"] == STATUS
    assert reported["metadata"]["generation"] == 1
    assert reported["spec"] == stored["spec"]
    status = InferencePool.model_validate(reported).status
    assert status is not None
    assert status.model_dump(mode="json", exclude_unset=True) == STATUS


def test_two_appliers_of_different_roles_do_not_undo_each_other(pools_api: Stage, namespace: str) -> None:
    apply = ("apply", "--server-side", "--namespace", namespace, "--filename", "-")
    pools_api.kubectl.run(*apply, "--field-manager=person", given=json.dumps(pool()))
    scaled: dict[str, Any] = {key: value for key, value in pool().items() if key != "spec"}
    scaled["spec"] = {"roles": [{"name": "decode", "type": "Decode", "replicas": 3}]}
    pools_api.kubectl.run(*apply, "--field-manager=scaler", given=json.dumps(scaled))
    pools_api.kubectl.run(*apply, "--field-manager=person", given=json.dumps(pool()))
    roles = pools_api.kubectl.get(KIND, "pool", "--namespace", namespace)["spec"]["roles"]
    assert [(one["name"], one["replicas"]) for one in roles] == [("prefill", 1), ("decode", 3)]


def test_the_crd_was_applied_client_side_and_can_be_server_side(pools_api: Stage) -> None:
    stored = pools_api.kubectl.get("crd", KIND)
    kept = stored["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"]
    print(f"\nthe copy that client-side apply keeps: {len(kept):,} of 262,144 bytes")
    assert len(kept) < 262_144 / 2
    again = pools_api.kubectl.try_run("apply", "--server-side", "--force-conflicts", "--filename", str(CRD))
    assert (again.returncode, again.stderr) == (0, "")
    assert pools_api.kubectl.get("crd", KIND)["spec"] == stored["spec"]
