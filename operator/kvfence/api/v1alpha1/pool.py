"""InferencePool: what a user declares, and what the operator reports."""

from enum import StrEnum
from typing import Annotated

from pydantic import ConfigDict, Field

from kvfence.api.declaring import AS_MAP, ATOMIC, Extended, Int32, Int64, Model, Rule, Tokens, rules
from kvfence.api.v1alpha1.advisories import Advisories
from kvfence.api.v1alpha1.engine import ARGUMENT_COUNT, Engine, Image, ModelSource, RoleArgument
from kvfence.api.v1alpha1.status import PoolStatus
from kvfence.api.v1alpha1.template import Template

NAME_LENGTH = 40
ROLE_NAME_LENGTH = 11
"""Objects of a revision are called pool-role-hash, and a name of 63 characters is the longest that a Service takes."""


class RoleType(StrEnum):
    """What the engines of a role do of a request."""

    PREFILL = "Prefill"
    DECODE = "Decode"
    UNIFIED = "Unified"


class Parallelism(Model):
    """How many GPUs of its pod one engine uses, and how."""

    tensor: Annotated[Int32, Field(ge=1, le=64)] = 1
    """Ranks that share each layer."""
    pipeline: Annotated[Int32, Field(ge=1, le=64)] = 1
    """Ranks that share the stack of layers."""
    data: Annotated[Int32, Field(ge=1, le=64)] = 1
    """Replicas within the engine. Each has a KV pool of its own, and one request has to fit into one of them."""


class Role(Model):
    """Engines that do the same part of a request."""

    name: Annotated[
        str,
        Field(max_length=ROLE_NAME_LENGTH),
        Extended(
            Rule(
                "self.matches('^[a-z]([a-z0-9-]*[a-z0-9])?$')",
                "name: use lower-case letters, digits and dashes, begin with a letter and do not end with a dash",
            ),
            Rule("self != 'router'", "name: router is the name of the pool's own router: choose another"),
        ),
    ]
    """Name of the role, unique in the pool. Part of the names of its pods."""
    type: Annotated[
        RoleType,
        Extended(
            Rule(
                "self != 'Unified'",
                "type: Unified is not supported yet: use one role of type Prefill and one of type Decode",
            )
        ),
    ]
    """Prefill reads prompts, Decode writes answers. Unified, which does both, is not supported yet."""
    replicas: Annotated[Int32, Field(ge=1, le=1024)] = 1
    """Number of engines."""
    parallelism: Parallelism = Parallelism()
    """How one engine is spread over the GPUs of its pod."""
    args: Annotated[tuple[RoleArgument, ...], Field(max_length=ARGUMENT_COUNT), ATOMIC] = ()
    """Flags of the engine for this role alone, a word each, behind those of engine.sglang.args."""
    startup_timeout_seconds: Annotated[Int32, Field(ge=60, le=86_400)] = 3600
    """How long an engine may take to load its model before its container is restarted."""
    template: Template | None = None
    """What is added to the pods of this role."""


Roles = Annotated[
    tuple[Role, ...],
    Field(min_length=2, max_length=8),
    AS_MAP,
    Extended(
        Rule(
            "self.exists(role, role.type == 'Prefill')",
            "roles: at least one role of type Prefill is needed: add one",
        ),
        Rule(
            "self.exists(role, role.type == 'Decode')",
            "roles: at least one role of type Decode is needed: add one",
        ),
    ),
]


class Router(Model):
    """What hands each request to a prefill and a decode engine."""

    replicas: Annotated[Int32, Field(ge=1, le=32)] = 1
    """Number of router pods."""
    image: Image | None = None
    """Container image of the router (smg). Without it: the one that the operator was set up with."""


class TransferBackend(StrEnum):
    """What carries KV from prefill to decode."""

    MOONCAKE = "Mooncake"
    NIXL = "NIXL"


TAKEN_PORTS = [8901, 30000]
"""Where kvfence-engine and the engine itself answer."""


class Disaggregation(Model):
    """How prefill hands over to decode."""

    transfer_backend: Annotated[
        TransferBackend,
        Extended(
            Rule(
                "self != 'NIXL'",
                "transferBackend: NIXL is not supported yet: use Mooncake, or leave the field out",
            )
        ),
    ] = TransferBackend.MOONCAKE
    """What carries KV from prefill to decode. NIXL is not supported yet."""
    bootstrap_port: Annotated[
        Int32,
        Field(ge=1024, le=32_767),  # above that are the ports that outgoing connections take
        Extended(
            Rule(f"!(self in {TAKEN_PORTS})", "bootstrapPort: engine or door answer at this port: choose another")
        ),
    ] = 8998
    """Port of a prefill engine where decode engines ask for KV."""
    transfer_timeout_seconds: Annotated[Int32, Field(ge=1, le=3600)] = 300
    """How long prefill and decode wait for each other before the request fails."""


