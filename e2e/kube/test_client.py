"""The API client against the real API server: what each verb does, and in which words it fails."""

from __future__ import annotations

import asyncio
import json
import secrets
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from e2e.cluster.audit import AuditLog
from e2e.cluster.stage import Stage
from e2e.kube.conftest import Asked
from e2e.kube.objects import Object, config_map, deployment
from kvfence.kube.client import Kubernetes
from kvfence.kube.drift import with_digest
from kvfence.kube.errors import Conflict, Forbidden, Invalid, NamespaceTerminating, NotFound, Unreachable
from kvfence.kube.events import event
from kvfence.kube.kinds import CONFIG_MAP, DEPLOYMENT, EVENT, POD, SECRET

NAME = "shop-router-abc"


def secret(namespace: str, value: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "key", "namespace": namespace},
        "stringData": {"key": value},
    }


def test_a_list_of_more_than_a_page_is_whole_and_each_item_says_what_it_is(
    asked: Asked, api: Stage, api_namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kvfence.kube.client.PAGE", 3)
    made = [config_map(api_namespace) for _ in range(8)]
    for number, one in enumerate(made):
        one["metadata"] |= {"name": f"m{number}", "labels": {"kvfence.io/pool": "even" if number % 2 == 0 else "odd"}}
    api.kubectl.apply(made)
    log = AuditLog(api.layout.audit_log)

    async def story(kubernetes: Kubernetes) -> None:
        before = log.position()
        found = await kubernetes.list(CONFIG_MAP, api_namespace)
        asked_for = [one for one in log.since(before) if one.verb == "list" and one.namespace == api_namespace]
        assert len(asked_for) == 3  # with kube-root-ca.crt these are nine
        assert {f"m{n}" for n in range(8)} < {one["metadata"]["name"] for one in found}
        assert len(found) == 9
        assert {(one["apiVersion"], one["kind"]) for one in found} == {("v1", "ConfigMap")}
        even = await kubernetes.list(CONFIG_MAP, api_namespace, "kvfence.io/pool=even")
        assert [one["metadata"]["name"] for one in even] == ["m0", "m2", "m4", "m6"]
        both = await kubernetes.list(CONFIG_MAP, None, "kvfence.io/pool in (even,odd)")
        assert len([one for one in both if one["metadata"]["namespace"] == api_namespace]) == 8
        assert kubernetes.writes == 0

    asked(story)


def test_what_is_not_there_is_none_or_false(asked: Asked, api_namespace: str) -> None:
    async def story(kubernetes: Kubernetes) -> None:
        assert await kubernetes.get(CONFIG_MAP, api_namespace, "absent") is None
        assert await kubernetes.get(CONFIG_MAP, "no-such-namespace", "absent") is None
        assert await kubernetes.delete(CONFIG_MAP, api_namespace, "absent", "uid") is False
        assert await kubernetes.annotate(POD, api_namespace, "absent", {"a": "b"}) is False
        with pytest.raises(NotFound, match="write the status of Deployment"):
            await kubernetes.apply_status(
                {
                    "apiVersion": "apps/v1",
                    "kind": "Deployment",
                    "metadata": {"name": "absent", "namespace": api_namespace},
                    "status": {"replicas": 1},
                }
            )

    asked(story)


def test_create_makes_it_once(asked: Asked, api_namespace: str) -> None:
    async def story(kubernetes: Kubernetes) -> None:
        made = await kubernetes.create(secret(api_namespace, "one"))
        assert made is not None
        assert made["metadata"]["uid"]
        assert await kubernetes.create(secret(api_namespace, "two")) is None
        live = await kubernetes.get(SECRET, api_namespace, "key")
        assert live == made
        assert kubernetes.writes == 2

    asked(story)


def test_delete_takes_this_very_object_and_no_other_of_its_name(asked: Asked, api_namespace: str) -> None:
    async def story(kubernetes: Kubernetes) -> None:
        first = await kubernetes.apply(config_map(api_namespace))
        assert await kubernetes.delete(CONFIG_MAP, api_namespace, NAME, first["metadata"]["uid"]) is True
        second = await kubernetes.apply(config_map(api_namespace))
        assert await kubernetes.delete(CONFIG_MAP, api_namespace, NAME, first["metadata"]["uid"]) is False
        assert await kubernetes.get(CONFIG_MAP, api_namespace, NAME) == second

    asked(story)


@pytest.mark.parametrize("name", ["", ".", "..", "../secrets", "a/b", "a%2fb"])
def test_a_name_that_would_lead_elsewhere_is_refused_before_it_is_sent(
    name: str, asked: Asked, api_namespace: str
) -> None:
    async def story(kubernetes: Kubernetes) -> None:
        await kubernetes.apply(config_map(api_namespace))
        with pytest.raises(Invalid, match="cannot be the name"):
            await kubernetes.delete(CONFIG_MAP, api_namespace, name, "uid")
        with pytest.raises(Invalid, match="cannot be the name"):
            await kubernetes.get(CONFIG_MAP, api_namespace, name)
        assert await kubernetes.get(CONFIG_MAP, api_namespace, NAME) is not None

    asked(story)


def test_annotations_come_and_go_and_the_rest_stays(asked: Asked, api_namespace: str) -> None:
    async def story(kubernetes: Kubernetes) -> None:
        await kubernetes.apply(with_digest(config_map(api_namespace)))
        assert await kubernetes.annotate(CONFIG_MAP, api_namespace, NAME, {"poke": "1", "gone": "x"}) is True
        assert await kubernetes.annotate(CONFIG_MAP, api_namespace, NAME, {"poke": "2", "gone": None}) is True
        live = await kubernetes.get(CONFIG_MAP, api_namespace, NAME)
        assert live is not None
        annotations = live["metadata"]["annotations"]
        assert annotations["poke"] == "2"
        assert "gone" not in annotations
        assert "kvfence.io/applied" in annotations
        assert live["data"] == config_map(api_namespace)["data"]

    asked(story)


def test_a_status_is_applied_for_this_very_object_and_touches_no_spec(asked: Asked, api_namespace: str) -> None:
    async def story(kubernetes: Kubernetes) -> None:
        live = await kubernetes.apply(deployment(api_namespace))
        about = {"name": live["metadata"]["name"], "namespace": api_namespace}
        status = {"apiVersion": "apps/v1", "kind": "Deployment", "status": {"readyReplicas": 0, "replicas": 0}}
        told = await kubernetes.apply_status(status | {"metadata": about | {"uid": live["metadata"]["uid"]}})
        assert told["spec"] == live["spec"]
        assert any(
            one["manager"] == "kvfence" and one.get("subresource") == "status"
            for one in told["metadata"]["managedFields"]
        )
        with pytest.raises(Conflict, match="another object has that name now"):
            await kubernetes.apply_status(status | {"metadata": about | {"uid": "another"}})

    asked(story)


def test_a_field_that_does_not_exist_is_refused_by_name(asked: Asked, api_namespace: str) -> None:
    wrong = deployment(api_namespace)
    wrong["spec"]["template"]["spec"]["nodeSelecter"] = {"a": "b"}

    async def story(kubernetes: Kubernetes) -> None:
        with pytest.raises(Invalid, match="nodeSelecter"):
            await kubernetes.apply(wrong)
        assert await kubernetes.get(DEPLOYMENT, api_namespace, "shop-prefill-abc") is None

    asked(story)


@pytest.mark.parametrize(
    ("name", "value"),
    [("A", 5), ("A", ["s3cr3t"]), ("A", {"s3cr3t": "s3cr3t"}), ("A", "s3cr3t"), ("s3cr3t=1", "s3cr3t")],
    ids=["number", "list", "map", "both", "name"],
)
def test_a_refusal_names_the_field_and_shows_no_value(
    name: str, value: object, asked: Asked, api_namespace: str
) -> None:
    wrong = deployment(api_namespace)
    variable: dict[str, Any] = {"name": name, "value": value}
    if value == "s3cr3t" and name == "A":
        variable["valueFrom"] = {"fieldRef": {"fieldPath": "metadata.name"}}
    wrong["spec"]["template"]["spec"]["containers"][0]["env"].append(variable)

    async def story(kubernetes: Kubernetes) -> None:
        with pytest.raises(Invalid, match=r"cannot apply Deployment .*env.*\[") as refused:
            await kubernetes.apply(wrong)
        print(refused.value)
        assert "s3cr3t" not in refused.value.message.replace(f'name="{name}"', "")

    asked(story)


def test_an_account_without_rights_is_told_which_one_and_that_it_is_rbac(
    asked: Asked, api: Stage, api_namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.kubectl.run("create", "serviceaccount", "nobody", "--namespace", api_namespace)
    token = api.kubectl.run("create", "token", "nobody", "--namespace", api_namespace).strip()
    admin = json.loads(api.kubectl.run("config", "view", "--raw", "--flatten", "--output", "json"))
    admin["users"] = [{"name": admin["users"][0]["name"], "user": {"token": token}}]
    (tmp_path / "nobody").write_text(json.dumps(admin))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "nobody"))

    async def story() -> None:
        async with await Kubernetes.connect() as kubernetes:
            with pytest.raises(Forbidden) as listing:
                await kubernetes.list(CONFIG_MAP, api_namespace)
            with pytest.raises(Forbidden) as applying:
                await kubernetes.apply(config_map(api_namespace))
        for error, verb in ((listing.value, "list"), (applying.value, "patch")):
            print(error)
            assert error.status == 403
            assert f'system:serviceaccount:{api_namespace}:nobody" cannot {verb} resource "configmaps"' in str(error)
            assert "RBAC: bind a Role" in str(error)
        assert f"apply ConfigMap {api_namespace}/{NAME}" in str(applying.value)

    asyncio.run(story())
    admin["users"][0]["user"]["token"] = "no such token"
    (tmp_path / "nobody").write_text(json.dumps(admin))

    async def unknown() -> None:
        async with await Kubernetes.connect() as kubernetes:
            with pytest.raises(Forbidden, match="credentials have expired"):
                await kubernetes.list(CONFIG_MAP, api_namespace)

    asyncio.run(unknown())


