from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvfence.kube.drift import APPLIED, at, digest, disowned, foreign, is_applied, with_digest
from kvfence.kube.normal import same_quantity
from tests.unit.kube.objects import Object, config_map, deployment, engine_of, live_of, owned

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)


def test_the_digest_is_of_the_whole_wish_but_for_itself() -> None:
    wanted = config_map(a="1")
    assert digest(with_digest(wanted)) == digest(wanted)
    assert with_digest(with_digest(wanted)) == with_digest(wanted)
    assert APPLIED not in str(wanted)
    assert digest(config_map(a="2")) != digest(wanted)
    assert digest(wanted | {"metadata": wanted["metadata"] | {"annotations": {"x": "y"}}}) != digest(wanted)
    assert digest(dict(reversed(wanted.items()))) == digest(wanted)


def test_what_stands_is_applied_and_what_was_made_from_another_wish_is_not() -> None:
    wanted = deployment()
    assert is_applied(wanted, live_of(wanted))
    fewer = copy.deepcopy(wanted)
    del fewer["spec"]["replicas"]
    assert not is_applied(fewer, live_of(wanted))


@pytest.mark.parametrize(
    ("wanted", "there"),
    [
        ({"env": [{"name": "A", "value": ""}]}, {"env": [{"name": "A"}]}),
        ({"args": []}, {}),
        ({"tty": False}, {}),
        ({"resources": {"limits": {"cpu": "1000m"}}}, {"resources": {"limits": {"cpu": "1"}}}),
        (
            {"resources": {"limits": {"cpu": 1, "memory": "1Gi"}}},
            {"resources": {"limits": {"cpu": "1", "memory": "1024Mi"}}},
        ),
        ({"resources": {"limits": {}}}, {"resources": {}}),
        ({"ports": [{"containerPort": 1}]}, {"ports": [{"containerPort": 1, "protocol": "TCP"}]}),
        ({"readinessProbe": {"periodSeconds": 1}}, {"readinessProbe": {"periodSeconds": 1, "successThreshold": 1}}),
        ({"env": [{"name": "A"}, {"name": "B"}]}, {"env": [{"name": "B"}, {"name": "A"}]}),
        (
            {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "p"}}}]},
            {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "p", "apiVersion": "v1"}}}]},
        ),
    ],
)
def test_another_form_of_the_same_is_no_drift(wanted: Object, there: Object) -> None:
    desired = deployment(**wanted)
    live = live_of(desired)
    for key in wanted:
        del engine_of(live)[key]
    engine_of(live).update(there)
    assert is_applied(desired, live)


@pytest.mark.parametrize(
    ("wanted", "there"),
    [
        ({"image": "i"}, {"image": "j"}),
        ({"args": ["a", "b"]}, {"args": ["b", "a"]}),
        ({"args": ["a"]}, {"args": ["a", "b"]}),
        ({"tty": False}, {"tty": True}),
        ({"tty": True}, {"tty": 1}),
        ({"securityContext": {"privileged": False}}, {"securityContext": {}}),
        ({"volumeDevices": {}}, {}),
        ({"env": [{"name": "A", "value": ""}]}, {"env": [{"name": "A", "value": "x"}]}),
        ({"env": [{"name": "A", "value": "1000m"}]}, {"env": [{"name": "A", "value": "1"}]}),
        ({"env": [{"name": "A"}]}, {"env": []}),
        ({"env": [{"name": "A"}]}, {"env": [{"name": "A"}, {"name": "LD_PRELOAD", "value": "x"}]}),
        ({"env": [{"name": "A"}]}, {"env": "A"}),
        ({"resources": {"limits": {"cpu": "1"}}}, {"resources": {"limits": {"cpu": "2"}}}),
        ({"readinessProbe": {"httpGet": {"port": 1}}}, {"readinessProbe": {"httpGet": {"port": "1"}}}),
        (
            {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]},
            {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": True}}}]},
        ),
    ],
)
def test_another_value_is_drift(wanted: Object, there: Object) -> None:
    desired = deployment(**wanted)
    live = live_of(desired)
    for key in wanted:
        del engine_of(live)[key]
    engine_of(live).update(there)
    assert not is_applied(desired, live)


def test_an_empty_label_of_a_node_is_not_the_same_as_none() -> None:
    desired = deployment()
    desired["spec"]["template"]["spec"]["nodeSelector"] = {"gpu": ""}
    live = live_of(desired)
    assert is_applied(desired, live)
    live["spec"]["template"]["spec"]["nodeSelector"] = {}
    assert not is_applied(desired, live)


