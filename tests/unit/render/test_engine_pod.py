"""The pod of an engine: what is ours in it stays ours, and what a user adds is where it belongs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kvfence.api.v1alpha1 import owned
from kvfence.api.v1alpha1.pool import TAKEN_PORTS, PoolSpec
from kvfence.render import engine_command
from kvfence.render.engine_pod import pod_template
from kvfence.render.identity import Manifest
from kvfence_engine import launcher
from tests.unit.render.pools import COMMIT, INJECTION_IMAGE, POOL, REVISION, UID, role, spec

GOLDEN = Path(__file__).parent / "golden"
RDMA = {
    "metadata": {
        "labels": {"team": "a", "app.kubernetes.io/managed-by": "somebody"},
        "annotations": {"scrape": "no"},
    },
    "spec": {
        "nodeSelector": {"gpu": "h100"},
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []}},
        "priorityClassName": "high",
        "runtimeClassName": "nvidia",
        "schedulerName": "other",
        "imagePullSecrets": [{"name": "registry"}],
        "volumes": [{"name": "scratch", "emptyDir": {"sizeLimit": "1Gi"}}],
        "containers": [
            {
                "name": "engine",
                "resources": {"limits": {"nvidia.com/gpu": 2, "rdma/ib": "1"}, "requests": {"memory": "100Gi"}},
                "volumeMounts": [{"name": "scratch", "mountPath": "/scratch", "subPath": "a", "readOnly": True}],
                "securityContext": {"capabilities": {"add": ["IPC_LOCK"]}},
            }
        ],
    },
}
FULL = spec(
    model={"uri": "hf://org/model", "commit": COMMIT, "tokenSecretRef": {"name": "hf", "key": "token"}},
    engine__sglang={"args": ["--page-size", "16"], "env": [{"name": "MC_FORCE_TCP", "value": "1"}]},
    roles__0={"parallelism": {"tensor": 2, "data": 4}, "args": ["--chunked-prefill-size", "8192"], "template": RDMA},
    disaggregation={"bootstrapPort": 9000, "transferTimeoutSeconds": 60},
)


def template(given: PoolSpec, name: str = "prefill") -> Manifest:
    return pod_template(POOL, given, role(given, name), REVISION, INJECTION_IMAGE)


def engine(made: Manifest) -> Manifest:
    (container,) = made["spec"]["containers"]
    assert isinstance(container, dict)
    return container


def flags(made: Manifest) -> list[str]:
    args = engine(made)["args"]
    return list(args[args.index("--") + 1 :])


@pytest.mark.parametrize(("file", "given", "name"), [("prefill", FULL, "prefill"), ("decode", spec(), "decode")])
def test_a_pod_is_as_the_golden_file_has_it(file: str, given: PoolSpec, name: str) -> None:
    # A change here reaches the engines of new revisions only; those that run keep what they were made with.
    assert template(given, name) == yaml.safe_load((GOLDEN / f"{file}.yaml").read_text())


def test_a_users_flags_come_before_ours_which_therefore_win() -> None:
    own = engine_command.own_flags(FULL, role(FULL))
    assert flags(template(FULL)) == ["--page-size", "16", "--chunked-prefill-size", "8192", *own]


@pytest.mark.parametrize("given", [spec(), FULL], ids=["smallest", "full"])
def test_every_flag_and_variable_of_ours_is_refused_from_a_user(given: PoolSpec) -> None:
    ours = {word for word in engine_command.own_flags(given, role(given)) if word.startswith("--")}
    assert ours <= {*owned.FROM_FIELDS, *owned.OF_THE_POD}
    users = {variable.name for variable in given.engine.sglang.env}
    names = {variable["name"] for variable in engine_command.environment(given)} - users
    refused = (*owned.OWNED_VARIABLES, *owned.TOKEN_VARIABLES)
    assert all(name in refused or name.startswith(owned.OWNED_PREFIXES) for name in names)


def test_the_launcher_understands_its_arguments() -> None:
    options = launcher._options(engine(template(FULL))["args"])
    assert (options.pool, options.pod, str(options.keys)) == (UID, "$(KVFENCE_POD_UID)", "/kvfence-keys")
    assert options.drain_seconds == 60 + 30 + 30
    assert options.port == engine_command.DOOR_PORT
    assert options.arguments == flags(template(FULL))


@pytest.mark.parametrize("mode", ["Enforce", "Observe"])
@pytest.mark.parametrize("name", ["prefill", "decode"])
def test_the_checksum_is_on_for_both_roles_whatever_is_demanded(mode: str, name: str) -> None:
    assert "--disaggregation-enable-kv-checksum" in flags(template(spec(integrity={"kvChecksum": mode}), name))


@pytest.mark.parametrize(
    ("model", "path", "claim", "more"),
    [
        ({"uri": "file:///models/tiny"}, "/models/tiny", None, []),
        ({"uri": "pvc://claim"}, "/kvfence-model", "claim", []),
        ({"uri": "pvc://claim/a/b"}, "/kvfence-model/a/b", "claim", []),
        ({"uri": "hf://org/name", "commit": COMMIT}, "org/name", None, ["--revision", COMMIT]),
    ],
)
def test_a_model_is_where_its_uri_says(model: Any, path: str, claim: str | None, more: list[str]) -> None:
    made = template(spec(model=model))
    assert flags(made)[:2] == ["--model-path", path]
    assert flags(made)[2 : 2 + len(more)] == more
    claims = [
        volume["persistentVolumeClaim"] for volume in made["spec"]["volumes"] if "persistentVolumeClaim" in volume
    ]
    assert claims == ([{"claimName": claim, "readOnly": True}] if claim else [])
    mounts = [mount for mount in engine(made)["volumeMounts"] if mount["name"] == "kvfence-model"]
    assert mounts == ([{"name": "kvfence-model", "mountPath": "/kvfence-model", "readOnly": True}] if claim else [])


def test_a_token_comes_from_its_secret_and_is_nowhere_in_the_object() -> None:
    (token,) = [variable for variable in engine(template(FULL))["env"] if variable["name"] == "HF_TOKEN"]
    assert token == {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hf", "key": "token"}}}
    assert "HF_TOKEN" not in str(template(spec()))


def test_variables_stand_behind_those_that_they_are_made_of() -> None:
    names = [variable["name"] for variable in engine(template(FULL))["env"]]
    assert names.index("KVFENCE_POD_IP") < names.index("SGLANG_HOST_IP") < names.index("MC_FORCE_TCP")
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(("seconds", "failures"), [(60, 30), (61, 31), (3600, 1800)])
def test_an_engine_has_the_time_to_start_that_its_role_gives_it(seconds: int, failures: int) -> None:
    probe = engine(template(spec(roles__0={"startupTimeoutSeconds": seconds})))["startupProbe"]
    assert (probe["periodSeconds"], probe["failureThreshold"]) == (2, failures)
    assert probe["httpGet"] == {"path": "/started", "port": 8901, "scheme": "HTTP"}


def test_the_probes_ask_the_door_and_none_can_kill_a_closed_engine() -> None:
    made = engine(template(spec()))
    assert made["readinessProbe"]["httpGet"]["path"] == "/ready"
    assert made["readinessProbe"]["failureThreshold"] == 1
    assert "livenessProbe" not in made


@pytest.mark.parametrize("seconds", [1, 300, 3600])
def test_a_pod_outlives_its_launchers_patience_and_that_a_transfer(seconds: int) -> None:
    given = spec(disaggregation={"transferTimeoutSeconds": seconds})
    drain = engine_command.drain_seconds(given.disaggregation)
    assert drain >= seconds + 30  # pages of a transfer that failed are kept so long
    assert template(given)["spec"]["terminationGracePeriodSeconds"] == drain + 30


def test_what_a_template_adds_is_in_its_place_and_takes_nothing_away() -> None:
    made = template(FULL)
    bare = template(spec())
    assert made["metadata"]["labels"] == {**bare["metadata"]["labels"], "team": "a"}
    assert made["spec"]["nodeSelector"] == {"gpu": "h100"}
    assert made["spec"]["volumes"][-1] == {"name": "scratch", "emptyDir": {"sizeLimit": "1Gi"}}
    container = engine(made)
    assert container["resources"] == RDMA["spec"]["containers"][0]["resources"]  # type: ignore[index]
    assert container["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"add": ["IPC_LOCK"]}}
    kept = engine(bare)["volumeMounts"]
    assert container["volumeMounts"][: len(kept)] == kept
    assert set(made["spec"]) > set(bare["spec"])


def test_an_empty_template_is_as_none() -> None:
    empty = {"metadata": {}, "spec": {"containers": [{"name": "engine"}]}}
    assert template(spec(roles__0={"template": empty})) == template(spec())


def test_a_pod_has_no_token_and_no_foreign_variables() -> None:
    pod = template(spec())["spec"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["enableServiceLinks"] is False
    assert pod["securityContext"] == {"seccompProfile": {"type": "RuntimeDefault"}}


def test_what_is_injected_cannot_be_written_by_the_engine() -> None:
    made = template(spec())
    (injection,) = made["spec"]["initContainers"]
    assert injection["image"] == "registry.example/kvfence-engine:0.1.0"
    assert injection["command"] == ["cp", "-R", "/kvfence-engine/.", "/kvfence/"]
    (mount,) = [mount for mount in engine(made)["volumeMounts"] if mount["mountPath"] == "/kvfence"]
    assert mount["readOnly"] is True


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"roles__0": {"type": "Unified"}}, "Unified is not supported"),
        ({"disaggregation": {"transferBackend": "NIXL"}}, "NIXL is not supported"),
        ({"model": {"uri": "s3://bucket"}}, "begin with hf://"),
    ],
)
def test_what_the_crd_refuses_is_refused_in_words_when_it_came_around_it(change: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        template(spec(**change))


def test_ports_are_those_that_the_api_keeps_free() -> None:
    assert sorted(TAKEN_PORTS) == [engine_command.DOOR_PORT, engine_command.HTTP_PORT]
    assert launcher.PORT == engine_command.DOOR_PORT


@pytest.mark.parametrize("name", ["pageTagging", "pageScrubbing", "coverage"])
def test_a_defence_is_switched_on_as_the_pool_says(name: str) -> None:
    flag = {"pageTagging": "--page-tagging", "pageScrubbing": "--page-scrubbing", "coverage": "--coverage"}[name]
    for mode in ("Enforce", "Observe", "Disabled"):
        arguments = engine(template(spec(integrity={name: mode})))["args"]
        own = arguments[: arguments.index("--")]
        assert own[own.index(flag) + 1] == mode
        assert own.count("Enforce") == (3 if mode == "Enforce" else 2)


def test_a_kvfence_engine_from_before_the_defences_gets_no_flag_of_theirs() -> None:
    made = pod_template(POOL, spec(), role(spec()), REVISION, INJECTION_IMAGE, defended=False)
    assert not {"--page-tagging", "--page-scrubbing", "--coverage"} & set(engine(made)["args"])
