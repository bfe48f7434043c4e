"""The status of an InferencePool."""

from typing import Annotated

from pydantic import ConfigDict, Field

from kvfence.api.declaring import AS_MAP, Int32, Int64, Model, Time
from kvfence.api.v1alpha1.conditions import Conditions

Short = Annotated[str, Field(max_length=63)]
PodName = Annotated[str, Field(max_length=253)]
Count = Annotated[Int32, Field(ge=0)]
Size = Annotated[Int64, Field(ge=0)]


class _Reported(Model):
    """A part of the status. What a newer operator wrote and this one does not know is passed over."""

    model_config = ConfigDict(extra="ignore")


class ContextStatus(_Reported):
    """The context length on offer and what limits it."""

    requested_tokens: Size
    """What was asked for when this was worked out."""
    advertised_tokens: Size
    """What is on offer."""
    limiting_role: Short | None = None
    """The role whose KV pool limits it, when less than what was asked for fits."""
    limiting_pod: PodName | None = None
    """The pod whose KV pool is the smallest."""
    kv_pool_tokens: Size | None = None
    """The size of that KV pool as the engine measured it."""
    measurement_time: Time | None = None
    """When this was worked out from measurements that differ from those before."""


class RoleStatus(_Reported):
    """The engines of one role."""

    name: Short
    """Name of the role."""
    replicas: Count = 0
    """Pods that are there."""
    ready_replicas: Count = 0
    """Pods whose engine has started."""
    admitted_replicas: Count = 0
    """Pods whose door is open."""
    engine_version: Annotated[str | None, Field(max_length=64)] = None
    """The version that the running engines report."""
    image_digest: Annotated[str | None, Field(max_length=128)] = None
    """The digest of the image that runs."""
    kv_pool_tokens: Size | None = None
    """The smallest KV pool of the role."""


class PoolStatus(_Reported):
    """What the pool is."""

    observed_generation: Annotated[Int64 | None, Field(ge=0)] = None
    """The metadata.generation that all of this was judged from."""
    conditions: Conditions = ()
    """What holds and what does not, and why."""
    context_length: ContextStatus | None = None
    """The context length on offer and what limits it."""
    roles: Annotated[tuple[RoleStatus, ...], Field(max_length=8), AS_MAP] = ()
    """The engines, by role."""
    current_revision: Short | None = None
    """The revision that serves."""
    update_revision: Short | None = None
    """The revision that is coming up; the current one when none is."""