def test_a_quota_is_not_called_rbac(asked: Asked, api: Stage, api_namespace: str) -> None:
    api.kubectl.run("create", "quota", "none", "--hard=configmaps=0", "--namespace", api_namespace)
    counted = "--for=jsonpath={.status.hard.configmaps}=0"
    api.kubectl.run("wait", counted, "quota/none", "--namespace", api_namespace, "--timeout=30s")

    async def story(kubernetes: Kubernetes) -> None:
        with pytest.raises(Forbidden, match="exceeded quota") as refused:
            await kubernetes.apply(config_map(api_namespace))
        assert "RBAC" not in str(refused.value)

    asked(story)


def test_a_namespace_that_is_being_deleted_is_told_as_such(asked: Asked, api: Stage) -> None:
    name = f"test-{secrets.token_hex(4)}"
    held = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "held", "namespace": name, "finalizers": ["kvfence.io/test"]},
    }
    api.kubectl.run("create", "namespace", name)
    api.kubectl.apply([held])
    api.kubectl.run("delete", "namespace", name, "--wait=false")

    async def story(kubernetes: Kubernetes) -> None:
        with pytest.raises(NamespaceTerminating, match=f"cannot apply ConfigMap {name}/{NAME}: its namespace is being"):
            await kubernetes.apply(config_map(name))

    try:
        asked(story)
    finally:
        api.kubectl.run(
            "patch", "configmap", "held", "-n", name, "--type=merge", "-p", '{"metadata":{"finalizers":[]}}'
        )


