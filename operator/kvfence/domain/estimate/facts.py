"""Reads single facts out of a model's config.json, which may come from anywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

LARGEST = 100_000_000
"""Above every dimension of every model, and small enough that products of a few stay numbers one can print."""


class ConfigError(ValueError):
    """A config.json that cannot be right; the message says why."""


class CannotEstimateError(ValueError):
    """A model or a setting for which no estimate can be given; the message says why."""


class Facts:
    """What a config.json says. None of it is believed before its type and size are looked at."""

    def __init__(self, said: Mapping[str, object]) -> None:
        self._said = said

    def has(self, key: str) -> bool:
        """Whether something other than null, false, zero and nothing is said."""
        return bool(self._said.get(key))

    def integer(self, key: str, *, least: int = 1) -> int:
        """Return a whole number.

        Raises:
            ConfigError: it is not there, no whole number, or out of reach.
        """
        value = self._said.get(key)
        if value is None:
            raise ConfigError(f"it does not say {key}")
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= LARGEST:
            raise ConfigError(f"{key} is no whole number from {least} to {LARGEST:,}")
        return value

    def integer_or(self, key: str, otherwise: int, *, least: int = 0) -> int:
        """Return a whole number, or what counts where it is not said.

        Raises:
            ConfigError: it is there, and no whole number or out of reach.
        """
        return otherwise if self._said.get(key) is None else self.integer(key, least=least)

    def truth(self, key: str) -> bool:
        """Return a switch; one that is not there is off.

        Raises:
            ConfigError: it is neither true nor false.
        """
        value = self._said.get(key)
        if value is None or isinstance(value, bool):
            return bool(value)
        raise ConfigError(f"{key} is neither true nor false")

    def text(self, key: str) -> str | None:
        """Return a text; none when there is none.

        Raises:
            ConfigError: it is something else.
        """
        value = self._said.get(key)
        if value is None or isinstance(value, str):
            return value
        raise ConfigError(f"{key} is no text")

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts; an empty one when there is none.

        Raises:
            ConfigError: it is something else.
        """
        value = self._said.get(key)
        if value is None:
            return ()
        if isinstance(value, list) and all(isinstance(one, str) for one in value):
            return tuple(value)
        raise ConfigError(f"{key} is no list of texts")

    def part(self, key: str) -> Facts | None:
        """Return what is said below a key; none when there is nothing.

        Raises:
            ConfigError: it is no object.
        """
        value = self._said.get(key)
        if value is None:
            return None
        if isinstance(value, dict):
            return Facts(value)
        raise ConfigError(f"{key} is no object")
