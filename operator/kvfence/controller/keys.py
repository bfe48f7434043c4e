"""The operator's signing key: a Secret in its own namespace, made once and never shown; engines get public halves."""

from __future__ import annotations

import base64
import binascii
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kvfence.engine.admission import Signer
from kvfence.kube.kinds import SECRET

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kvfence.kube.client import Kubernetes

SECRET_NAME = "kvfence-signing-key"  # noqa: S105 - the name of an object
CURRENT = "current"
NEXT = "next"
"""In the Secret's data while a rotation is under way: its public half is given out, and nothing is signed with it."""

SEED_BYTES = 32


class KeyUnusableError(RuntimeError):
    """The Secret is there and holds no key; the message says what to do."""


@dataclass(frozen=True)
class Keys:
    """What admissions are signed with, and what engines are told to trust."""

    signer: Signer = field(repr=False)
    public: Mapping[str, bytes]
    """32 bytes each, by their name in the Secret."""


async def signing_keys(kubernetes: Kubernetes, namespace: str) -> Keys:
    """Return the keys; make one when there is none yet.

    Raises:
        KeyUnusableError: the Secret does not hold what it should. It is not replaced: engines that run trust it.
        KubernetesError: the API server did not let us.
    """
    secret = await kubernetes.get(SECRET, namespace, SECRET_NAME)
    if secret is None:
        await kubernetes.create(_new_secret(namespace))
        secret = await kubernetes.get(SECRET, namespace, SECRET_NAME)  # another operator may have been faster
    data = (secret or {}).get("data") or {}
    signers = {name: Signer.from_seed(_seed(data, name)) for name in (CURRENT, NEXT) if name in data or name == CURRENT}
    return Keys(signers[CURRENT], {name: signer.public_bytes for name, signer in signers.items()})


def _new_secret(namespace: str) -> dict[str, object]:
    seed = base64.b64encode(base64.b64encode(secrets.token_bytes(SEED_BYTES))).decode()
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": SECRET_NAME,
            "namespace": namespace,
            "labels": {"app.kubernetes.io/managed-by": "kvfence"},
        },
        "type": "Opaque",
        "data": {CURRENT: seed},
    }


def _seed(data: Mapping[str, object], name: str) -> bytes:
    """Read base64 of 32 bytes; the API adds a base64 of its own around that."""
    try:
        seed = base64.b64decode(base64.b64decode(str(data.get(name, "")), validate=True).strip(), validate=True)
    except binascii.Error:
        seed = b""
    if len(seed) != SEED_BYTES:
        raise KeyUnusableError(
            f"Secret {SECRET_NAME} has no signing key under {name}: it has to be 32 bytes in base64. Put back the one "
            "that was there. With a new one (delete the Secret), pools that run trust it once their ConfigMaps follow."
        )
    return seed
