"""The conditions of an InferencePool: their types in one place, and their shape."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from kvfence.api.declaring import Extended, Int64, Model, Time


class ConditionType(StrEnum):
    """What a condition is about. The names are API."""

    READY = "Ready"
    """Users' requests are served by the current revision: all of the conditions below say so."""
    ENGINE_ALLOWED = "EngineAllowed"
    """The engine's release is allowed, as declared and as the running servers report it, and all run one image."""
    ROLES_READY = "RolesReady"
    """The engines of every role have started and answer for the model."""
    CONTEXT_FITS = "ContextFits"
    """The context length on offer fits into every KV pool of the revision."""
    INTEGRITY_ENFORCED = "IntegrityEnforced"
    """Every running engine reports the KV checksum as on."""
    ISOLATION_VERIFIED = "IsolationVerified"
    """Marker prompts went through every new engine, and none came out where it should not."""
    TRAFFIC_ADMITTED = "TrafficAdmitted"
    """Doors are open and the pool's Service leads to them."""
    SECURED = "Secured"
    """Nothing in the pool's settings weakens what kvfence promises."""
    PLUGIN_OUTDATED = "PluginOutdated"
    """Abnormal when true: the operator brings a newer kvfence-engine than the one that runs."""
    STALLED = "Stalled"
    """Abnormal when true: without a change by a person nothing will go on."""
    RECONCILING = "Reconciling"
    """Abnormal when true: what is asked for is not yet what is there."""


class ConditionStatus(StrEnum):
    """Whether a condition holds."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"
    """It could not be judged, and for admission that counts as no."""


class Condition(Model):
    """One aspect of the pool's state, as in every Kubernetes API."""

    # Plain strings with a bound, not the enums: an older operator has to read what a newer one wrote.
    type: Annotated[str, Field(min_length=1, max_length=316)]
    """What the condition is about."""
    status: ConditionStatus
    """True, False or Unknown."""
    reason: Annotated[str, Field(min_length=1, max_length=1024)]
    """Why, as one word for programs."""
    message: Annotated[str, Field(max_length=32_768)]
    """Why, and what to do, for people."""
    last_transition_time: Time
    """When status changed last."""
    observed_generation: Annotated[Int64 | None, Field(ge=0)] = None
    """The metadata.generation that this was judged from."""


Conditions = Annotated[
    tuple[Condition, ...],
    Field(max_length=32),
    Extended(x_kubernetes_list_type="map", x_kubernetes_list_map_keys=["type"]),
]
