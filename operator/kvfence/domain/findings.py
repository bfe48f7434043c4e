"""What a gate found: the part of a condition that a pure function can say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvfence.api.v1alpha1.conditions import ConditionStatus

if TYPE_CHECKING:
    from kvfence.api.v1alpha1.conditions import ConditionType
    from kvfence.api.v1alpha1.reasons import Reason


@dataclass(frozen=True, slots=True)
class Finding:
    """One condition as it should be written. The time of its last change is for whoever writes it."""

    condition: ConditionType
    status: ConditionStatus
    reason: Reason
    message: str
    """For people: what was found, where, and unless all is well what to do. Carries no text of a user."""

    @property
    def holds(self) -> bool:
        """Whether the gate is passed. Unknown is not passed."""
        return self.status is ConditionStatus.TRUE
