"""What the real API server refuses of an InferencePool, in which words, and what it accepts in the same place."""

from __future__ import annotations

import re
from typing import Any

import pytest

from e2e.api.inference_pools import Case, Refusal, changed, pool, refusals
from e2e.api.refused_values import ARGS, CASES, ENV, ROLE_ARGS
from e2e.cluster.stage import Stage
from kvfence.api.crd import inference_pool_crd
from kvfence.api.v1alpha1 import owned

NAMES = [f"case-{number}" for number in range(len(CASES))]


def judged(stage: Stage, objects: list[dict[str, Any]]) -> dict[str, list[Refusal]]:
    return refusals(stage.kubectl, objects, "default")


@pytest.fixture(scope="module")
def bad(pools_api: Stage) -> dict[str, list[Refusal]]:
    """Why the bad ones were refused, by name."""
    return judged(pools_api, [case.of(case.bad, name) for case, name in zip(CASES, NAMES, strict=True)])


@pytest.fixture(scope="module")
def twins(pools_api: Stage) -> dict[str, list[Refusal]]:
    """Why twins were refused; none should be."""
    return judged(pools_api, [case.of(case.good, name) for case, name in zip(CASES, NAMES, strict=True)])


@pytest.mark.parametrize("number", range(len(CASES)), ids=[case.title for case in CASES])
def test_it_is_refused_by_the_name_of_the_field_and_its_twin_is_not(
    bad: dict[str, list[Refusal]], twins: dict[str, list[Refusal]], number: int
) -> None:
    case = CASES[number]
    (refusal,) = bad[_name(case, case.bad, number)]
    assert refusal.field == case.field, refusal
    assert case.says in refusal.message
    assert _name(case, case.good, number) not in twins


def _name(case: Case, value: object, number: int) -> str:
    return str(value) if case.path == "metadata.name" else NAMES[number]


def every_flag(flags: tuple[str, ...]) -> list[str]:
    return [*flags, *(f"{flag}=1" for flag in flags)]


def refused_arguments(stage: Stage, path: str, arguments: list[str]) -> set[int]:
    """Return the places of the arguments that are refused."""
    found = judged(stage, [changed(pool(), path, arguments)]).get("pool", [])
    return {int(number) for one in found for number in re.findall(r"\[(\d+)\]$", one.field)}


@pytest.mark.parametrize("path", [ARGS, ROLE_ARGS])
@pytest.mark.parametrize("group", ["FROM_FIELDS", "OF_THE_POD", "MULTI_NODE", "AROUND_THE_DOOR"])
def test_each_owned_flag_is_refused_in_each_way_of_writing_it(pools_api: Stage, path: str, group: str) -> None:
    arguments = every_flag(getattr(owned, group))
    assert refused_arguments(pools_api, path, arguments) == set(range(len(arguments)))


def test_each_shared_flag_is_refused_of_a_role_and_accepted_of_the_engine(pools_api: Stage) -> None:
    arguments = every_flag(owned.SHARED)
    assert refused_arguments(pools_api, ROLE_ARGS, arguments) == set(range(len(arguments)))
    assert refused_arguments(pools_api, ARGS, arguments) == set()


def test_the_beginning_of_an_owned_flag_is_refused_since_sglang_takes_it_for_the_flag(pools_api: Stage) -> None:
    arguments = ["--disaggregation-m", "--disaggregation-mo=null", "--context-l", "--allow-a", "--conf=f", "--served"]
    assert refused_arguments(pools_api, ARGS, arguments) == set(range(len(arguments)))


def test_flags_that_look_like_owned_ones_are_accepted(pools_api: Stage) -> None:
    arguments = [
        *("--hostile", "--ports=1", "host", "-h", "--", "--=", "=--host", "x--host", "--disaggregation-ib-device"),
        *("--page-size", "16", "--max-total-tokens", "1024", "--tool-call-parser=x", "--model-loader-extra-config={}"),
    ]
    assert refused_arguments(pools_api, ARGS, arguments) == set()


def test_each_owned_variable_is_refused(pools_api: Stage) -> None:
    names = [*owned.OWNED_VARIABLES, *(f"{prefix}A" for prefix in owned.OWNED_PREFIXES), *owned.TOKEN_VARIABLES]
    names += ["PYTHONPATH", "LD_PRELOAD"]
    env = [{"name": name, "value": "1"} for name in names]
    assert refused_arguments_of_env(pools_api, env) == set(range(len(env)))
    fine = [
        {"name": name, "value": "1"} for name in ("SGLANG_USE_CPU_ENGINE", "MC_FORCE_TCP", "XLD_A", "HF_HUB_OFFLINE")
    ]
    assert refused_arguments_of_env(pools_api, fine) == set()


def refused_arguments_of_env(stage: Stage, env: list[dict[str, str]]) -> set[int]:
    found = judged(stage, [changed(pool(), ENV, env)]).get("pool", [])
    return {int(number) for one in found for number in re.findall(r"env\[(\d+)\]\.name$", one.field)}


def test_every_rule_of_the_crd_was_seen_to_refuse(bad: dict[str, list[Refusal]]) -> None:
    said = {(re.sub(r"\[\d+\]", "[]", one.field), one.message) for causes in bad.values() for one in causes}
    unseen = [
        (path, rule["message"])
        for path, rule in rules(inference_pool_crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"], "")
        if not any(field == path and message.endswith(rule["message"]) for field, message in said)
    ]
    assert unseen == []


def rules(schema: dict[str, Any], path: str) -> list[tuple[str, dict[str, str]]]:
    """Every rule with the field that its refusal names."""
    found = [(path + rule.get("fieldPath", "") or "<nil>", rule) for rule in schema.get("x-kubernetes-validations", [])]
    for name, one in schema.get("properties", {}).items():
        found += rules(one, f"{path}.{name}" if path else name)
    return found + (rules(schema["items"], f"{path}[]") if "items" in schema else [])
