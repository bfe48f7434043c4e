"""The ServiceAccount of a pool's pods, which may do nothing: its token is not even mounted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvfence.render.identity import labels, metadata, service_account_name

if TYPE_CHECKING:
    from kvfence.render.identity import Manifest, PoolIdentity


def service_account(pool: PoolIdentity) -> Manifest:
    """Return the ServiceAccount."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata(pool, service_account_name(pool), labels(pool, None)),
        "automountServiceAccountToken": False,
    }
