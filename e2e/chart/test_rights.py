"""What the operator's ServiceAccount may do: what it needs, and nothing else, as the real authoriser says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from e2e.chart.access import Act, allowed, rules
from e2e.chart.helm import Helm
from e2e.cluster.stage import Stage

WATCHED = "default"
OTHER = "kube-public"

READ = ("get", "list", "watch")
APPLY = (*READ, "create", "patch", "delete")
WHERE_POOLS_ARE: list[tuple[str, str, tuple[str, ...]]] = [
    ("kvfence.io", "inferencepools", READ),
    ("kvfence.io", "inferencepools/status", ("patch",)),
    ("kvfence.io", "inferencepools/finalizers", ("update",)),
    ("", "pods", (*READ, "patch")),
    ("", "configmaps", APPLY),
    ("", "serviceaccounts", APPLY),
    ("", "services", APPLY),
    ("apps", "controllerrevisions", APPLY),
    ("apps", "deployments", APPLY),
    ("networking.k8s.io", "networkpolicies", APPLY),
    ("events.k8s.io", "events", ("create",)),
]
LEASES = "coordination.k8s.io"
IN_ITS_OWN_NAMESPACE = [
    Act("create", "secrets"),
    Act("get", "secrets", name="kvfence-signing-key"),
    Act("create", "leases", LEASES),
    *(Act(verb, "leases", LEASES, name="kvfence-operator") for verb in ("get", "update")),
]
NOWHERE = [
    *(Act(verb, "secrets") for verb in ("list", "watch", "update", "patch", "delete", "deletecollection")),
    Act("get", "secrets", name="some-other-secret"),
    Act("get", "leases", LEASES, name="some-other-lease"),
    *(Act(verb, "leases", LEASES) for verb in ("list", "watch", "delete")),
    *(Act(verb, "pods") for verb in ("create", "update", "delete", "deletecollection")),
    *(Act(verb, f"pods/{how}") for verb in ("get", "create") for how in ("exec", "attach", "portforward", "proxy")),
    *(
        Act(verb, f"pods/{how}")
        for verb in ("get", "update", "patch")
        for how in ("log", "ephemeralcontainers", "status")
    ),
    Act("create", "pods/eviction"),
    Act("create", "serviceaccounts/token"),
    *(Act(verb, "serviceaccounts") for verb in ("impersonate", "update", "deletecollection")),
    *(
        Act(verb, "inferencepools", "kvfence.io")
        for verb in ("create", "update", "patch", "delete", "deletecollection")
    ),
    Act("update", "inferencepools/status", "kvfence.io"),
    *(Act(verb, one, "apps") for verb in ("get", "create", "patch") for one in ("statefulsets", "daemonsets")),
    Act("create", "jobs", "batch"),
    *(
        Act(verb, kind, "rbac.authorization.k8s.io")
        for verb in ("get", "create", "update", "patch", "bind", "escalate", "delete")
        for kind in ("roles", "rolebindings")
    ),
    *(Act(verb, "*", group) for verb in ("get", "create", "*") for group in ("", "apps", "*")),
    Act("*", "inferencepools", "kvfence.io"),
]
NO_NAMESPACE = [
    *(
        Act(verb, kind, "rbac.authorization.k8s.io")
        for verb in ("get", "list", "create", "patch", "bind", "escalate", "delete")
        for kind in ("clusterroles", "clusterrolebindings")
    ),
    *(Act(verb, "customresourcedefinitions", "apiextensions.k8s.io") for verb in ("get", "create", "patch", "delete")),
    *(Act(verb, "nodes") for verb in ("get", "list", "patch")),
    *(Act(verb, "nodes/proxy") for verb in ("get", "create")),
    *(Act(verb, "namespaces") for verb in ("list", "create", "patch", "delete")),
    *(Act("impersonate", kind) for kind in ("users", "groups")),
    Act("get", "persistentvolumes"),
    Act("create", "validatingwebhookconfigurations", "admissionregistration.k8s.io"),
]


def needed(namespace: str = "") -> list[Act]:
    """What the operator needs in a namespace that has pools."""
    return [Act(verb, resource, group, namespace) for group, resource, verbs in WHERE_POOLS_ARE for verb in verbs]


def placed(acts: list[Act], *namespaces: str) -> list[Act]:
    return [replace(act, namespace=namespace) for act in acts for namespace in namespaces]


@pytest.fixture(scope="module")
def installed(helm: Helm, shared_namespace: str) -> Iterator[str]:
    """The operator for pools in all namespaces; its own namespace."""
    try:
        helm.install(shared_namespace, "--set=crds.enabled=false")
        yield shared_namespace
    finally:
        helm.uninstall(shared_namespace)


@pytest.fixture
def some_namespaces(helm: Helm, api_namespace: str) -> Iterator[str]:
    """The operator for pools in `WATCHED` alone; its own namespace."""
    try:
        helm.install(api_namespace, f"--set=watchNamespaces={{{WATCHED}}}", "--set=crds.enabled=false")
        yield api_namespace
    finally:
        helm.uninstall(api_namespace)


def operator(namespace: str) -> str:
    return f"system:serviceaccount:{namespace}:kvfence-operator"


def beyond_anybody(api: Stage, account: str, namespace: str) -> set[Act]:
    """What the account may do in a namespace beyond what every account may."""
    everybody = rules(api.kubectl, "system:serviceaccount:default:default", namespace)
    return rules(api.kubectl, account, namespace) - everybody


def test_for_all_namespaces_it_may_do_what_it_needs_in_all(api: Stage, installed: str) -> None:
    acts = [*needed(), *needed(OTHER), *placed(IN_ITS_OWN_NAMESPACE, installed)]
    assert set(acts) - allowed(api.kubectl, operator(installed), acts) == set()


def test_for_all_namespaces_it_may_do_none_of_this(api: Stage, installed: str) -> None:
    acts = [
        *placed(NOWHERE, installed, OTHER, ""),
        *NO_NAMESPACE,
        *placed(IN_ITS_OWN_NAMESPACE, OTHER, "kube-system", ""),
    ]
    assert allowed(api.kubectl, operator(installed), acts) == set()


def test_for_all_namespaces_the_whole_list_is_this(api: Stage, installed: str) -> None:
    assert beyond_anybody(api, operator(installed), OTHER) == set(needed(OTHER))
    own = {*needed(installed), *placed(IN_ITS_OWN_NAMESPACE, installed)}
    assert beyond_anybody(api, operator(installed), installed) == own


def test_for_some_namespaces_it_may_do_what_it_needs_there_and_nothing_elsewhere(
    api: Stage, some_namespaces: str
) -> None:
    account = operator(some_namespaces)
    assert beyond_anybody(api, account, WATCHED) == set(needed(WATCHED))
    assert beyond_anybody(api, account, OTHER) == set()
    assert beyond_anybody(api, account, some_namespaces) == set(placed(IN_ITS_OWN_NAMESPACE, some_namespaces))
    acts = [*needed(), *needed(OTHER), *placed(NOWHERE, WATCHED, OTHER, some_namespaces), *NO_NAMESPACE]
    assert allowed(api.kubectl, account, acts) == set()


def test_no_other_account_of_its_namespace_may_do_any_of_it(api: Stage, installed: str) -> None:
    account = f"system:serviceaccount:{installed}:default"
    acts = [*needed(), *placed(IN_ITS_OWN_NAMESPACE, installed)]
    assert allowed(api.kubectl, account, acts) == set()


def test_an_administrator_would_be_seen(api: Stage, installed: str) -> None:
    # else the tables of what it may not do could be empty words: a name that is misspelt is not allowed either
    api.kubectl.run(
        "create",
        "clusterrolebinding",
        installed,
        "--clusterrole=cluster-admin",
        f"--serviceaccount={installed}:default",
    )
    try:
        acts = [*placed(NOWHERE, OTHER), *NO_NAMESPACE]
        account = f"system:serviceaccount:{installed}:default"
        assert allowed(api.kubectl, account, acts) == set(acts)
        assert Act("*", "*", "*", OTHER) in rules(api.kubectl, account, OTHER)
    finally:
        api.kubectl.run("delete", "clusterrolebinding", installed)
