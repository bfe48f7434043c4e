"""A pool whose context does not fit is kept out and says why; what it says is enough to have it let in as it runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from e2e.cluster.waiting import wait_for
from e2e.conftest import Aloud
from e2e.pools.asking import question
from e2e.pools.installation import Installation
from e2e.pools.pool import KIND, Pool, example
from e2e.progress import step

FITS = 1003
"""By hand: 98 % of the 1,024 tokens of prefill's KV pool."""
LONGEST = FITS - 7
"""SGLang takes prompts shorter than the context less 1 less 5."""


@pytest.fixture(scope="module")
def required(operator: Installation, pools_namespace: str, aloud: Aloud) -> Iterator[Pool]:
    """A pool that is to have all of the 4,096 tokens, of which prefill holds a quarter; as far as it comes."""
    manifest = example("required", {"contextLength": {"policy": "RequireFit"}})
    pool = Pool.apply(operator.stage, pools_namespace, manifest)
    with aloud(), step(f"bringing up pool {pool.name}", "30 s on idle cores"):
        pool.wait_for_condition("ContextFits", "False")
    yield pool
    pool.delete()


def boots(pool: Pool) -> dict[str, Any]:
    """What tells whether an engine is still the one that it was."""
    pods = pool.engines()
    restarts = [one["restartCount"] for pod in pods for one in pod["status"]["containerStatuses"]]
    return {"restarts": restarts, "nonces": {pod["metadata"]["uid"]: pool.door(pod)["nonces"] for pod in pods}}


def events(pool: Pool, reason: str) -> list[str]:
    found = pool.stage.kubectl.get("events.events.k8s.io", "--namespace", pool.namespace)["items"]
    mine = [
        one for one in found if (one["regarding"]["kind"], one["regarding"]["name"]) == ("InferencePool", pool.name)
    ]
    return [one["note"] for one in mine if (one["type"], one["reason"]) == ("Warning", reason)]


def assert_that_nobody_is_let_in(pool: Pool) -> None:
    slices = pool.stage.kubectl.get("endpointslices", f"--selector=kubernetes.io/service-name={pool.name}", "-A")
    mine = [one for one in slices["items"] if one["metadata"]["namespace"] == pool.namespace]
    assert [one for each in mine for one in each.get("endpoints") or ()] == []
    assert {pool.door(pod)["door"] for pod in pool.engines()} == {"closed"}
    assert pool.status()["contextLength"]["advertisedTokens"] == 0


def change(pool: Pool, **context: Any) -> None:
    patch = json.dumps({"spec": {"contextLength": context}})
    pool.stage.kubectl.run("patch", KIND, pool.name, "--type=merge", f"--patch={patch}", "--namespace", pool.namespace)


def test_a_pool_is_let_in_with_too_little_context_or_started_anew_for_a_spec_that_fits(required: Pool) -> None:
    (prefill,) = required.engines("prefill")
    size = (
        f"pod {prefill['metadata']['name']} (role prefill) has a KV pool of 1,024 tokens, of which 2 % stay free as "
        "headroom"
    )
    memory = "give its engines more memory for KV (--mem-fraction-static, --max-total-tokens, more parallelism)"
    first = boots(required)
    assert first["restarts"] == [0, 0]

    found = required.wait_for_condition("ContextFits", "False", "RequestedContextDoesNotFit")
    assert found["message"] == (
        f"{FITS:,} tokens fit, and contextLength.policy RequireFit asks for 4,096: {size}. Nothing is admitted. To go "
        f"on, {memory}, or lower contextLength.requestedTokens to {FITS:,}, or set contextLength.policy to CapToFit."
    )
    assert found["message"] in events(required, found["reason"])
    required.wait_for_condition("Stalled", "True", found["reason"])
    assert_that_nobody_is_let_in(required)

    change(required, policy="CapToFit", minimumTokens=2048)
    found = required.wait_for_condition("ContextFits", "False", "MinimumContextDoesNotFit")
    assert found["message"] == (
        f"{FITS:,} tokens fit, and contextLength.minimumTokens is 2,048: {size}. Nothing is admitted. To go on, "
        f"{memory}, or lower contextLength.minimumTokens to {FITS:,}."
    )
    assert found["message"] in events(required, found["reason"])
    assert_that_nobody_is_let_in(required)

    change(required, minimumTokens=FITS)
    required.wait_for_condition("TrafficAdmitted")
    assert required.status()["contextLength"]["advertisedTokens"] == FITS
    assert boots(required) == first, "what was too small for the spec was not started anew for another one"
    wait_for("the Service", lambda: required.service().ask("/v1/models").status == 200, 30.0)
    said = required.service().ask("/v1/completions", question(LONGEST))
    assert (said.status, said.json["usage"]["prompt_tokens"]) == (200, LONGEST)
    assert required.service().ask("/v1/completions", question(LONGEST + 1)).status == 400