def test_a_volume_that_became_another_kind_of_volume_is_drift() -> None:
    desired = deployment()
    desired["spec"]["template"]["spec"]["volumes"] = [{"name": "code", "emptyDir": {}}]
    live = live_of(desired)
    live["spec"]["template"]["spec"]["volumes"] = [{"name": "code", "hostPath": {"path": "/"}}]
    assert not is_applied(desired, live)


def test_containers_of_others_are_foreign_whoever_owns_them() -> None:
    desired = deployment()
    live = live_of(desired)
    pod = live["spec"]["template"]["spec"]
    pod["containers"] = [{"name": "spy"}, *pod["containers"], {"name": "spy2"}]
    assert foreign(desired, live) == ["/spec/template/spec/containers/2", "/spec/template/spec/containers/0"]
    assert at(live, "/spec/template/spec/containers/2") == {"name": "spy2"}


def test_additions_are_removed_from_the_back_so_that_none_moves() -> None:
    desired = deployment(env=[{"name": "A"}])
    live = live_of(desired)
    engine_of(live)["env"] = [{"name": f"V{n}"} for n in range(12)] + [{"name": "A"}]
    pointers = foreign(desired, live)
    assert pointers == [f"/spec/template/spec/containers/0/env/{n}" for n in reversed(range(12))]
    for pointer in pointers:
        del engine_of(live)["env"][int(pointer.rsplit("/", 1)[1])]
    assert engine_of(live)["env"] == [{"name": "A"}]


def in_pod(fields: Object) -> Object:
    return {"f:spec": {"f:template": {"f:spec": fields}}}


def test_a_default_that_nobody_set_is_nothing_and_the_same_field_set_by_somebody_is_foreign() -> None:
    desired = deployment()
    live = live_of(desired)
    live["spec"]["template"]["spec"]["hostPID"] = True
    assert is_applied(desired, live)  # as far as can be told: a field that this kvfence does not know, from the server
    live["metadata"]["managedFields"] = [owned(in_pod({"f:hostPID": {}}))]
    assert foreign(desired, live) == ["/spec/template/spec/hostPID"]
    assert not is_applied(desired, live)


def test_what_somebody_set_inside_of_a_keyed_item_is_found() -> None:
    desired = deployment(ports=[{"containerPort": 1}])
    key = 'k:{"containerPort":1,"protocol":"TCP"}'
    fields = in_pod(
        {"f:containers": {'k:{"name":"engine"}': {"f:ports": {key: {".": {}, "f:hostIP": {}, "f:name": {}}}}}}
    )
    live = live_of(desired, owned(fields))
    engine_of(live)["ports"] = [{"containerPort": 1, "protocol": "TCP", "hostIP": "192.0.2.1"}]
    assert foreign(desired, live) == ["/spec/template/spec/containers/0/ports/0/hostIP"]


def test_an_apply_in_our_own_name_is_no_cover() -> None:
    desired = deployment()
    live = live_of(desired, owned(in_pod({"f:hostPID": {}}), "kvfence", operation="Apply"))
    live["spec"]["template"]["spec"]["hostPID"] = True
    assert foreign(desired, live) == ["/spec/template/spec/hostPID"]


def test_status_metadata_and_a_restart_by_kubectl_are_left_to_others() -> None:
    desired = deployment()
    restarted: Object = {"f:spec": {"f:template": {"f:metadata": {"f:annotations": {".": {}, "f:restartedAt": {}}}}}}
    live = live_of(
        desired,
        owned({"f:status": {"f:replicas": {}}}, "kube-controller-manager", subresource="status"),
        owned({"f:metadata": {"f:annotations": {"f:note": {}}, "f:labels": {"f:team": {}}}}),
        owned(restarted),
    )
    live["status"] = {"replicas": 1}
    live["metadata"]["labels"] = {"team": "x"}
    live["metadata"]["annotations"]["note"] = "x"
    live["spec"]["template"]["metadata"]["annotations"] = {"restartedAt": "now"}
    assert is_applied(desired, live)


@pytest.mark.parametrize("where", ["data", "binaryData"])
def test_a_key_of_others_in_a_config_map_is_foreign(where: str) -> None:
    desired = config_map(a="1")
    live = live_of(desired)
    live.setdefault(where, {})["x/y~z"] = "eA=="
    pointer = f"/{where}/x~1y~0z" if where == "data" else "/binaryData/x~1y~0z"
    assert foreign(desired, live) == [pointer]
    assert at(live, pointer) == "eA=="


