"""The router's pod and what it reads. What nginx makes of its configuration is seen in e2e/front, with a real one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kvfence.render import router_workload
from kvfence.render.front import conf_digest, models_json, nginx_conf
from kvfence.render.identity import Manifest
from kvfence.render.router_config import Worker, config_digest, config_map, workers_json
from tests.unit.render.pools import INSTALLATION, POOL, REVISION, spec

PREFILL = Worker("chat-p-1", "http://10.0.0.1:30000", True, 8998)
DECODE = Worker("chat-d-1", "http://10.0.0.2:30000", False, None)


def pod(**changes: Any) -> Manifest:
    spec_of_pod = router_workload.deployment(POOL, spec(**changes), REVISION, INSTALLATION)["spec"]["template"]["spec"]
    assert isinstance(spec_of_pod, dict)
    return spec_of_pod


def container(name: str, **changes: Any) -> Manifest:
    return next(one for one in pod(**changes)["containers"] if one["name"] == name)


def smg_flag(name: str) -> str:
    args = container("router")["args"]
    return str(args[args.index(name) + 1])


def test_the_list_of_workers_has_the_fields_that_smg_knows_and_no_more() -> None:
    assert json.loads(workers_json([PREFILL, DECODE])) == {
        "version": 1,
        "workers": [
            {"id": "chat-d-1", "url": "http://10.0.0.2:30000", "worker_type": "decode"},
            {
                "id": "chat-p-1",
                "url": "http://10.0.0.1:30000",
                "worker_type": "prefill",
                "bootstrap_port": 8998,
            },
        ],
    }


def test_the_same_workers_are_the_same_file_in_whatever_order_they_were_seen() -> None:
    assert workers_json([PREFILL, DECODE]) == workers_json(iter([DECODE, PREFILL]))


def test_a_revision_without_workers_has_an_empty_list() -> None:
    assert json.loads(workers_json([])) == {"version": 1, "workers": []}


@pytest.mark.parametrize("other", [Worker("chat-p-1", "http://10.0.0.9:30000", False, None), PREFILL])
def test_a_list_that_smg_would_refuse_as_a_whole_is_not_written(other: Worker) -> None:
    with pytest.raises(ValueError, match="same id or URL"):
        workers_json([PREFILL, other])


def test_two_workers_at_one_address_are_not_written() -> None:
    with pytest.raises(ValueError, match="same id or URL"):
        workers_json([PREFILL, Worker("other", PREFILL.url, False, None)])


@pytest.mark.parametrize(("prefill", "port"), [(True, None), (False, 8998)])
def test_a_bootstrap_port_is_for_prefill_and_for_nobody_else(prefill: bool, port: int | None) -> None:
    with pytest.raises(ValueError, match="bootstrap port"):
        Worker("a", "http://10.0.0.1:30000", prefill, port)


def test_the_list_of_models_has_the_cap_once_there_is_one() -> None:
    assert json.loads(models_json("org/tiny", 984)) == {
        "object": "list",
        "data": [{"id": "org/tiny", "object": "model", "created": 0, "owned_by": "kvfence", "max_model_len": 984}],
    }
    assert json.loads(models_json("org/tiny", None)) == {"object": "list", "data": []}


def test_a_change_of_any_file_is_a_change_of_the_digest() -> None:
    def digest(*workers: Worker, models: str = "a", revision: str = REVISION) -> str:
        return config_digest(config_map(POOL, revision, workers, models))

    assert digest(PREFILL, DECODE) == digest(DECODE, PREFILL)
    assert digest(PREFILL, revision="0000000000") == digest(PREFILL)  # only what is read counts
    assert len({digest(), digest(PREFILL), digest(PREFILL, models="b")}) == 3


def test_both_containers_read_the_whole_folder_so_that_changes_arrive() -> None:
    assert set(config_map(POOL, REVISION, [], "")["data"]) == {"nginx.conf", "workers.json", "models.json"}
    for name in ("front", "router"):
        (mount,) = [mount for mount in container(name)["volumeMounts"] if mount["name"] == "config"]
        assert mount == {"name": "config", "mountPath": "/etc/kvfence", "readOnly": True}
    assert smg_flag("--discovery-file") == "/etc/kvfence/workers.json"
    assert container("front")["command"][-1] == "/etc/kvfence/nginx.conf"
    assert "alias /etc/kvfence/models.json;" in nginx_conf()


def test_the_router_itself_listens_on_loopback_alone() -> None:
    assert smg_flag("--host") == smg_flag("--prometheus-host") == "127.0.0.1"
    assert f"http://127.0.0.1:{smg_flag('--port')}/v1/completions;" in nginx_conf()
    assert "ports" not in container("router")
    assert [one["containerPort"] for one in container("front")["ports"]] == [8080, 8082]


@pytest.mark.parametrize(
    "flag",
    [
        "--disable-retries",
        "--disable-circuit-breaker",
        "--no-remove-unhealthy-workers",
        "--disable-tokenizer-autoload",
        "--pd-disaggregation",
    ],
)
def test_a_prompt_is_not_replayed_kept_or_routed_away(flag: str) -> None:
    assert flag in container("router")["args"]
    assert smg_flag("--history-backend") == "none"


@pytest.mark.parametrize("name", ["front", "router"])
def test_a_container_of_ours_can_do_nothing_but_its_work(name: str) -> None:
    assert container(name)["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": 65532,
        "runAsGroup": 65532,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod()["automountServiceAccountToken"] is False
    assert pod()["securityContext"] == {"seccompProfile": {"type": "RuntimeDefault"}}


@pytest.mark.parametrize(("name", "path"), [("front", "/front"), ("router", "/readiness")])
def test_a_pod_is_ready_when_front_and_router_both_are(name: str, path: str) -> None:
    probe = container(name)["readinessProbe"]
    assert probe["httpGet"] == {"path": path, "port": 8082, "scheme": "HTTP"}
    assert probe["periodSeconds"] == 1


def test_a_changed_front_starts_new_pods_since_nginx_does_not_read_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def annotations() -> dict[str, str]:
        made = router_workload.deployment(POOL, spec(), REVISION, INSTALLATION)["spec"]["template"]["metadata"]
        return dict(made["annotations"])

    before = annotations()
    assert before == {"kvfence.io/front-config": conf_digest()}
    monkeypatch.setattr("kvfence.render.front.BODY_MIB", 65)
    assert annotations() != before


def test_a_pool_may_bring_its_own_router_image_and_its_number() -> None:
    assert container("router")["image"] == "registry.example/smg:1.13.0"
    assert container("router", router={"image": "registry.example/smg:other"})["image"] == "registry.example/smg:other"
    assert container("front", router={"image": "registry.example/smg:other"})["image"] == "registry.example/nginx:1"
    made = router_workload.deployment(POOL, spec(router={"replicas": 3}), REVISION, INSTALLATION)
    assert made["spec"]["replicas"] == 3


def test_a_router_that_leaves_has_the_time_that_it_takes() -> None:
    sleeps = [one["lifecycle"]["preStop"]["sleep"]["seconds"] for one in pod()["containers"]]
    assert len(set(sleeps)) == 1
    assert pod()["terminationGracePeriodSeconds"] > sleeps[0] + int(smg_flag("--shutdown-grace-period-secs"))


def test_the_front_waits_longer_than_the_router_so_that_the_routers_words_come_back() -> None:
    assert f"proxy_read_timeout {int(smg_flag('--request-timeout-secs')) + 60}s;" in nginx_conf()
    assert smg_flag("--max-payload-size") == str(64 * 2**20)
    assert "client_max_body_size 64m;" in nginx_conf()


def test_no_name_of_a_value_is_left_in_the_configuration() -> None:
    conf = nginx_conf()
    for name in ("FOLDER", "PORT", "SECONDS", "MIB", "NOWHERE", "METHOD;", "UNAVAILABLE", "LATE;", "OLD;", "LONG;"):
        assert name not in conf
    assert conf.count("{") == conf.count("}")
