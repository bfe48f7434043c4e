"""What a pool says about known faults of its engines (`spec.advisories`)."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from kvfence.api.declaring import Extended, Model, Rule, Time


class AdvisoryAction(StrEnum):
    """What happens when an advisory applies to a pool's engines."""

    BLOCK = "Block"
    WARN = "Warn"


class AdvisoryExemption(Model):
    """An advisory that somebody has looked into, and that is not to count for this pool for a while."""

    id: Annotated[
        str,
        Field(max_length=64),
        Extended(
            Rule(
                "self.matches('^[A-Za-z0-9][A-Za-z0-9._-]*$')",
                "id: write the advisory's id as kvfence names it, such as CVE-2026-3059",
            )
        ),
    ]
    """Id of the advisory, or one of its aliases."""
    who: Annotated[
        str,
        Field(max_length=128),
        Extended(Rule("self.matches('\\\\S')", "who: name somebody who answers for it")),
    ]
    """Who decided it: a name that a colleague can ask."""
    reason: Annotated[
        str,
        Field(max_length=1024),
        Extended(Rule("self.matches('\\\\S')", "reason: say why it does no harm here")),
    ]
    """Why the advisory does no harm here."""
    until: Time
    """When it counts again."""


class Advisories(Model):
    """What happens when a known fault of an engine's release applies to the pool."""

    action: AdvisoryAction = AdvisoryAction.BLOCK
    """Block lets no engine in to which an advisory applies; those that serve go on and are marked. Warn lets them in,
    and the pool says Secured=False."""
    exemptions: Annotated[
        tuple[AdvisoryExemption, ...],
        Field(max_length=32),
        Extended(x_kubernetes_list_type="map", x_kubernetes_list_map_keys=["id"]),
    ] = ()
    """Advisories that do not count for this pool for a while. With one the pool says Secured=False."""
