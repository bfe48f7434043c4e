"""Keep another operator off a test's namespace: one that looks after all namespaces may stand on a stage that is up.

It may read there. Without a write it brings nothing about, and the pool's NetworkPolicy keeps it from the doors.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from e2e.cluster.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from e2e.cluster.kubectl import Kubectl

ACCOUNT = "kvfence-operator"
SECONDS = 30.0


@contextmanager
def kept_off(kubectl: Kubectl, namespace: str, watched: Sequence[str]) -> Iterator[None]:
    """Have the API server refuse whatever an operator writes into `watched`, but for the one in `namespace`."""
    policy = f"{namespace}-alone"
    kubectl.apply([_policy(policy, namespace), _binding(policy, watched)])
    try:
        wait_for("the policy to hold", lambda: _holds(kubectl, watched[0]), SECONDS, every=0.3)
        yield
    finally:
        for kind in ("validatingadmissionpolicybinding", "validatingadmissionpolicy"):
            kubectl.try_run("delete", kind, policy, "--ignore-not-found")


def _policy(name: str, namespace: str) -> dict[str, Any]:
    own = f"system:serviceaccount:{namespace}:{ACCOUNT}"
    others = f"request.userInfo.username.endsWith(':{ACCOUNT}') && request.userInfo.username != '{own}'"
    everything = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [everything]},
            "validations": [{"expression": f"!({others})", "message": "a test has this namespace for itself"}],
        },
    }


def _binding(policy: str, watched: Sequence[str]) -> dict[str, Any]:
    chosen = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": list(watched)}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": policy},
        "spec": {
            "policyName": policy,
            "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": {"matchExpressions": [chosen]}},
        },
    }


def _holds(kubectl: Kubectl, namespace: str) -> bool:
    """Whether another operator's write is refused by now, tried with one that would change nothing."""
    probe = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "probe", "namespace": namespace}}
    another = ("--as", f"system:serviceaccount:default:{ACCOUNT}", "--as-group", "system:masters")
    ran = kubectl.try_run("create", "--dry-run=server", *another, "--filename", "-", given=json.dumps(probe))
    return "a test has this namespace for itself" in ran.stderr
