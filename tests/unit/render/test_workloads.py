"""The workloads of a revision, and what is frozen of it."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from kvfence.render import engine_workload
from kvfence.render.controller_revision import Frozen, controller_revision, frozen_of
from kvfence.render.engine_pod import pod_template
from kvfence.render.keys import keys_config_map
from kvfence.render.service import service
from kvfence.render.service_account import service_account
from kvfence.render.settings import Installation
from kvfence_engine.doorkeeper import _key
from tests.unit.render.pools import INJECTION_IMAGE, INSTALLATION, POOL, REVISION, role, spec

SPEC = spec()
TEMPLATE = pod_template(POOL, SPEC, role(SPEC), REVISION, INJECTION_IMAGE)
FROZEN = Frozen("0.1.0", 4096, {"prefill": TEMPLATE})


def test_a_frozen_template_is_applied_as_it_is() -> None:
    frozen = {"metadata": {"labels": {"from": "an older operator"}}, "spec": {"containers": [{"name": "engine"}]}}
    made = engine_workload.deployment(POOL, "prefill", REVISION, copy.deepcopy(frozen), 3)
    assert made["spec"]["template"] == frozen
    assert made["spec"]["replicas"] == 3


def test_engines_are_replaced_without_a_gpu_to_spare() -> None:
    made = engine_workload.deployment(POOL, "prefill", REVISION, TEMPLATE, 0)
    assert made["spec"]["strategy"] == {"type": "Recreate"}
    assert made["spec"]["replicas"] == 0


def test_what_is_frozen_comes_back_as_it_was_also_through_json() -> None:
    made = controller_revision(POOL, REVISION, 7, FROZEN)
    assert made["revision"] == 7
    assert frozen_of(made) == FROZEN
    assert frozen_of(json.loads(json.dumps(made))) == FROZEN


GOOD: dict[str, Any] = controller_revision(POOL, REVISION, 1, FROZEN)["data"]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (None, "is not what kvfence freezes"),
        ("text", "is not what kvfence freezes"),
        ([], "is not what kvfence freezes"),
        ({}, "is not what kvfence freezes"),
        ({"spec": {"template": {"$patch": "replace"}}}, "is not what kvfence freezes"),  # a StatefulSet's
        ({**GOOD, "format": 2}, "has format 2, and this version of kvfence reads 1 only"),
        ({**GOOD, "format": "1"}, "is not what kvfence freezes"),
        ({**GOOD, "pluginVersion": ""}, "is not what kvfence freezes"),
        ({**GOOD, "pluginVersion": 1}, "is not what kvfence freezes"),
        ({**GOOD, "startTokens": 0}, "is not what kvfence freezes"),
        ({**GOOD, "startTokens": True}, "is not what kvfence freezes"),
        ({**GOOD, "startTokens": "4096"}, "is not what kvfence freezes"),
        ({**GOOD, "templates": []}, "is not what kvfence freezes"),
        ({**GOOD, "templates": {}}, "has no pod template"),
        ({**GOOD, "templates": {"prefill": None}}, "without metadata or containers"),
        ({**GOOD, "templates": {"prefill": {"metadata": {}, "spec": {"containers": []}}}}, "without metadata or"),
    ],
)
def test_what_is_not_ours_is_not_taken_for_a_revision(data: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        frozen_of({"data": data})


def test_an_object_without_data_is_not_taken_for_a_revision() -> None:
    with pytest.raises(ValueError, match="is not what kvfence freezes"):
        frozen_of({})


def test_users_reach_the_routers_of_the_admitted_revision_alone() -> None:
    made = service(POOL, REVISION)
    assert made["spec"]["ports"] == [{"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP"}]
    assert made["spec"]["selector"] == {
        "kvfence.io/pool-uid": POOL.uid,
        "kvfence.io/component": "router",
        "kvfence.io/revision": REVISION,
    }


def test_before_the_first_admission_the_service_reaches_nothing() -> None:
    chosen = service(POOL, None)["spec"]["selector"]
    assert chosen["kvfence.io/revision"] == "none"
    assert chosen["kvfence.io/pool-uid"] == POOL.uid


def test_the_service_account_can_do_nothing() -> None:
    assert service_account(POOL)["automountServiceAccountToken"] is False


def test_engines_read_the_keys_as_they_are_written(tmp_path: Any) -> None:
    keys = {"current": bytes(range(32)), "next": b"\xff" * 32}
    made = keys_config_map(POOL, keys)
    assert list(made["data"]) == ["current", "next"]
    for name, text in made["data"].items():
        (tmp_path / name).write_text(text)
        assert _key(tmp_path / name) == keys[name]


@pytest.mark.parametrize(
    "keys", [{}, {"current": b"short"}, {"current": b"k" * 33}, {".hidden": b"k" * 32}, {"a/b": b"k" * 32}]
)
def test_keys_that_no_engine_would_read_are_refused(keys: dict[str, bytes]) -> None:
    with pytest.raises(ValueError, match="key"):
        keys_config_map(POOL, keys)


def test_an_operator_without_labels_is_refused_since_a_policy_would_let_in_its_whole_namespace() -> None:
    with pytest.raises(ValueError, match="labels"):
        Installation("e", "1", "r", "f", "ns", {})


def test_the_injection_image_is_tagged_with_the_version_of_the_plugin() -> None:
    assert INSTALLATION.injection_image() == "registry.example/kvfence-engine:0.1.0"
    assert INSTALLATION.injection_image("0.2.0") == "registry.example/kvfence-engine:0.2.0"
