"""A pod runs what a process on loopback runs, with what only a pod needs around it."""

from __future__ import annotations

import pytest

from e2e.engines import layers, pods
from e2e.engines.servers import Ports, Role, Server, launch

SERVERS = [Server(f"a-{role}", role, version) for role in Role for version in layers.IMAGES]


@pytest.mark.parametrize("server", SERVERS, ids=lambda server: f"{server.name} {server.version}")
def test_a_pod_has_the_command_and_the_settings_of_its_server(server: Server) -> None:
    (container,) = pods.pod(server, "inf")["spec"]["containers"]
    wanted = launch(server, layers.place(server.version, "$(POD_IP)"), Ports())
    settings = {each["name"]: each.get("value") for each in container["env"]}
    assert container["command"] == list(wanted.argv)
    assert settings == {"POD_IP": None} | wanted.env
    assert container["image"] == f"kvfence.io/stage/sglang:{server.version}"


def test_the_pod_s_address_stands_before_what_refers_to_it() -> None:
    names = [each["name"] for each in pods.pod(Server("a"), "inf")["spec"]["containers"][0]["env"]]
    assert names[0] == "POD_IP"
    assert "SGLANG_HOST_IP" in names


def test_a_pod_has_neither_a_token_nor_service_variables_and_is_never_pulled() -> None:
    spec = pods.pod(Server("a"), "inf")["spec"]
    assert spec["automountServiceAccountToken"] is False
    assert spec["enableServiceLinks"] is False
    assert spec["containers"][0]["imagePullPolicy"] == "IfNotPresent"


def test_a_pod_says_its_role_and_has_its_servers_name() -> None:
    made = pods.pod(Server("a", Role.DECODE), "inf")
    assert made["metadata"] == {"name": "a", "namespace": "inf", "labels": {pods.ROLE_LABEL: "decode"}}


def test_only_an_older_server_has_the_older_packages_first() -> None:
    paths = {
        version: launch(Server("a", version=version), layers.place(version, "x"), Ports()).env["PYTHONPATH"]
        for version in layers.IMAGES
    }
    assert paths == {"0.5.23": "/opt/shim", "0.5.19": "/opt/shim:/opt/sglang-0.5.19"}


@pytest.mark.parametrize("role", list(Role))
def test_every_server_sleeps_when_it_is_idle(role: Role) -> None:
    argv = launch(Server("a", role), layers.place("0.5.23", "x"), Ports()).argv
    assert "--sleep-on-idle" in argv
    assert ("--disaggregation-mode" in argv) is (role is not Role.UNIFIED)
    assert ("--disaggregation-decode-retraction-backup" in argv) is (role is Role.DECODE)