class ContextPolicy(StrEnum):
    """What happens when less fits than was asked for."""

    CAP_TO_FIT = "CapToFit"
    REQUIRE_FIT = "RequireFit"


class ContextLength(Model):
    """How much context (prompt and answer together, in tokens) the pool is to offer. What fits is measured."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule(
                "!has(self.minimumTokens) || self.minimumTokens <= self.requestedTokens",
                "minimumTokens: must not be above requestedTokens: lower it, or ask for more",
                ".minimumTokens",
            ),
            Rule(
                "self.reserveTokens < self.requestedTokens",
                "reserveTokens: must be below requestedTokens, or nothing is left to offer: lower it",
                ".reserveTokens",
            ),
        )
    )

    requested_tokens: Tokens
    """What to offer if it fits."""
    minimum_tokens: Tokens | None = None
    """Rather than to offer less than this, nothing is admitted. Without it, whatever fits is offered."""
    reserve_tokens: Annotated[Int64, Field(ge=0, le=2**40)] = 0
    """Tokens of the smallest KV pool that are left free, beside headroomPercent."""
    headroom_percent: Annotated[Int32, Field(ge=0, le=50)] = 2
    """Share of the smallest KV pool that is left free, so that an engine which comes up with a slightly smaller pool
    still serves."""
    policy: ContextPolicy = ContextPolicy.CAP_TO_FIT
    """CapToFit offers what fits; RequireFit admits nothing unless all of requestedTokens fits."""


class IntegrityMode(StrEnum):
    """How a defence is used."""

    ENFORCE = "Enforce"
    OBSERVE = "Observe"


class DefenceMode(StrEnum):
    """How a defence of kvfence-engine is used."""

    ENFORCE = "Enforce"
    OBSERVE = "Observe"
    DISABLED = "Disabled"


class Integrity(Model):
    """What protects the KV cache of each request. With anything but Enforce the pool says Secured=False."""

    kv_checksum: IntegrityMode = IntegrityMode.ENFORCE
    """Enforce admits an engine only when it reports SGLang's KV checksum as on, on both roles. Observe reports it only,
    and the pool says Secured=False; SGLang before 0.5.23 is taken with Observe alone."""
    page_tagging: DefenceMode = DefenceMode.ENFORCE
    """Whether each page of KV has an owner and a writer, which are looked at before a request reads it. Enforce ends a
    request that would read another's page, and admits an engine only when all of its ranks attest the defence. Observe
    counts, and lets the request go on."""
    page_scrubbing: DefenceMode = DefenceMode.ENFORCE
    """Whether pages are zeroed before prefill may write into them, and the bytes that arrived are looked at."""
    coverage: DefenceMode = DefenceMode.ENFORCE
    """Whether what prefill handed over is compared with what decode made room for: the same prompt, all of it."""


class StrategyType(StrEnum):
    """How a new revision takes the place of the old one."""

    RECREATE = "Recreate"
    BLUE_GREEN = "BlueGreen"


class Strategy(Model):
    """How a new revision takes the place of the old one."""

    type: Annotated[
        StrategyType,
        Extended(
            Rule(
                "self != 'BlueGreen'",
                "type: BlueGreen is not supported yet: use Recreate, or leave the field out",
            )
        ),
    ] = StrategyType.RECREATE
    """Recreate stops the old engines first, and needs no spare GPU. BlueGreen is not supported yet."""


class PoolSpec(Model):
    """What the pool is to be."""

    model: ModelSource
    """The model and where its files are."""
    engine: Engine
    """What runs the model."""
    roles: Roles
    """The groups of engines: at least one of type Prefill and one of type Decode."""
    router: Router = Router()
    """What hands each request to a prefill and a decode engine."""
    disaggregation: Disaggregation = Disaggregation()
    """How prefill hands over to decode."""
    context_length: ContextLength
    """How much context the pool is to offer."""
    integrity: Integrity = Integrity()
    """What protects the KV cache on its way."""
    advisories: Advisories = Advisories()
    """What happens when a known fault of an engine's release applies to the pool."""
    strategy: Strategy = Strategy()
    """How a new revision takes the place of the old one."""


class InferencePool(Model):
    """A pool of LLM engines in which one user's data cannot reach another's answer.

    It is measured, capped to what fits, proven with marker prompts, and only then admitted.
    """

    model_config = ConfigDict(
        extra="ignore",  # apiVersion, kind and metadata are Kubernetes' own
        json_schema_extra=rules(
            Rule(
                f"self.metadata.name.size() <= {NAME_LENGTH}",
                f"metadata.name: use at most {NAME_LENGTH} characters: the pool's objects add role and revision",
            ),
            Rule(
                "self.metadata.name.matches('^[a-z]([a-z0-9-]*[a-z0-9])?$')",
                "metadata.name: use lower-case letters, digits and dashes, and begin with a letter, as Services do",
            ),
        ),
    )

    spec: PoolSpec
    """What the pool is to be."""
    status: PoolStatus | None = None
    """What the pool is. Written by the operator."""