def policy(**spec: Any) -> Object:
    meta = {"name": "p", "namespace": "shop"}
    return {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": meta, "spec": spec}


PEER: Object = {"podSelector": {"matchLabels": {"a": "b"}}}
RULE: Object = {"from": [PEER], "ports": [{"port": 1}]}


@pytest.mark.parametrize(
    "spec",
    [
        {"podSelector": {}, "ingress": [RULE, {}]},
        {"podSelector": {}, "ingress": []},
        {"podSelector": {}, "ingress": [{"ports": [{"port": 1}]}]},
        {"podSelector": {}, "ingress": [RULE | {"from": [PEER | {"namespaceSelector": {}}]}]},
        {"podSelector": {}, "ingress": [RULE | {"ports": [{"port": 1, "endPort": 9}]}]},
        {"podSelector": {}, "ingress": [RULE | {"ports": [{"port": 1, "protocol": "UDP"}]}]},
        {"podSelector": {"matchLabels": {"a": "b"}}, "ingress": [RULE]},
        {"podSelector": {}, "ingress": [RULE], "egress": [{}]},
        {"ingress": [RULE]},
    ],
)
def test_a_policy_with_anything_else_in_it_is_drift(spec: Object) -> None:
    desired = policy(podSelector={}, ingress=[RULE], egress=[])
    same = {
        "podSelector": {},
        "ingress": [RULE | {"ports": [{"port": 1, "protocol": "TCP"}]}],
        "policyTypes": ["Ingress"],
    }
    assert is_applied(desired, live_of(desired) | {"spec": same})
    assert not is_applied(desired, live_of(desired) | {"spec": spec | {"policyTypes": ["Ingress"]}})


def test_a_selector_of_a_service_with_one_label_more_is_drift() -> None:
    meta = {"name": "s", "namespace": "shop"}
    desired: Object = {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {"selector": {"a": "b"}}}
    live = live_of(desired)
    live["spec"] |= {"clusterIP": "10.0.0.1", "sessionAffinity": "None"}
    assert is_applied(desired, live)
    live["spec"]["selector"]["c"] = "d"
    assert foreign(desired, live) == ["/spec/selector/c"]


def test_disowning_leaves_our_applies_the_status_and_the_metadata() -> None:
    desired = config_map(a="1")
    ours = owned({"f:data": {"f:a": {}}}, "kvfence", operation="Apply")
    created = owned({"f:data": {"f:a": {}}}, "kvfence")
    status = owned({"f:status": {}}, subresource="status")
    both = owned({"f:data": {"f:x": {}}, "f:metadata": {"f:labels": {}}})
    live = live_of(desired, ours, created, status, both)
    assert disowned(desired, live, "kvfence") == [ours, status, owned({"f:metadata": {"f:labels": {}}})]


@settings(max_examples=40)
@given(JSON, JSON, JSON)
def test_whatever_stands_in_a_live_object_there_is_an_answer(meta: Any, fields: Any, spec: Any) -> None:
    desired = deployment(env=[{"name": "A"}], ports=[{"containerPort": 1}])
    live = live_of(desired, owned({"f:spec": fields}))
    assert isinstance(is_applied(desired, live | {"spec": spec}), bool)
    assert is_applied(desired, {"metadata": meta, "spec": spec}) is False
    live["metadata"]["managedFields"] = meta
    assert isinstance(is_applied(desired, live | {"spec": spec}), bool)
    assert is_applied(desired, {}) is False


@pytest.mark.parametrize("broken", ["k:", "k:{", "k:[1]", "k:{}", "v:", "v:{", "i:0", "i:x", ".", "", "f:"])
def test_a_form_of_ownership_that_is_newer_is_passed_over(broken: str) -> None:
    desired = deployment()
    live = live_of(desired, owned(in_pod({"f:containers": {broken: {"f:image": {}}}})))
    assert is_applied(desired, live)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1000m", "1"),
        ("1Gi", "1024Mi"),
        ("1.5Gi", "1536Mi"),
        (1, "1"),
        ("1e3", "1k"),
        ("0", 0),
        ("1E", "1e18"),
        ("x", "x"),
    ],
)
def test_the_same_quantity(one: Any, other: Any) -> None:
    assert same_quantity(one, other)
    assert same_quantity(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [("1", "1m"), ("1Gi", "1G"), ("1", "x"), ("", "0"), (True, 1), ("1e999999999", "1"), ("NaN", "1"), ("1", ["1"])],
)
def test_not_the_same_quantity(one: Any, other: Any) -> None:
    assert not same_quantity(one, other)


@given(st.integers(0, 10**9))
def test_a_quantity_in_thousandths_is_the_same(number: int) -> None:
    assert same_quantity(f"{number}000m", number)
