"""Who reaches whom: what is not in these tables is denied."""

from __future__ import annotations

from typing import Any

import pytest

from kvfence.render.identity import Manifest
from kvfence.render.network_policy import network_policies
from tests.unit.render.pools import COMMIT, INSTALLATION, POOL, UID, spec

SPEC = spec(disaggregation={"bootstrapPort": 9000})
HUB = {"uri": "hf://org/model", "commit": COMMIT}
ENGINES, ROUTERS, OPERATOR, ANYBODY = "engines", "routers", "operator", "anybody"


def policies(**changes: Any) -> tuple[Manifest, Manifest]:
    engines, routers = network_policies(POOL, SPEC if not changes else spec(**changes), INSTALLATION)
    return engines, routers


def who(rule: Manifest, key: str) -> str:
    """Name the one side of a rule, having looked at it whole."""
    if key not in rule:
        return ANYBODY
    (peer,) = rule[key]
    if "namespaceSelector" in peer:
        assert peer == {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kvfence-system"}},
            "podSelector": {"matchLabels": {"app.kubernetes.io/name": "kvfence-operator"}},
        }
        return OPERATOR
    (labels,) = [peer["podSelector"]["matchLabels"]]
    assert list(peer) == ["podSelector"]
    assert labels == {"kvfence.io/pool-uid": UID, "kvfence.io/component": labels["kvfence.io/component"]}
    return {"engine": ENGINES, "router": ROUTERS}[labels["kvfence.io/component"]]


def table(rules: list[Manifest], key: str) -> set[tuple[str, str, int | None]]:
    """All that the rules let through: who, protocol, port; `None` is every port."""
    assert all(rule["ports"] for rule in rules), "a rule without ports lets every port through"
    return {(who(rule, key), port["protocol"], port.get("port")) for rule in rules for port in rule["ports"]}


@pytest.mark.parametrize("which", [0, 1])
def test_what_is_not_listed_is_denied_in_both_directions(which: int) -> None:
    made = policies()[which]
    component = ["engine", "router"][which]
    assert made["spec"]["podSelector"] == {
        "matchLabels": {"kvfence.io/pool-uid": UID, "kvfence.io/component": component}
    }
    assert made["spec"]["policyTypes"] == ["Ingress", "Egress"]


def test_engines_are_reached_by_the_pools_routers_the_operator_and_each_other() -> None:
    assert table(policies()[0]["spec"]["ingress"], "from") == {
        (ROUTERS, "TCP", 30000),
        (ROUTERS, "TCP", 9000),
        (OPERATOR, "TCP", 30000),
        (OPERATOR, "TCP", 8901),
        (ENGINES, "TCP", None),
    }


def test_engines_reach_each_other_and_names_and_nothing_else() -> None:
    assert table(policies()[0]["spec"]["egress"], "to") == {
        (ENGINES, "TCP", None),
        (ANYBODY, "UDP", 53),
        (ANYBODY, "TCP", 53),
    }


def test_engines_reach_the_web_only_when_their_model_is_fetched_from_there() -> None:
    https = (ANYBODY, "TCP", 443)
    assert https in table(policies(model=HUB)[0]["spec"]["egress"], "to")
    for uri in ("file:///models/tiny", "pvc://claim"):
        assert https not in table(policies(model={"uri": uri})[0]["spec"]["egress"], "to")


def test_routers_are_reached_by_users_at_the_front_and_by_the_operator() -> None:
    assert table(policies()[1]["spec"]["ingress"], "from") == {(ANYBODY, "TCP", 8080), (OPERATOR, "TCP", 8082)}


def test_routers_reach_engines_and_names_and_nothing_else() -> None:
    assert table(policies()[1]["spec"]["egress"], "to") == {
        (ENGINES, "TCP", 30000),
        (ENGINES, "TCP", 9000),
        (ANYBODY, "UDP", 53),
        (ANYBODY, "TCP", 53),
    }
