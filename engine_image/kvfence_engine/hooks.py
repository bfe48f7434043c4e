"""Puts hooks into SGLang and makes sure that they are there.

SGLang's registry logs a hook that it could not apply and goes on. It also takes a target for done that another plugin
had wrapped before. So each target is looked at before and after, and once more before the first request.
"""

from __future__ import annotations

import pkgutil
from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from typing import TYPE_CHECKING, Any

from kvfence_engine import sources

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class HookError(RuntimeError):
    """A hook is not in place; the message names it."""


class Kind(Enum):
    """When a hook runs; the names are those of SGLang's `HookType`."""

    BEFORE = "BEFORE"
    """`hook(*args, **kwargs)`: may raise, or return other arguments."""
    AFTER = "AFTER"
    """`hook(result, *args, **kwargs)`: may return another result."""
    AROUND = "AROUND"
    """`hook(original, *args, **kwargs)`: instead of it."""


@dataclass(frozen=True)
class Hook:
    """One function of ours at one place in SGLang."""

    target: str
    """Dotted path of a function, or of a method of a class."""
    kind: Kind
    function: Callable[..., Any]


class Hooks:
    """The hooks of one process, put in place when it is made.

    Args:
        hooks: of this process.
        known: digests of the functions as they are known, by target; see `sources`.

    Raises:
        HookError: when one cannot be put in place, or would not be where it is meant to be.
    """

    def __init__(self, hooks: Sequence[Hook], known: dict[str, str]) -> None:
        registry = import_module("sglang.srt.plugins.hook_registry")
        before = {hook.target: _resolve(hook.target) for hook in hooks}
        refused = sources.changed(before, known)
        if refused is not None:
            raise HookError(refused)
        for hook in hooks:
            registry.HookRegistry.register(hook.target, hook.function, registry.HookType[hook.kind.value])
        registry.HookRegistry.apply_hooks()
        self._wrapped = {hook.target: _resolve(hook.target) for hook in hooks}
        for target, original in before.items():
            if self._wrapped[target] is original:
                raise HookError(f"the hook at {target} was not applied")

    def check(self, *used: object) -> None:
        """Make sure that nobody replaced one since.

        Args:
            used: objects whose classes may have methods of their own instead of the hooked ones.

        Raises:
            HookError: naming the first that is not in place.
        """
        for target, wrapped in self._wrapped.items():
            if _resolve(target) is not wrapped:
                raise HookError(f"the hook at {target} was replaced")
            path, name = target.rsplit(".", 1)
            owner = pkgutil.resolve_name(path)
            for one in used:
                if isinstance(owner, type) and isinstance(one, owner) and getattr(type(one), name) is not wrapped:
                    raise HookError(f"{type(one).__name__} has a method of its own instead of the hook at {target}")


def _resolve(target: str) -> Any:
    try:
        return pkgutil.resolve_name(target)
    except (AttributeError, ImportError) as error:
        raise HookError(f"{target} is not there in this SGLang: {error}") from error
