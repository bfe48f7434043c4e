"""What a revision was made of, frozen: a newer operator renders nothing anew for a revision that runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kvfence.render.identity import labels, metadata, revision_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kvfence.render.identity import Manifest, PoolIdentity

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Frozen:
    """What was decided when the revision was made."""

    plugin_version: str
    """The version of kvfence-engine that is injected."""
    start_tokens: int
    """The context length, in tokens, that its engines are started with."""
    templates: Mapping[str, Manifest]
    """A pod template by the name of its role."""


def controller_revision(pool: PoolIdentity, revision: str, number: int, frozen: Frozen) -> Manifest:
    """Return the ControllerRevision.

    Args:
        pool: whose it is.
        revision: its hash.
        number: counts the pool's revisions; the highest is the newest.
        frozen: what is kept in it. Kubernetes refuses every change of it.
    """
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": metadata(pool, revision_name(pool, revision), labels(pool, None, revision=revision)),
        "revision": number,
        "data": {
            "format": FORMAT,
            "pluginVersion": frozen.plugin_version,
            "startTokens": frozen.start_tokens,
            "templates": dict(frozen.templates),
        },
    }


def frozen_of(obj: Manifest) -> Frozen:
    """Return what is frozen in a ControllerRevision as the API server has it.

    Raises:
        ValueError: it is not one of ours, or of a format that a newer kvfence writes; in words for people.
    """
    match obj.get("data"):
        case {"format": int(other)} if other != FORMAT:
            raise ValueError(f"its data has format {other}, and this version of kvfence reads {FORMAT} only")
        case {
            "format": int(),
            "pluginVersion": str(plugin_version),
            "startTokens": int(start_tokens),
            "templates": dict(templates),
        } if plugin_version and type(start_tokens) is int and start_tokens > 0:
            return Frozen(plugin_version, start_tokens, _templates(templates))
        case _:
            raise ValueError("its data is not what kvfence freezes: format, pluginVersion, startTokens and templates")


def _templates(given: dict[Any, Any]) -> dict[str, Manifest]:
    if not given:
        raise ValueError("its data has no pod template")
    for template in given.values():
        match template:
            case {"metadata": dict(), "spec": {"containers": [_, *_]}}:
                pass
            case _:
                raise ValueError("its data has a pod template without metadata or containers")
    return given
