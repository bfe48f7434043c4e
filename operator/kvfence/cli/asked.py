"""How servers that the user names are asked: with the API key that the user gives for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

VARIABLE = "KVFENCE_API_KEY"
"""The one way in for a key: arguments can be read by every user of a machine, and stay in a shell's history."""
SECONDS = 15.0
"""For one answer: `/server_info` asks all schedulers, which answer between two batches."""


class KeyUnusableError(ValueError):
    """The key cannot be sent in a header; the message does not quote it."""


def key_from(environment: Mapping[str, str]) -> str | None:
    """Return the key that the user set, if any.

    Raises:
        KeyUnusableError: it has characters that no header may have.
    """
    key = environment.get(VARIABLE, "")
    if not key:
        return None
    if not (key.isascii() and key.isprintable() and key == key.strip()):
        raise KeyUnusableError(f"{VARIABLE} has blanks around it, or characters that a key cannot have")
    return key
