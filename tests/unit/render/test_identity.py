"""Names that fit, labels that say whose a thing is, and selectors that never take another pool's pods."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from kvfence.render import engine_workload, identity, router_workload
from kvfence.render.controller_revision import Frozen, controller_revision
from kvfence.render.engine_pod import pod_template
from kvfence.render.front import models_json
from kvfence.render.identity import Component, Manifest, PoolIdentity
from kvfence.render.keys import keys_config_map
from kvfence.render.network_policy import NAMESPACE_LABEL, network_policies
from kvfence.render.router_config import config_map
from kvfence.render.service import service
from kvfence.render.service_account import service_account
from tests.unit.render.pools import (
    INJECTION_IMAGE,
    INSTALLATION,
    LONGEST,
    LONGEST_ROLE,
    POOL,
    REVISION,
    UID,
    role,
    spec,
    walk,
)

LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


def objects(pool: PoolIdentity = POOL, role_name: str = "prefill", uid: str = UID) -> list[Manifest]:
    """All objects of a pool."""
    pool = PoolIdentity(pool.name, pool.namespace, uid)
    given = spec(roles__0={"name": role_name})
    template = pod_template(pool, given, role(given, role_name), REVISION, INJECTION_IMAGE)
    return [
        engine_workload.deployment(pool, role_name, REVISION, template, 1),
        router_workload.deployment(pool, given, REVISION, INSTALLATION),
        controller_revision(pool, REVISION, 1, Frozen("0.1.0", 4096, {role_name: template})),
        config_map(pool, REVISION, [], models_json("tiny", None)),
        keys_config_map(pool, {"current": b"k" * 32}),
        service(pool, REVISION),
        service(pool, None),
        service_account(pool),
        *network_policies(pool, given, INSTALLATION),
    ]


def selectors(made: Manifest) -> list[Manifest]:
    """What an object chooses pods of the pool by."""
    found = [part["matchLabels"] for part in walk(made) if "matchLabels" in part and is_of_a_pool(part["matchLabels"])]
    return found + ([made["spec"]["selector"]] if made["kind"] == "Service" else [])


def is_of_a_pool(chosen: Manifest) -> bool:
    return NAMESPACE_LABEL not in chosen and chosen != dict(INSTALLATION.operator_labels)


def test_no_name_is_too_long_for_the_longest_pool_and_role() -> None:
    made = objects(LONGEST, LONGEST_ROLE)
    names = [one["metadata"]["name"] for one in made]
    assert max(len(name) for name in names) == 63
    assert all(re.fullmatch(r"[a-z]([a-z0-9-]*[a-z0-9])?", name) for name in names)


def test_every_label_is_one_that_kubernetes_takes() -> None:
    for one in objects(LONGEST, LONGEST_ROLE):
        found = [part["labels"] for part in walk(one) if "labels" in part]
        assert found
        assert all(LABEL.fullmatch(value) for labels in found for value in labels.values())


def test_every_object_belongs_to_its_pool_and_goes_with_it() -> None:
    for one in objects():
        assert one["metadata"]["namespace"] == "team-a"
        assert one["metadata"]["ownerReferences"] == [
            {
                "apiVersion": "kvfence.io/v1alpha1",
                "kind": "InferencePool",
                "name": "chat",
                "uid": UID,
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ]
        labels = one["metadata"]["labels"]
        assert labels["app.kubernetes.io/managed-by"] == "kvfence"
        assert labels["app.kubernetes.io/instance"] == labels["kvfence.io/pool"] == "chat"
        assert labels["kvfence.io/pool-uid"] == UID
        assert "finalizers" not in one["metadata"]


def test_every_selector_has_the_pools_uid() -> None:
    found = [chosen for one in objects() for chosen in selectors(one)]
    assert len(found) >= 10
    assert all(chosen["kvfence.io/pool-uid"] == UID for chosen in found)


def test_a_pool_that_was_made_again_reaches_no_pod_of_the_one_before() -> None:
    old, new = objects(uid="old"), objects(uid="new")
    pods = [part["labels"] for one in old for part in walk(one.get("spec", {})) if "labels" in part]
    assert pods
    for chosen in [chosen for one in new for chosen in selectors(one)]:
        assert not any(chosen.items() <= labels.items() for labels in pods)


@pytest.mark.parametrize("which", [0, 1])
def test_a_deployment_chooses_the_pods_that_it_makes(which: int) -> None:
    made = objects()[which]
    chosen = made["spec"]["selector"]["matchLabels"]
    assert chosen.items() <= made["spec"]["template"]["metadata"]["labels"].items()
    assert chosen["kvfence.io/revision"] == REVISION


def test_components_and_roles_are_told_apart() -> None:
    engine = identity.labels(POOL, Component.ENGINE, role="prefill", revision=REVISION)
    assert engine["app.kubernetes.io/name"] == "kvfence-engine"
    assert engine["kvfence.io/component"] == "engine"
    assert engine["kvfence.io/role"] == "prefill"
    assert engine["kvfence.io/revision"] == REVISION
    assert identity.labels(POOL, Component.ROUTER)["app.kubernetes.io/name"] == "kvfence-router"
    assert "kvfence.io/component" not in identity.labels(POOL, None)


@pytest.mark.parametrize(
    ("made", "name"),
    [
        (lambda: identity.workload_name(POOL, "decode", REVISION), "chat-decode-abcdefghij"),
        (lambda: identity.router_name(POOL, REVISION), "chat-router-abcdefghij"),
        (lambda: identity.router_config_name(POOL, REVISION), "chat-router-abcdefghij"),
        (lambda: identity.revision_name(POOL, REVISION), "chat-abcdefghij"),
        (lambda: identity.keys_name(POOL), "chat-kvfence-keys"),
        (lambda: identity.service_name(POOL), "chat"),
        (lambda: identity.service_account_name(POOL), "chat-kvfence"),
        (lambda: identity.engine_policy_name(POOL), "chat-kvfence-engines"),
        (lambda: identity.router_policy_name(POOL), "chat-kvfence-router"),
    ],
)
def test_names_are_what_people_and_programs_know_them_as(made: Callable[[], str], name: str) -> None:
    assert made() == name
