"""What the API server's authoriser says of a ServiceAccount: single questions, and the whole list."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from e2e.cluster.kubectl import Kubectl


@dataclass(frozen=True)
class Act:
    """Something that an account may or may not do."""

    verb: str
    resource: str
    """With its subresource: `pods/exec`."""
    group: str = ""
    namespace: str = ""
    """Empty: in all of them, or of an object that has none."""
    name: str = ""

    @property
    def attributes(self) -> dict[str, str]:
        """As a SubjectAccessReview writes it."""
        resource, _, subresource = self.resource.partition("/")
        given = {
            "verb": self.verb,
            "group": self.group,
            "resource": resource,
            "subresource": subresource,
            "namespace": self.namespace,
            "name": self.name,
        }
        return {key: value for key, value in given.items() if value}


def allowed(kubectl: Kubectl, account: str, acts: Sequence[Act]) -> set[Act]:
    """Return which of the acts the account may do, as `kubectl auth can-i` asks, in one call for all of them.

    Args:
        kubectl: of an administrator.
        account: a user name such as `system:serviceaccount:NAMESPACE:NAME`.
        acts: what is asked about.
    """
    namespace = account.split(":")[2]
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
    reviews = [
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": account, "groups": groups, "resourceAttributes": act.attributes},
        }
        for act in acts
    ]
    bundle = json.dumps({"apiVersion": "v1", "kind": "List", "items": reviews})
    arguments = ("create", "--filename", "-", "--output", 'jsonpath={.status.allowed}{"\\n"}')
    answers = kubectl.run(*arguments, given=bundle).split()
    assert set(answers) <= {"true", "false"}
    return {act for act, answer in zip(acts, answers, strict=True) if answer == "true"}


def rules(kubectl: Kubectl, account: str, namespace: str) -> set[Act]:
    """Return all that the account may do with resources in a namespace, from there and cluster-wide."""
    review: dict[str, Any] = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": namespace},
    }
    # without kubectl's own check of the object, for which the account would have to read CRDs
    arguments = ("create", f"--as={account}", "--validate=false", "--filename", "-", "--output", "json")
    status = json.loads(kubectl.run(*arguments, given=json.dumps(review)))["status"]
    assert not status.get("incomplete"), status
    return {
        Act(verb, resource, group, namespace, name)
        for rule in status["resourceRules"]
        for verb in rule["verbs"]
        for group in rule.get("apiGroups", [""])
        for resource in rule.get("resources", [])
        for name in rule.get("resourceNames", [""])
    }
