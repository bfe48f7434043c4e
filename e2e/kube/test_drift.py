"""A converged object needs no write, and what somebody else changed is seen and mended: on the real API server."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from e2e.cluster.stage import Stage
from e2e.kube.conftest import Asked
from e2e.kube.objects import ALL, Object, config_map, deployment, network_policy, service, service_account
from kvfence.kube.client import Kubernetes
from kvfence.kube.drift import APPLIED, foreign, is_applied, with_digest
from kvfence.kube.kinds import kind_of

ENGINE = "/spec/template/spec/containers/0"
POD = "/spec/template/spec"
Make = Callable[[str], Object]


def add(path: str, value: Any) -> Object:
    return {"op": "add", "path": path, "value": value}


def remove(path: str) -> Object:
    return {"op": "remove", "path": path}


EDITS: dict[str, tuple[Make, list[Object]]] = {
    "another image": (deployment, [add(f"{ENGINE}/image", "example.invalid/other:1")]),
    "another argument": (deployment, [add(f"{ENGINE}/args/-", "--allow-auto-truncate")]),
    "an argument less": (deployment, [remove(f"{ENGINE}/args/0")]),
    "scaled": (deployment, [add("/spec/replicas", 3)]),
    "a container more": (deployment, [add(f"{POD}/containers/-", {"name": "spy", "image": "example.invalid/spy:1"})]),
    "a container before ours": (
        deployment,
        [add(f"{POD}/containers/0", {"name": "spy", "image": "example.invalid/spy:1"})],
    ),
    "two containers more": (
        deployment,
        [add(f"{POD}/containers/-", {"name": f"spy{n}", "image": "example.invalid/spy:1"}) for n in range(2)],
    ),
    "an init container more": (
        deployment,
        [add(f"{POD}/initContainers/-", {"name": "spy", "image": "example.invalid/spy:1"})],
    ),
    "a variable more": (deployment, [add(f"{ENGINE}/env/-", {"name": "LD_PRELOAD", "value": "/evil.so"})]),
    "an empty variable filled": (deployment, [add(f"{ENGINE}/env/0/value", "x")]),
    "a variable less": (deployment, [remove(f"{ENGINE}/env/0")]),
    "another secret in a variable": (deployment, [add(f"{ENGINE}/env/3/valueFrom/secretKeyRef/name", "other")]),
    "another field in a variable": (
        deployment,
        [add(f"{ENGINE}/env/1/valueFrom/fieldRef/fieldPath", "status.hostIP")],
    ),
    "privileged": (
        deployment,
        [
            add(f"{ENGINE}/securityContext/allowPrivilegeEscalation", True),
            add(f"{ENGINE}/securityContext/privileged", True),
        ],
    ),
    "privileged beside": (deployment, [add(f"{POD}/initContainers/0/securityContext", {"privileged": True})]),
    "the host's network": (deployment, [add(f"{POD}/hostNetwork", True)]),
    "the host's processes": (deployment, [add(f"{POD}/hostPID", True)]),
    "a volume of the host": (
        deployment,
        [
            add(f"{POD}/volumes/-", {"name": "root", "hostPath": {"path": "/"}}),
            add(f"{ENGINE}/volumeMounts/-", {"name": "root", "mountPath": "/host"}),
        ],
    ),
    "a folder of ours on the host": (
        deployment,
        [remove(f"{POD}/volumes/0/emptyDir"), add(f"{POD}/volumes/0/hostPath", {"path": "/tmp"})],
    ),
    "our keys from the host": (
        deployment,
        [remove(f"{POD}/volumes/2/configMap"), add(f"{POD}/volumes/2/hostPath", {"path": "/tmp"})],
    ),
    "a default changed": (deployment, [add(f"{ENGINE}/terminationMessagePath", "/x")]),
    "a default of a volume changed": (deployment, [add(f"{POD}/volumes/2/configMap/defaultMode", 511)]),
    "a probe of ours replaced": (deployment, [add(f"{ENGINE}/readinessProbe", {"tcpSocket": {"port": 1}})]),
    "a token mounted": (deployment, [remove(f"{POD}/automountServiceAccountToken")]),
    "a liveness probe": (deployment, [add(f"{ENGINE}/livenessProbe", {"tcpSocket": {"port": 1}})]),
    "another memory limit": (deployment, [add(f"{ENGINE}/resources/limits/memory", "2Gi")]),
    "a limit more": (deployment, [add(f"{ENGINE}/resources/limits/ephemeral-storage", "1Gi")]),
    "a label more on the pods": (deployment, [add("/spec/template/metadata/labels/app", "bait")]),
    "a toleration more": (deployment, [add(f"{POD}/tolerations/-", {"operator": "Exists"})]),
    "a toleration widened": (deployment, [remove(f"{POD}/tolerations/0/effect")]),
    "a node selector more": (deployment, [add(f"{POD}/nodeSelector/mine", "yes")]),
    "a node selector less": (deployment, [remove(f"{POD}/nodeSelector/gpu")]),
    "an affinity": (
        deployment,
        [
            add(
                f"{POD}/affinity",
                {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [{"matchExpressions": [{"key": "mine", "operator": "Exists"}]}]
                        }
                    }
                },
            )
        ],
    ),
    "another label": (deployment, [add("/metadata/labels/kvfence.io~1pool", "other")]),
    "a key more": (config_map, [add("/data/evil.conf", "x")]),
    "a binary key": (config_map, [add("/binaryData", {"evil": "eA=="})]),
    "a key less": (config_map, [remove("/data/empty")]),
    "a key's text": (config_map, [add("/data/nginx.conf", "x")]),
    "made immutable": (config_map, [add("/immutable", False)]),
    "a selector more": (service, [add("/spec/selector/app", "bait")]),
    "a selector less": (service, [remove("/spec/selector/kvfence.io~1component")]),
    "another selector": (service, [add("/spec/selector", {"app": "bait"})]),
    "a port more": (service, [add("/spec/ports/-", {"name": "x", "port": 81, "targetPort": 8901})]),
    "another port behind": (service, [add("/spec/ports/0/targetPort", 8082)]),
    "an address from outside": (service, [add("/spec/externalIPs", ["192.0.2.1"])]),
    "a load balancer": (service, [add("/spec/type", "LoadBalancer")]),
    "a rule more": (network_policy, [add("/spec/ingress/-", {})]),
    "a peer more": (network_policy, [add("/spec/ingress/1/from/-", {"ipBlock": {"cidr": "0.0.0.0/0"}})]),
    "a peer widened by an empty selector": (network_policy, [add("/spec/ingress/1/from/0/namespaceSelector", {})]),
    "peers taken away": (network_policy, [remove("/spec/ingress/1/from")]),
    "a port less": (network_policy, [remove("/spec/ingress/1/ports/0/port")]),
    "a range of ports": (network_policy, [add("/spec/ingress/0/ports/0/endPort", 30000)]),
    "fewer pods": (network_policy, [add("/spec/podSelector/matchLabels/no", "pod")]),
    "fewer pods by an expression": (
        network_policy,
        [add("/spec/podSelector/matchExpressions", [{"key": "no", "operator": "Exists"}])],
    ),
    "another direction": (network_policy, [add("/spec/policyTypes", ["Ingress", "Egress"])]),
    "a way out": (network_policy, [add("/spec/egress", [{}])]),
    "the token of the account": (service_account, [add("/automountServiceAccountToken", True)]),
    "the digest": (config_map, [add(f"/metadata/annotations/{APPLIED.replace('/', '~1')}", "0")]),
}


async def applied(kubernetes: Kubernetes, wanted: Object) -> Object:
    await kubernetes.apply(wanted)
    meta = wanted["metadata"]
    (live,) = [
        one
        for one in await kubernetes.list(kind_of(wanted), meta["namespace"])
        if one["metadata"]["name"] == meta["name"]
    ]
    return live


def patch(api: Stage, wanted: Object, operations: list[Object]) -> None:
    meta = wanted["metadata"]
    where = (wanted["kind"], meta["name"], "--namespace", meta["namespace"])
    api.kubectl.run("patch", *where, "--type=json", "--patch", json.dumps(operations))


@pytest.mark.parametrize("make", ALL, ids=lambda make: make.__name__)
def test_what_was_applied_once_needs_no_second_apply(make: Make, asked: Asked, api_namespace: str) -> None:
    wanted = make(api_namespace)
    live = asked(lambda kubernetes: applied(kubernetes, with_digest(wanted)))
    assert foreign(wanted, live) == []
    assert is_applied(wanted, live)


@pytest.mark.parametrize("name", EDITS)
def test_what_somebody_changed_is_seen_and_mended(name: str, asked: Asked, api: Stage, api_namespace: str) -> None:
    make, operations = EDITS[name]
    wanted = make(api_namespace)
    kind, meta = kind_of(wanted), wanted["metadata"]

    async def story(kubernetes: Kubernetes) -> None:
        live = await applied(kubernetes, with_digest(wanted))
        assert is_applied(wanted, live)
        before = {key: live[key] for key in set(live) - {"metadata", "status"}}
        patch(api, wanted, operations)
        edited = await kubernetes.get(kind, api_namespace, meta["name"])
        assert edited is not None
        assert not is_applied(wanted, edited)
        mended = await kubernetes.apply(with_digest(wanted))
        assert is_applied(wanted, mended)
        assert {key: mended[key] for key in set(mended) - {"metadata", "status"}} == before

    asked(story)


@pytest.mark.parametrize(
    ("make", "operations"),
    [
        (deployment, [add("/metadata/annotations/note", "x"), add("/metadata/labels/team", "x")]),
        (deployment, [add("/spec/template/metadata/annotations", {"kubectl.kubernetes.io/restartedAt": "now"})]),
        (service_account, [add("/imagePullSecrets", [{"name": "registry"}])]),
        (service, [add("/metadata/annotations/note", "x")]),
    ],
    ids=["notes and labels", "rollout restart", "pull secrets of an account", "a note on a service"],
)
def test_what_others_may_write_is_left_alone(
    make: Make, operations: list[Object], asked: Asked, api: Stage, api_namespace: str
) -> None:
    wanted = make(api_namespace)

    async def story(kubernetes: Kubernetes) -> None:
        await applied(kubernetes, with_digest(wanted))
        patch(api, wanted, operations)
        live = await kubernetes.get(kind_of(wanted), api_namespace, wanted["metadata"]["name"])
        assert live is not None
        assert is_applied(wanted, live)

    asked(story)


def test_a_default_that_somebody_has_in_his_name_is_mended_once(asked: Asked, api: Stage, api_namespace: str) -> None:
    wanted = deployment(api_namespace)
    kind, name = kind_of(wanted), wanted["metadata"]["name"]

    async def story(kubernetes: Kubernetes) -> None:
        live = await applied(kubernetes, with_digest(wanted))
        probe = live["spec"]["template"]["spec"]["containers"][0]["readinessProbe"]
        patch(api, wanted, [remove(f"{ENGINE}/readinessProbe")])
        patch(api, wanted, [add(f"{ENGINE}/readinessProbe", probe)])
        edited = await kubernetes.get(kind, api_namespace, name)
        assert edited is not None
        assert edited["spec"] == live["spec"]
        assert foreign(wanted, edited)  # successThreshold, which kubectl patch set to what it was
        assert is_applied(wanted, await kubernetes.apply(with_digest(wanted)))

    asked(story)


def test_a_field_that_is_no_longer_wanted_goes_with_the_next_apply(asked: Asked, api_namespace: str) -> None:
    before, after = deployment(api_namespace), deployment(api_namespace)
    del after["spec"]["template"]["spec"]["containers"][0]["env"][0]

    async def story(kubernetes: Kubernetes) -> None:
        live = await applied(kubernetes, with_digest(before))
        assert not is_applied(after, live)
        live = await kubernetes.apply(with_digest(after))
        assert is_applied(after, live)
        assert live["spec"]["template"]["spec"]["containers"][0]["env"][0]["name"] == "POD_IP"

    asked(story)


def test_mending_is_one_request_more_and_a_converged_apply_is_one(asked: Asked, api: Stage, api_namespace: str) -> None:
    wanted = config_map(api_namespace)

    async def story(kubernetes: Kubernetes) -> None:
        await kubernetes.apply(with_digest(wanted))
        assert kubernetes.writes == 1
        patch(api, wanted, [add("/data/evil.conf", "x")])
        await kubernetes.apply(with_digest(wanted))
        assert kubernetes.writes == 3

    asked(story)


def test_what_controllers_write_is_no_drift(asked: Asked, api: Stage, api_namespace: str) -> None:
    wanted = deployment(api_namespace)
    wanted["spec"]["replicas"] = 1
    api.kubectl.run("create", "serviceaccount", "shop-kvfence", "--namespace", api_namespace)

    async def story(kubernetes: Kubernetes) -> None:
        await kubernetes.apply(with_digest(wanted))
        api.kubectl.run(
            "wait", "--for=jsonpath={.status.replicas}=1", "deployment/shop-prefill-abc", "--namespace", api_namespace
        )
        live = await kubernetes.get(kind_of(wanted), api_namespace, "shop-prefill-abc")
        assert live is not None
        assert {one["manager"] for one in live["metadata"]["managedFields"]} > {"kvfence"}
        assert is_applied(wanted, live)

    asked(story)
