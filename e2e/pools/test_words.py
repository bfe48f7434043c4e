"""What keeps a pool from coming up is said in words that a person can act on, soon, and without a hot loop."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from e2e.conftest import Aloud, Measured
from e2e.engines import images as engine_images
from e2e.engines.layers import IMAGES
from e2e.pools import telling
from e2e.pools.installation import Installation
from e2e.pools.pool import KIND, Pool, example
from e2e.pools.telling import Told, Wrong
from e2e.progress import step

TOLD_SECONDS = 30.0
ALL_SECONDS = 300.0
"""An engine counts as failed when it has ended twice; between its ends are waits of 10 s, and of 20 s."""

WINDOW_SECONDS = 20.0
LOOKS_A_SECOND = 0.5
"""At one pool, on average. Each event of its pods is one, and so is each resync."""

NO_IMAGE = "kvfence.io/stage/nothing:1"
NO_MODEL = "/models/nothing"
OLD = "0.5.19"
NOWHERE = {"nodeSelector": {"example.invalid/nowhere": "yes"}}
"""In the pods of engines that are not to start."""

SMALL = {"containers": {"engine": {"resources": {"requests": {"cpu": "1m", "memory": "1Mi"}}}}}
"""So many pools at once ask for more than a small machine has; what they use is far less."""


def pool_of(name: str, pods: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    role = {"template": {"spec": SMALL | (pods or {})}}
    return example(name, {"roles": {"prefill": role, "decode": role}} | changes)


def sglang(**fields: Any) -> dict[str, Any]:
    return {"sglang": fields}


def wrong_pools() -> dict[str, Wrong]:
    return {
        "a model path that is not there": Wrong(
            pool_of("no-model", model={"uri": f"file://{NO_MODEL}"}),
            "RolesReady",
            "EngineFailed",
            f"there is no model at {NO_MODEL} in this container: correct model.uri, or mount what it names",
        ),
        "an image that is not there": Wrong(
            pool_of("no-image", engine=sglang(image=NO_IMAGE)),
            "RolesReady",
            "ImageNotPulled",
            f"cannot get image {NO_IMAGE} .*Correct the image, or give the pool a pull secret",
        ),
        "an image without SGLang": Wrong(
            pool_of("no-sglang", engine=sglang(image=engine_images.WITHOUT_SGLANG)),
            "RolesReady",
            "EngineFailed",
            "there is no SGLang in this image: .* Use an image that has sglang as a Python package for python3",
        ),
        "an old SGLang that runs": Wrong(
            pool_of("old-sglang", engine=sglang(image=IMAGES[OLD], version=None)),
            "RolesReady",
            "EngineFailed",
            f"SGLang {OLD} is not one that this kvfence-engine was proven with: 0.5.23",
        ),
        "an old SGLang that is declared": Wrong(
            pool_of("old-declared", engine=sglang(image=IMAGES[OLD], version=OLD)),
            "EngineAllowed",
            "VersionTooOld",
            f"engine.sglang.version is {OLD}, and 0.5.23 is the oldest release that is admitted here. Use an image",
            known_by_pods=False,
        ),
        "a name that is taken": Wrong(
            pool_of("taken", NOWHERE),
            "Ready",
            "NameTaken",
            "Not this pool's, and in the way: Service taken. .*else rename the pool, or remove the object",
            known_by_pods=False,
        ),
    }


WRONG = wrong_pools()


def users_service(namespace: str) -> dict[str, Any]:
    ports = [{"port": 80, "protocol": "TCP", "targetPort": 80}]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "taken", "namespace": namespace, "labels": {"app": "of-a-user"}},
        "spec": {"selector": {"app": "of-a-user"}, "ports": ports},
    }


def described(service: dict[str, Any]) -> list[Any]:
    meta = service["metadata"]
    return [meta["uid"], meta["resourceVersion"], meta["labels"], meta.get("ownerReferences"), service["spec"]]


@pytest.fixture(scope="module")
def taken(operator: Installation, pools_namespace: str) -> list[Any]:
    """A user's own Service, as it was before a pool of its name came."""
    operator.stage.kubectl.apply([users_service(pools_namespace)])
    return described(operator.stage.kubectl.get("service", "taken", "--namespace", pools_namespace))


