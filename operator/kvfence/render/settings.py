"""What the operator was installed with, as far as it shows in the objects of a pool."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Installation:
    """One installation of the operator.

    Raises:
        ValueError: the operator has no labels, so that a network policy for it would let in all of its namespace.
    """

    engine_image_repository: str
    """Of the injection images, without a tag."""
    plugin_version: str
    """The version of kvfence-engine that a new revision gets when its pool names none."""
    router_image: str
    """The image of smg for pools that name none."""
    front_image: str
    """The image of nginx."""
    operator_namespace: str
    operator_labels: Mapping[str, str]
    """Labels by which the operator's own pods are told apart in its namespace."""

    def __post_init__(self) -> None:
        """Refuse what would open engines to others."""
        if not self.operator_labels:
            raise ValueError("the operator's pods need labels of their own: none were given")

    def injection_image(self, plugin_version: str | None = None) -> str:
        """Return the image that brings this version of kvfence-engine, or the installation's own version."""
        return f"{self.engine_image_repository}:{plugin_version or self.plugin_version}"
