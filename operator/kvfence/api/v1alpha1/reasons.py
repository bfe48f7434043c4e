"""Why a condition is as it is: every reason, in one place.

Reasons are API: programs compare them, so that they do not change, and they carry no values (those are in the message).
A reason is added with the code that gives it.
"""

from enum import StrEnum


class Reason(StrEnum):
    """The one word of a condition and of its Event."""

    # EngineAllowed
    VERSION_ALLOWED = "VersionAllowed"
    """The engine's version is not below any floor."""
    VERSION_NOT_KNOWN = "VersionNotKnown"
    """The pool declares no version, and no engine has said its own yet."""
    VERSION_UNREADABLE = "VersionUnreadable"
    """A version is not one that can be compared."""
    DEVELOPMENT_VERSION = "DevelopmentVersion"
    """A development version, a release candidate or a local build: nobody can say which fixes are in it."""
    VERSION_TOO_OLD = "VersionTooOld"
    """Below the floor of the cluster, or below the pool's own minimum."""
    IMAGES_DIFFER = "ImagesDiffer"
    """Engines of one revision run different images under one name."""
    CHECKSUM_NOT_RELIABLE = "ChecksumNotReliable"
    """The version has a KV checksum whose verdict cannot be enforced."""
    VERSION_NOT_AS_DECLARED = "VersionNotAsDeclared"
    """A running engine is of another version than the pool declares."""

    # RolesReady
    ENGINES_STARTED = "EnginesStarted"
    """Every engine of every role has started."""
    ENGINES_STARTING = "EnginesStarting"
    """At least one engine is still starting, or its pod is not there yet."""
    ENGINE_NOT_ANSWERING = "EngineNotAnswering"
    """The kubelet says that an engine has started, and its door or its server does not answer."""
    PODS_NOT_CREATED = "PodsNotCreated"
    """Kubernetes makes no pods for a workload: for a quota, or for the namespace's pod security level."""
    POD_NOT_SCHEDULED = "PodNotScheduled"
    """No node has room for a pod, or none that it may run on."""
    IMAGE_NOT_PULLED = "ImageNotPulled"
    """The image of a pod cannot be had."""
    CONTAINER_NOT_CREATED = "ContainerNotCreated"
    """A container cannot be made from what the pool names."""
    ENGINE_OUT_OF_MEMORY = "EngineOutOfMemory"
    """An engine was killed for its memory."""
    ENGINE_FAILED = "EngineFailed"
    """An engine ends as soon as it is started."""
    DOOR_TAINTED = "DoorTainted"
    """A defence of an engine tripped, and its door is shut for good."""
    OLD_REVISION_LEAVING = "OldRevisionLeaving"
    """The engines of the revision before are still there, and their room is needed."""
    NOT_STARTED = "NotStarted"
    """Nothing is started, since the pool may not run as it is declared."""

    # IntegrityEnforced
    CHECKSUM_ENFORCED = "ChecksumEnforced"
    """Every running engine reports its KV checksum as on."""
    CHECKSUM_OBSERVED = "ChecksumObserved"
    """The pool asks to observe the KV checksum; nothing is demanded."""
    CHECKSUM_OFF = "ChecksumOff"
    """A running engine reports its KV checksum as off."""
    CHECKSUM_NOT_KNOWN = "ChecksumNotKnown"
    """An engine has not said yet whether its KV checksum is on."""
    PROMPTS_TRUNCATED = "PromptsTruncated"
    """A running engine cuts prompts that are too long, which prefill and decode do at different places."""

    # IsolationVerified
    ISOLATION_PROVEN = "IsolationProven"
    """Every engine that is let in was proven."""
    PROVING = "Proving"
    """Checks are running, or wait for what comes before them."""
    CHECK_FAILED = "CheckFailed"
    """A check saw what must not be."""
    CHECK_NOT_JUDGED = "CheckNotJudged"
    """A check could not be judged, and is tried again."""

    # TrafficAdmitted
    ADMITTED = "Admitted"
    """Users' requests are let in."""
    NOT_ADMITTED = "NotAdmitted"
    """Something that comes before admission does not hold; nobody is let in."""
    ADMITTING = "Admitting"
    """All is proven, and doors and router are being opened."""
    ADMISSION_REFUSED = "AdmissionRefused"
    """A door did not take its admission."""
    ROUTER_NOT_READY = "RouterNotReady"
    """No router of the pool is ready."""

    # Secured
    ALL_DEFENCES_ENFORCED = "AllDefencesEnforced"
    """Nothing in the pool's settings weakens what kvfence promises."""
    DEFENCES_WEAKENED = "DefencesWeakened"
    """A setting of the pool leaves a defence out, or only observes it."""

    # PluginOutdated
    PLUGIN_CURRENT = "PluginCurrent"
    """The revision runs the kvfence-engine that the operator brings, or the one that the pool names."""
    PLUGIN_OLDER = "PluginOlder"
    """The operator brings another kvfence-engine than the revision was made with."""

    # Ready, Stalled, Reconciling
    SERVING = "Serving"
    """Users' requests are served, and all of the pool is as it was asked for."""
    AS_DECLARED = "AsDeclared"
    """There is nothing left to do."""
    PROGRESSING = "Progressing"
    """There is something left to do, and it goes on by itself."""
    NAME_TAKEN = "NameTaken"
    """An object that is not the pool's has the name that one of the pool's needs."""
    OBJECT_REFUSED = "ObjectRefused"
    """The API server does not take an object of the pool, for what the pool says or for a rule of the cluster."""
    POOL_UNREADABLE = "PoolUnreadable"
    """The pool's spec is not one that this operator can read."""

    # ContextFits
    REQUESTED_CONTEXT_FITS = "RequestedContextFits"
    """The whole context that was asked for fits."""
    CONTEXT_CAPPED = "ContextCapped"
    """Less than what was asked for fits, and that is what is on offer."""
    POOLS_NOT_MEASURED = "PoolsNotMeasured"
    """At least one KV pool is not known."""
    PAGE_SIZES_DIFFER = "PageSizesDiffer"
    """The engines divide their KV pools into pages of different sizes."""
    ENGINE_LIMIT_ABOVE_POOL = "EngineLimitAbovePool"
    """An engine says that it takes prompts which its own KV pool cannot hold."""
    REQUESTED_CONTEXT_DOES_NOT_FIT = "RequestedContextDoesNotFit"
    """Less than what was asked for fits, and the pool's policy is RequireFit."""
    MINIMUM_CONTEXT_DOES_NOT_FIT = "MinimumContextDoesNotFit"
    """Less than minimumTokens fits."""
    NO_CONTEXT_FITS = "NoContextFits"
    """What fits is too short for any prompt."""