def test_an_api_server_that_is_not_there_is_unreachable(
    api: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin = json.loads(api.kubectl.run("config", "view", "--raw", "--flatten", "--output", "json"))
    admin["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    (tmp_path / "nowhere").write_text(json.dumps(admin))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "nowhere"))

    async def story() -> None:
        async with await Kubernetes.connect() as kubernetes:
            with pytest.raises(Unreachable, match="cannot list configmaps in namespace x: no answer from the API"):
                await kubernetes.list(CONFIG_MAP, "x")

    asyncio.run(story())


@pytest.mark.parametrize("warning", [True, False])
def test_an_event_is_seen_with_kubectl_beside_its_object(
    warning: bool, asked: Asked, api: Stage, api_namespace: str
) -> None:
    async def story(kubernetes: Kubernetes) -> None:
        live = await kubernetes.apply(config_map(api_namespace))
        now = datetime.now(UTC)
        told = event(live, "ContextFits", "ü" * 2000, warning=warning, now=now)
        assert await kubernetes.create(told) is not None
        assert await kubernetes.create(told) is None
        later = event(live, "ContextFits", "advertises 928 tokens", warning=warning, now=datetime.now(UTC))
        assert await kubernetes.create(later) is not None
        assert len(await kubernetes.list(EVENT, api_namespace)) == 2

    asked(story)
    table = api.kubectl.run("get", "events", "--namespace", api_namespace)
    kind = "Warning" if warning else "Normal"
    assert any(
        kind in line and "ContextFits" in line and "advertises 928 tokens" in line for line in table.splitlines()
    )
    described = api.kubectl.run("describe", "configmap", NAME, "--namespace", api_namespace)
    assert "advertises 928 tokens" in described
