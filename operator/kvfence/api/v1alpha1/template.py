"""The part of a role's pods that is the user's: a small part of a Kubernetes pod template, in the same places.

What is not listed belongs to kvfence or is not supported, and the API server refuses it as an unknown field. A full
PodTemplateSpec would be 320 kB of schema, and an open one would let a pool overwrite its own defences.
"""

from enum import StrEnum
from typing import Annotated

from pydantic import ConfigDict, Field

from kvfence.api.declaring import AS_MAP, ATOMIC, Extended, Int64, Model, Open, Quantity, Rule

Name = Annotated[str, Field(min_length=1, max_length=253)]
Path = Annotated[str, Field(min_length=1, max_length=1024)]

KEPT_NAMES = Rule(
    "!self.startsWith('kvfence')",
    "name: names that begin with kvfence are kvfence's own: choose another",
)
KEPT_PATHS = Rule(
    "!self.startsWith('/kvfence') && self.startsWith('/') && "
    "!self.split('/').exists(part, part == '..' || part == '.') && !self.contains('//')",
    "mountPath: write a plain absolute path; those that begin with /kvfence hold kvfence's own: choose another",
)
KEPT_KEYS = Rule(
    "!self.exists(key, key.startsWith('kvfence.io/'))",
    "metadata: keys under kvfence.io are set by kvfence: remove them",
)


class TemplateMetadata(Model):
    """Labels and annotations that are added to the pods of the role."""

    labels: Annotated[dict[str, Annotated[str, Field(max_length=63)]], Field(max_length=32), Extended(KEPT_KEYS)] = (
        Field(default_factory=dict)
    )
    """Labels, beside those of kvfence."""
    annotations: Annotated[
        dict[str, Annotated[str, Field(max_length=4096)]], Field(max_length=32), Extended(KEPT_KEYS)
    ] = Field(default_factory=dict)
    """Annotations, beside those of kvfence."""


class Resources(Model):
    """What the container asks for and may use."""

    requests: Annotated[dict[str, Quantity], Field(max_length=16)] = Field(default_factory=dict)
    """Quantities by the name of the resource."""
    limits: Annotated[dict[str, Quantity], Field(max_length=16)] = Field(default_factory=dict)
    """Quantities by the name of the resource, such as nvidia.com/gpu."""


class VolumeMount(Model):
    """Where a volume is in the container."""

    name: Annotated[str, Field(min_length=1, max_length=63), Extended(KEPT_NAMES)]
    """Name of a volume of the template."""
    mount_path: Annotated[str, Field(min_length=1, max_length=1024), Extended(KEPT_PATHS)]
    """The folder in the container."""
    sub_path: Path | None = None
    """A folder in the volume, in place of the whole."""
    read_only: bool = False
    """Whether the container cannot write to it."""


class ContainerName(StrEnum):
    """The containers that a template may say something about."""

    ENGINE = "engine"


class Container(Model):
    """What is added to the container that the engine runs in."""

    name: ContainerName
    """Always engine."""
    resources: Resources | None = None
    """What the engine asks for and may use."""
    volume_mounts: Annotated[
        tuple[VolumeMount, ...],
        Field(max_length=32),
        Extended(x_kubernetes_list_type="map", x_kubernetes_list_map_keys=["mountPath"]),
    ] = ()
    """Volumes of the template that the engine sees."""
    security_context: Open | None = None
    """The container's securityContext, for what RDMA needs."""


class Volume(Model):
    """A volume as in a pod: its name, and one source that is handed on as it is."""

    model_config = ConfigDict(extra="allow")

    name: Annotated[str, Field(min_length=1, max_length=63), Extended(KEPT_NAMES)]
    """Name of the volume."""


class Toleration(Model):
    """A taint of a node that the pods put up with, as in a pod."""

    key: Annotated[str | None, Field(max_length=317)] = None
    """Key of the taint; without it, all keys."""
    operator: Annotated[str | None, Field(max_length=32)] = None
    """Exists, or Equal when it is left out."""
    value: Annotated[str | None, Field(max_length=63)] = None
    """Value of the taint."""
    effect: Annotated[str | None, Field(max_length=32)] = None
    """NoSchedule, PreferNoSchedule or NoExecute; without it, all of them."""
    toleration_seconds: Annotated[Int64 | None, Field(ge=0)] = None
    """How long with NoExecute."""


class PullSecret(Model):
    """A Secret of the pool's namespace with credentials of an image registry."""

    name: Name
    """Name of the Secret."""


class TemplateSpec(Model):
    """What is added to the pods of the role."""

    node_selector: Annotated[dict[str, Annotated[str, Field(max_length=63)]], Field(max_length=32)] = Field(
        default_factory=dict
    )
    """Labels that a node must have."""
    tolerations: Annotated[tuple[Toleration, ...], Field(max_length=32), ATOMIC] = ()
    """Taints of nodes that the pods put up with."""
    affinity: Open | None = None
    """The pod's affinity, as it is."""
    priority_class_name: Name | None = None
    """Name of a PriorityClass."""
    runtime_class_name: Name | None = None
    """Name of a RuntimeClass."""
    scheduler_name: Name | None = None
    """Name of a scheduler other than the cluster's."""
    image_pull_secrets: Annotated[tuple[PullSecret, ...], Field(max_length=8), AS_MAP] = ()
    """Secrets that the images are pulled with."""
    volumes: Annotated[tuple[Volume, ...], Field(max_length=32), AS_MAP] = ()
    """Volumes, each with a name and a source as in a pod."""
    containers: Annotated[tuple[Container, ...], Field(max_length=1), AS_MAP] = ()
    """At most one, by the name engine."""


class Template(Model):
    """What is added to the pods of a role, in the places of a Kubernetes pod template."""

    metadata: TemplateMetadata | None = None
    """Labels and annotations."""
    spec: TemplateSpec | None = None
    """Volumes, resources and where pods run."""
