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
    CHECKSUM_NOT_RELIABLE = "ChecksumNotReliable"
    """The version has a KV checksum whose verdict cannot be enforced."""
    VERSION_NOT_AS_DECLARED = "VersionNotAsDeclared"
    """A running engine is of another version than the pool declares."""

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
