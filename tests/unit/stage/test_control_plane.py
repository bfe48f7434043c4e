"""What the control plane is called with, each flag for the reason that its test names."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from cryptography.hazmat.primitives import serialization

from e2e.cluster import control_plane, pki
from e2e.cluster.layout import SERVICE_CIDR

if TYPE_CHECKING:
    from e2e.cluster.layout import Layout
    from e2e.cluster.programs import Program

FOLDER = Path("/cache/kubernetes")


def flags(program: Program) -> dict[str, str]:
    pairs = [flag.partition("=") for flag in program.flags]
    found = {name: value for name, _, value in pairs}
    assert len(found) == len(pairs)  # none is given twice
    return found


def all_programs(layout: Layout) -> list[Program]:
    return [
        control_plane.etcd(FOLDER, layout),
        control_plane.apiserver(FOLDER, layout, audit=True),
        control_plane.controller_manager(FOLDER, layout),
        control_plane.scheduler(FOLDER, layout),
    ]


def test_every_program_is_called_by_its_own_name_since_one_binary_is_all_of_them(layout: Layout) -> None:
    names = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"]
    assert [program.name for program in all_programs(layout)] == names


def test_every_file_that_is_named_is_absolute_and_one_that_is_written(layout: Layout) -> None:
    pki.write(layout)
    for program in all_programs(layout):
        named = {name: Path(value) for name, value in flags(program).items() if value.startswith("/")}
        assert [path for path in named.values() if not path.is_relative_to(layout.state)] == []
        assert [path for path in named.values() if path.parent == layout.pki and not path.is_file()] == []


def test_the_audit_log_is_kept_exactly_when_the_switch_is_on(layout: Layout) -> None:
    on = flags(control_plane.apiserver(FOLDER, layout, audit=True))
    off = flags(control_plane.apiserver(FOLDER, layout, audit=False))
    assert {name: value for name, value in on.items() if name not in off} == {
        "--audit-policy-file": str(layout.state / "audit-policy.yaml"),
        "--audit-log-path": str(layout.audit_log),
        "--audit-log-maxsize": "0",  # a log that is rotated after 100 MB would lose what a position counts from
        "--audit-log-mode": "blocking",  # a batched log would miss what a test has just seen answered
    }
    assert not [name for name in off if "audit" in name]


def test_the_audit_policy_logs_every_request_and_the_content_of_none() -> None:
    policy = yaml.safe_load(control_plane.AUDIT_POLICY)
    assert policy["rules"] == [{"level": "Metadata"}]
    assert policy["omitStages"] == ["RequestReceived"]


def test_the_api_server_is_given_no_private_key_as_the_public_one(layout: Layout) -> None:
    pki.write(layout)
    api = flags(control_plane.apiserver(FOLDER, layout, audit=False))
    public = Path(api["--service-account-key-file"]).read_bytes()
    assert b"PRIVATE" not in public
    private = Path(api["--service-account-signing-key-file"]).read_bytes()
    signer = serialization.load_pem_private_key(private, password=None).public_key()
    assert serialization.load_pem_public_key(public) == signer
    for name, value in api.items():
        is_private = value.startswith(str(layout.pki)) and b"PRIVATE" in Path(value).read_bytes()
        assert is_private == name.endswith(
            ("-private-key-file", "-signing-key-file", "-client-key", "-client-key-file")
        )


def test_tokens_are_signed_by_the_same_key_in_the_api_server_and_in_the_controllers(layout: Layout) -> None:
    api = flags(control_plane.apiserver(FOLDER, layout, audit=False))
    controllers = flags(control_plane.controller_manager(FOLDER, layout))
    assert api["--service-account-signing-key-file"] == controllers["--service-account-private-key-file"]


def test_the_api_server_is_reached_on_the_address_that_its_certificate_names(layout: Layout) -> None:
    api = flags(control_plane.apiserver(FOLDER, layout, audit=False))
    assert api["--advertise-address"] in pki.identities(layout)["apiserver"].hosts
    assert layout.api_server == f"https://{api['--advertise-address']}:{api['--secure-port']}"


def test_pods_reach_the_api_server_on_the_first_address_of_services_which_its_certificate_names(layout: Layout) -> None:
    api = flags(control_plane.apiserver(FOLDER, layout, audit=False))
    first = next(ipaddress.ip_network(api["--service-cluster-ip-range"]).hosts())
    assert str(first) == "10.96.0.1"
    assert str(first) in pki.identities(layout)["apiserver"].hosts
    assert api["--service-cluster-ip-range"] == SERVICE_CIDR


def test_authorization_is_that_of_an_ordinary_cluster(layout: Layout) -> None:
    api = flags(control_plane.apiserver(FOLDER, layout, audit=False))
    assert api["--authorization-mode"] == "Node,RBAC"
    assert "NodeRestriction" in api["--enable-admission-plugins"]
    assert "--anonymous-auth" not in api


def test_etcd_answers_the_node_alone_and_where_its_clients_ask(layout: Layout) -> None:
    etcd = flags(control_plane.etcd(FOLDER, layout))
    assert etcd["--listen-client-urls"] == etcd["--advertise-client-urls"] == "http://127.0.0.1:2379"
    assert etcd["--listen-client-urls"].endswith(f":{control_plane.ETCD_PORT}")
    assert etcd["--listen-peer-urls"].startswith("http://127.0.0.1:")
    assert etcd["--initial-cluster"].endswith(etcd["--initial-advertise-peer-urls"])
    api = flags(control_plane.apiserver(FOLDER, layout, audit=False))
    assert api["--etcd-servers"] == etcd["--advertise-client-urls"]


def test_etcd_begins_empty_at_each_start_since_it_does_not_flush_to_disk(layout: Layout) -> None:
    etcd = flags(control_plane.etcd(FOLDER, layout))
    assert "--unsafe-no-fsync" in etcd
    assert Path(etcd["--data-dir"]).is_relative_to(layout.state)  # which is emptied


@pytest.mark.parametrize("component", ["controller_manager", "scheduler"])
def test_no_start_waits_for_a_lease_and_idle_components_write_nothing(component: str, layout: Layout) -> None:
    assert flags(getattr(control_plane, component)(FOLDER, layout))["--leader-elect"] == "false"


def test_controllers_act_with_rights_of_their_own_each(layout: Layout) -> None:
    assert flags(control_plane.controller_manager(FOLDER, layout))["--use-service-account-credentials"] == "true"
