"""Two stages share neither an address nor a file, except the image store."""

from __future__ import annotations

import ipaddress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from e2e.cluster.layout import API_ONLY, POD_CIDR, SERVICE_CIDR, STAGE, Layout

subnets = st.integers(0, 63)


def at(subnet: int) -> Layout:
    return Layout("trial", subnet, with_node=True, root=Path("/cache"))


def link(layout: Layout) -> ipaddress.IPv4Network:
    return ipaddress.IPv4Interface(f"{layout.node_address}/30").network


@given(subnets)
def test_both_ends_of_a_link_are_hosts_of_one_small_network_in_the_block_for_tests(subnet: int) -> None:
    layout = at(subnet)
    assert {str(host) for host in link(layout).hosts()} == {layout.host_address, layout.node_address}
    assert link(layout).subnet_of(ipaddress.IPv4Network("198.18.0.0/15"))
    for cluster in (POD_CIDR, SERVICE_CIDR):
        assert not link(layout).overlaps(ipaddress.IPv4Network(cluster))


@given(subnets, subnets)
def test_links_of_different_stages_do_not_meet(one: int, other: int) -> None:
    assert link(at(one)).overlaps(link(at(other))) == (one == other)


@pytest.mark.parametrize("layout", [STAGE, API_ONLY], ids=lambda layout: layout.name)
def test_the_name_of_a_link_fits_the_kernel(layout: Layout) -> None:
    assert len(layout.link) <= 15


def test_the_two_stages_that_there_are_may_run_at_once() -> None:
    assert STAGE.name != API_ONLY.name
    assert STAGE.subnet != API_ONLY.subnet
    assert STAGE.state != API_ONLY.state
    assert not API_ONLY.with_node  # both would route the addresses of pods


@pytest.mark.parametrize("what", ["logs", "pki", "kubeconfig", "audit_log"])
def test_the_files_of_a_start_lie_in_its_own_folder_and_images_do_not(what: str) -> None:
    assert getattr(at(0), what).is_relative_to(at(0).state)
    assert not at(0).images.is_relative_to(at(0).state)


def test_a_layout_lies_in_the_cache_unless_it_is_told_otherwise(cache_folder: Path) -> None:
    assert Layout("trial", 0, with_node=True).root == cache_folder
