"""Who may reach the pods of a pool, and whom they may reach. What is not listed is denied, both ways.

The kubelet's probes pass in any case. Pods of different pools never reach each other's engines: the servers through
which prefill and decode find each other ask nobody who they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvfence.render.engine_command import DOOR_PORT, HTTP_PORT
from kvfence.render.front import OPERATOR_PORT, USERS_PORT
from kvfence.render.identity import (
    Component,
    engine_policy_name,
    labels,
    metadata,
    router_policy_name,
    selector,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvfence.api.v1alpha1.pool import PoolSpec
    from kvfence.render.identity import Manifest, PoolIdentity
    from kvfence.render.settings import Installation

NAMESPACE_LABEL = "kubernetes.io/metadata.name"
"""Set by the API server on each namespace."""

_ALL_TCP: list[Manifest] = [{"protocol": "TCP"}]
_DNS: Manifest = {"ports": [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}]}
_HTTPS: Manifest = {"ports": [{"protocol": "TCP", "port": 443}]}


def network_policies(pool: PoolIdentity, spec: PoolSpec, installation: Installation) -> tuple[Manifest, ...]:
    """Return the policies of the engines and of the routers, of all revisions of the pool."""
    return _engines(pool, spec, installation), _routers(pool, spec, installation)


def _engines(pool: PoolIdentity, spec: PoolSpec, installation: Installation) -> Manifest:
    engines, operator = _pods(pool, Component.ENGINE), _operator(installation)
    fetch = [_HTTPS] if spec.model.uri.startswith("hf://") else []
    return _policy(
        pool,
        Component.ENGINE,
        ingress=[
            # A router looks at the bootstrap port before it takes a worker on.
            {"from": [_pods(pool, Component.ROUTER)], "ports": _tcp(HTTP_PORT, spec.disaggregation.bootstrap_port)},
            {"from": [operator], "ports": _tcp(HTTP_PORT, DOOR_PORT)},
            {"from": [engines], "ports": _ALL_TCP},  # KV and its control messages go over ports taken at random
        ],
        egress=[{"to": [engines], "ports": _ALL_TCP}, _DNS, *fetch],
    )


def _routers(pool: PoolIdentity, spec: PoolSpec, installation: Installation) -> Manifest:
    to_engines = _tcp(HTTP_PORT, spec.disaggregation.bootstrap_port)
    return _policy(
        pool,
        Component.ROUTER,
        ingress=[
            {"ports": _tcp(USERS_PORT)},  # from anywhere: clients also come from outside of the cluster
            {"from": [_operator(installation)], "ports": _tcp(OPERATOR_PORT)},
        ],
        egress=[{"to": [_pods(pool, Component.ENGINE)], "ports": to_engines}, _DNS],
    )


def _policy(
    pool: PoolIdentity, component: Component, *, ingress: Sequence[Manifest], egress: Sequence[Manifest]
) -> Manifest:
    name = engine_policy_name(pool) if component is Component.ENGINE else router_policy_name(pool)
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata(pool, name, labels(pool, component)),
        "spec": {
            "podSelector": {"matchLabels": selector(pool, component)},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": list(ingress),
            "egress": list(egress),
        },
    }


def _pods(pool: PoolIdentity, component: Component) -> Manifest:
    """Pods of this pool, in its own namespace."""
    return {"podSelector": {"matchLabels": selector(pool, component)}}


def _operator(installation: Installation) -> Manifest:
    """Pods that have the operator's labels *and* are in its namespace: one item, not two."""
    return {
        "namespaceSelector": {"matchLabels": {NAMESPACE_LABEL: installation.operator_namespace}},
        "podSelector": {"matchLabels": dict(installation.operator_labels)},
    }


def _tcp(*ports: int) -> list[Manifest]:
    return [{"protocol": "TCP", "port": port} for port in ports]