@pytest.fixture(scope="module")
def told(operator: Installation, pools_namespace: str, taken: list[Any], aloud: Aloud) -> Iterator[dict[str, Told]]:
    """All of these pools at once, until what is wrong with each was said."""
    kubectl = operator.stage.kubectl
    with aloud(), step(f"bringing up {len(WRONG)} pools that cannot come up", "1 to 3 min"):
        engine_images.load_python(operator.stage.images)
        bundle = {"apiVersion": "v1", "kind": "List", "items": [one.manifest for one in WRONG.values()]}
        kubectl.run("apply", "--namespace", pools_namespace, "--filename", "-", given=json.dumps(bundle))
        found = telling.watch(kubectl, pools_namespace, WRONG, ALL_SECONDS)
    yield found
    names = [one.name for one in WRONG.values()]
    kubectl.try_run("delete", KIND, *names, "--namespace", pools_namespace, "--ignore-not-found")
    kubectl.try_run("delete", "service", "taken", "--namespace", pools_namespace, "--ignore-not-found")


@pytest.mark.parametrize("what", WRONG)
def test_nobody_is_told_in_time_what_is_wrong(told: dict[str, Told], what: str, measured: Measured) -> None:
    conditions = told[what].conditions
    assert told[what].is_complete, json.dumps(conditions, indent=1)
    measured(f"{what}: said in the status after the kubelet knew", told[what].seconds, TOLD_SECONDS)
    for kind in (WRONG[what].condition, "Stalled"):
        assert conditions[kind]["reason"] == WRONG[what].reason, conditions[kind]
    assert conditions["Ready"]["status"] == "False"
    assert conditions["Ready"]["message"] == conditions["Stalled"]["message"], "kubectl get shows the same"
    assert conditions["TrafficAdmitted"]["status"] == "False"


def test_a_pool_that_cannot_come_up_is_looked_at_over_and_over(
    told: dict[str, Told], operator: Installation, pools_namespace: str
) -> None:
    names = ('kvfence_reconciles_total{result="done"}', 'kvfence_reconciles_total{result="error"}')
    before = operator.metrics()
    time.sleep(WINDOW_SECONDS)
    after = operator.metrics()
    pools = len(operator.stage.kubectl.get(KIND, "--namespace", pools_namespace)["items"])
    looks = sum(after.get(name, 0.0) - before.get(name, 0.0) for name in names)
    print(f"{looks:.0f} looks at {pools} pools in {WINDOW_SECONDS:.0f} s")
    assert 0 < looks < LOOKS_A_SECOND * WINDOW_SECONDS * pools
    assert after.get(names[1], 0.0) == before.get(names[1], 0.0)
    writes = after["kvfence_api_writes_total"] - before["kvfence_api_writes_total"]
    assert writes < LOOKS_A_SECOND * WINDOW_SECONDS * pools


def test_an_engine_that_is_declared_too_old_is_started(
    told: dict[str, Told], operator: Installation, pools_namespace: str
) -> None:
    chosen = ("--selector=kvfence.io/pool=old-declared", "--namespace", pools_namespace)
    assert operator.stage.kubectl.get("serviceaccounts", *chosen)["items"] != [], "it was looked at"
    assert operator.stage.kubectl.get("pods,deployments,controllerrevisions", *chosen)["items"] == []


def test_a_service_of_a_user_is_taken_over(
    told: dict[str, Told], taken: list[Any], operator: Installation, pools_namespace: str
) -> None:
    kubectl, where = operator.stage.kubectl, ("--namespace", pools_namespace)
    assert described(kubectl.get("service", "taken", *where)) == taken
    pool = Pool(operator.stage, pools_namespace, "taken")
    kubectl.run("delete", "service", "taken", *where)
    pool.wait_for_condition("Stalled", "False", seconds=70.0)
    owners = kubectl.get("service", "taken", *where)["metadata"]["ownerReferences"]
    assert [owner["uid"] for owner in owners] == [pool.get()["metadata"]["uid"]]
