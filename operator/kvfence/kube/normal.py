"""In which forms the API server gives back what it was given."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any

LIST_KEYS: dict[str, tuple[tuple[str, ...], ...]] = {
    "containers": (("name",),),
    "initContainers": (("name",),),
    "env": (("name",),),
    "volumes": (("name",),),
    "imagePullSecrets": (("name",),),
    "volumeMounts": (("mountPath",),),
    "volumeDevices": (("devicePath",),),
    "hostAliases": (("ip",),),
    "topologySpreadConstraints": (("topologyKey", "whenUnsatisfiable"),),
    "ports": (("containerPort", "protocol"), ("port", "protocol")),
    "ownerReferences": (("uid",),),
    "conditions": (("type",),),
}
"""Lists that the API server merges by key, by the name of their field (x-kubernetes-list-map-keys in its OpenAPI)."""

DROPPED_MAPS = frozenset(
    {"annotations", "binaryData", "data", "labels", "limits", "matchLabels", "nodeSelector", "requests", "selector"}
)
"""Maps that are left out when they are empty. Other empty maps say something: `emptyDir`, a peer's selectors."""

DROPPED_ZEROS = frozenset(
    {
        "hostIPC",
        "hostNetwork",
        "hostPID",
        "hostPort",
        "initialDelaySeconds",
        "minReadySeconds",
        "nodePort",
        "paused",
        "publishNotReadyAddresses",
        "readOnly",
        "stdin",
        "stdinOnce",
        "tty",
    }
)
"""Fields that are left out when false or 0. For others, such as automountServiceAccountToken, absent means true."""

QUANTITIES = frozenset({"limits", "requests", "sizeLimit", "divisor", "storage"})
"""Fields that are quantities, or maps of them."""

ATOMIC_MAPS = frozenset({"configMapKeyRef", "fieldRef", "labelSelector", "resourceFieldRef", "secretKeyRef"})
"""Maps that the API server replaces as a whole (x-kubernetes-map-type: atomic), in a pod."""

DEFAULTS = (("apiVersion", "v1"), ("divisor", "0"), ("expirationSeconds", 3600), ("protocol", "TCP"))
"""What the API server adds inside of things that it otherwise replaces as a whole."""

_SUFFIXES = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "": Decimal(1),
    "k": Decimal(10**3),
    "M": Decimal(10**6),
    "G": Decimal(10**9),
    "T": Decimal(10**12),
    "P": Decimal(10**15),
    "E": Decimal(10**18),
    "Ki": Decimal(2**10),
    "Mi": Decimal(2**20),
    "Gi": Decimal(2**30),
    "Ti": Decimal(2**40),
    "Pi": Decimal(2**50),
    "Ei": Decimal(2**60),
}

QUANTITY_CHARACTERS = 64
"""Longer ones are compared as text: nobody means them, and a hostile exponent would cost memory."""


def same_quantity(one: Any, other: Any) -> bool:
    """Whether both are the same amount: `1000m` and `1`, `1Gi` and `1024Mi`."""
    first, second = _amount(one), _amount(other)
    if first is None or second is None:
        return str(one) == str(other)
    return first == second


def _amount(said: Any) -> Decimal | None:
    if isinstance(said, bool) or not isinstance(said, int | float | str):
        return None
    text = str(said)
    if len(text) > QUANTITY_CHARACTERS:
        return None
    number = text.rstrip("numkKMGTPEi") if not text[-1:].isdecimal() else text
    try:
        return Decimal(number) * _SUFFIXES[text[len(number) :]]
    except (InvalidOperation, KeyError, ArithmeticError):
        return None
