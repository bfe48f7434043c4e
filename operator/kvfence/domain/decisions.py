"""Decides what is to be done about a pool: which gates hold, what is offered, who is listed and what comes next. Pure.

The same pool gives the same decision: everything is read off what is observed, and nothing off how it came about.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvfence.api.v1alpha1.conditions import ConditionStatus
from kvfence.domain.capacity import Offered
from kvfence.domain.context_fits import context_fits
from kvfence.domain.eligible import eligible, is_proven, pairs_to_prove
from kvfence.domain.engine_allowed import engine_allowed
from kvfence.domain.integrity import integrity_enforced
from kvfence.domain.isolation import isolation_verified
from kvfence.domain.pools import capacity
from kvfence.domain.roles_ready import roles_ready
from kvfence.domain.verdicts import Outcome

if TYPE_CHECKING:
    from kvfence.domain.capacity import Capacity
    from kvfence.domain.engines import Engine
    from kvfence.domain.findings import Finding
    from kvfence.domain.observed import Observed
    from kvfence.domain.pods import PodFacts
    from kvfence.domain.verdicts import Verdict


@dataclass(frozen=True, slots=True)
class ProvePairs:
    """Prove boots with each other, the operator playing the router."""

    pairs: tuple[tuple[Engine, Engine], ...]
    """Prefill first."""
    cap: int


@dataclass(frozen=True, slots=True)
class ProveFronts:
    """Prove that router and front let through what they should, while engines take canaries alone."""

    engines: tuple[Engine, ...]
    routers: tuple[PodFacts, ...]
    cap: int


@dataclass(frozen=True, slots=True)
class Admit:
    """Tell doors to be open, with this cap and these peers."""

    engines: tuple[Engine, ...]
    cap: int


Step = ProvePairs | ProveFronts | Admit


@dataclass(frozen=True, slots=True)
class Decision:
    """What is to be done."""

    findings: tuple[Finding, ...]
    """EngineAllowed, RolesReady, ContextFits, IntegrityEnforced, IsolationVerified, in this order."""
    runs: bool
    """Whether the engines of the revision are to be there."""
    capacity: Capacity
    cap: int | None
    """Tokens of context that are offered, or will be."""
    listed: tuple[Engine, ...]
    """Engines that the router may send requests to."""
    step: Step | None
    """What takes time and comes next."""
    serves: bool
    """Whether the pool's Service leads to this revision."""

    @property
    def in_the_way(self) -> tuple[Finding, ...]:
        """Gates that do not hold: those that say no first, then those that could not be judged yet."""
        return tuple(
            finding
            for status in (ConditionStatus.FALSE, ConditionStatus.UNKNOWN)
            for finding in self.findings
            if finding.status is status
        )


def decide(observed: Observed) -> Decision:
    """Judge the gates in their order, and say what comes next."""
    allowed = engine_allowed(observed)
    runs = observed.runs or (allowed.status is not ConditionStatus.FALSE and not observed.leaving)
    offer = capacity(observed)
    fit = eligible(observed, offer)
    cap = offer.tokens if isinstance(offer, Offered) else None
    findings = (
        allowed,
        roles_ready(observed, allowed=allowed.status is not ConditionStatus.FALSE),
        context_fits(offer, observed.wanted),
        integrity_enforced(observed),
        isolation_verified(observed, fit, _fronts(observed, cap)),
    )
    if cap is None:
        return Decision(
            findings, runs, offer, None, _open(observed) if observed.serving else (), None, observed.serving
        )
    if observed.serving:
        return _serving(observed, fit, Decision(findings, runs, offer, cap, (), None, serves=True))
    return _coming_up(observed, fit, Decision(findings, runs, offer, cap, (), None, serves=False))


def _open(observed: Observed) -> tuple[Engine, ...]:
    """Engines that were let in stay: a gate that is raised later keeps new boots out, and does not cut what serves."""
    return tuple(engine for engine in observed.engines if engine.is_open and is_proven(engine, observed))


def _fronts(observed: Observed, cap: int | None) -> tuple[Verdict, ...]:
    """What is known of the fronts, where it is about this cap."""
    return observed.known.fronts if cap is not None and observed.applied_tokens == cap else ()


def _serving(observed: Observed, fit: tuple[Engine, ...], so_far: Decision) -> Decision:
    """Each engine comes and goes by itself; what is open is kept as it should be before anything new is proven."""
    assert so_far.cap is not None
    listed = _open(observed)
    if behind := _behind(observed, listed, so_far.cap):
        return _with(so_far, listed, Admit(behind, so_far.cap))
    ready = tuple(engine for engine in fit if not engine.is_open and is_proven(engine, observed))
    if admissible := tuple(engine for engine in ready if not _refused(observed, engine)):
        return _with(so_far, listed, Admit(admissible, so_far.cap))
    pairs = pairs_to_prove(observed, fit)
    return _with(so_far, listed, ProvePairs(pairs, so_far.cap) if pairs else None)


def _coming_up(observed: Observed, fit: tuple[Engine, ...], so_far: Decision) -> Decision:
    """Nothing is opened before every engine that was asked for is proven, and the front too."""
    assert so_far.cap is not None
    allowed, ready, fits, intact, _ = so_far.findings
    if not all(finding.holds for finding in (allowed, ready, fits, intact)) or len(fit) < len(observed.engines):
        return so_far
    if pairs := pairs_to_prove(observed, fit):
        return _with(so_far, (), ProvePairs(pairs, so_far.cap))
    if not all(is_proven(engine, observed) for engine in fit):
        return so_far
    return _all_proven(observed, fit, so_far, so_far.cap)


def _all_proven(observed: Observed, fit: tuple[Engine, ...], so_far: Decision, cap: int) -> Decision:
    """The router gets its list while doors take canaries alone, so that the front is proven before users come."""
    if behind := _behind(observed, tuple(engine for engine in fit if engine.is_open), cap):
        return _with(so_far, fit, Admit(behind, cap))  # open since before the status was lost: canaries tell no cap
    fronts = _fronts(observed, cap)
    if not fronts:
        routers = observed.routers
        all_ready = bool(routers) and all(router.ready and router.ip for router in routers)
        return _with(so_far, fit, ProveFronts(fit, routers, cap) if all_ready else None)
    if any(verdict.outcome is not Outcome.PASSED for verdict in fronts):
        return _with(so_far, fit, None)
    shut = tuple(engine for engine in fit if not _is_up_to_date(observed, engine, cap))
    if shut:
        willing = tuple(engine for engine in shut if not _refused(observed, engine))
        return _with(so_far, fit, Admit(willing, cap) if willing else None)
    return _with(so_far, fit, None, serves=True)


def _behind(observed: Observed, engines: tuple[Engine, ...], cap: int) -> tuple[Engine, ...]:
    return tuple(e for e in engines if not _is_up_to_date(observed, e, cap) and not _refused(observed, e))


def _is_up_to_date(observed: Observed, engine: Engine, cap: int) -> bool:
    boot = engine.boot
    return boot is not None and engine.is_open and boot.cap == cap and boot.peers == observed.peers


def _refused(observed: Observed, engine: Engine) -> bool:
    return engine.boot is not None and engine.boot.nonces in observed.known.refusals


def _with(given: Decision, listed: tuple[Engine, ...], step: Step | None, *, serves: bool | None = None) -> Decision:
    return Decision(
        given.findings,
        given.runs,
        given.capacity,
        given.cap,
        listed,
        step,
        given.serves if serves is None else serves,
    )
