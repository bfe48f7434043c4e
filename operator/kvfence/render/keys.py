"""The operator's public keys, by which engines judge admissions. Two at a time: a rotation restarts nothing."""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING

from kvfence.render.identity import keys_name, labels, metadata

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kvfence.render.identity import Manifest, PoolIdentity

KEY_BYTES = 32
"""Of an Ed25519 public key."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")
"""Of a file: one that begins with a dot is not read by engines."""


def keys_config_map(pool: PoolIdentity, public_keys: Mapping[str, bytes]) -> Manifest:
    """Return the ConfigMap: in each file one key in base64.

    Args:
        pool: whose engines read it.
        public_keys: raw keys by the name of their file.

    Raises:
        ValueError: there is none, or one is no key or has a name that engines do not read.
    """
    if not public_keys:
        raise ValueError("without a public key no engine could ever be admitted")
    for name, key in public_keys.items():
        if len(key) != KEY_BYTES or not _NAME.fullmatch(name):
            raise ValueError("a public key has 32 bytes, and a name of letters, digits, dots and dashes")
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(pool, keys_name(pool), labels(pool, None)),
        "data": {name: base64.b64encode(key).decode() + "\n" for name, key in sorted(public_keys.items())},
    }
