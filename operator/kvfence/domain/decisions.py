"""Decides what is to be done about a pool: which gates hold, what is offered, who is listed and what comes next. Pure.

The same pool gives the same decision: everything is read off what is observed, and nothing off how it came about.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
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
    may_start = allowed.status is not ConditionStatus.FALSE and not observed.leaving
    runs = observed.runs or observed.serving or may_start
    offer = capacity(observed)
    fit = eligible(observed, offer)
    cap = offer.tokens if isinstance(offer, Offered) else None
    fronts = _fronts(observed, cap)
    findings = (
        allowed,
        roles_ready(observed, allowed=allowed.status is not ConditionStatus.FALSE),
        context_fits(offer, observed.wanted),
        integrity_enforced(observed),
        isolation_verified(observed, fit, fronts, cap),
    )
    if observed.is_cut:  # the cluster takes it off traffic for an advisory
        return Decision(findings, runs, offer, cap, (), None, serves=False)
    if observed.serving and _has_failed(fronts):  # what users reach is not what it should be: they are cut off
        return Decision(findings, runs, offer, cap, (), None, serves=False)
    if cap is None:
        return Decision(
            findings, runs, offer, None, _open(observed) if observed.serving else (), None, observed.serving
        )
    if observed.serving:
        return _serving(observed, fit, Decision(findings, runs, offer, cap, (), None, serves=True))
    return _coming_up(observed, fit, Decision(findings, runs, offer, cap, (), None, serves=False))


def _open(observed: Observed) -> tuple[Engine, ...]:
    """Engines that were let in stay: a gate that is raised later keeps new boots out, and does not cut what serves."""
    return tuple(
        engine
        for engine in observed.engines
        if engine.is_let_in and not (engine.boot is not None and observed.known.is_condemned(engine.boot.nonces))
    )


def _fronts(observed: Observed, cap: int | None) -> tuple[Verdict, ...]:
    """What is known of the fronts, where it is about this cap. What failed in front of users is no good under any."""
    if observed.serving and _has_failed(observed.known.fronts):
        return observed.known.fronts
    return observed.known.fronts if cap is not None and observed.applied_tokens == cap else ()


def _has_failed(verdicts: tuple[Verdict, ...]) -> bool:
    return any(verdict.outcome is Outcome.FAILED for verdict in verdicts)


def _serving(observed: Observed, fit: tuple[Engine, ...], so_far: Decision) -> Decision:
    """Each engine comes and goes by itself; what is open is kept as it should be before anything new is proven."""
    cap = so_far.cap
    assert cap is not None
    opened = _open(observed)
    above = _above(opened, cap)
    listed = tuple(engine for engine in opened if not (engine in above and _refused(observed, engine)))
    so_far = replace(so_far, listed=listed)
    if behind := _behind(observed, opened, cap):
        return replace(so_far, step=Admit(behind, cap))
    if above:  # it takes more than the smallest pool holds: nothing new is let in beside it
        return so_far
    return _next_boots(observed, fit, so_far, cap)


def _next_boots(observed: Observed, fit: tuple[Engine, ...], so_far: Decision, cap: int) -> Decision:
    """Let in who is proven, prove who is new, and then the fronts of routers that were not proven yet."""
    ready = tuple(engine for engine in fit if not engine.is_open and is_proven(engine, observed, cap))
    if admissible := tuple(engine for engine in ready if not _refused(observed, engine)):
        return replace(so_far, step=Admit(admissible, cap))
    if pairs := pairs_to_prove(observed, fit, cap):
        return replace(so_far, step=ProvePairs(pairs, cap))
    heard = all(engine.boot is not None for engine in so_far.listed)  # else it is not known whether it takes canaries
    if so_far.listed and heard and not _fronts(observed, cap) and _are_ready(observed.routers):
        return replace(so_far, step=ProveFronts(so_far.listed, observed.routers, cap))
    return so_far


def _are_ready(routers: tuple[PodFacts, ...]) -> bool:
    return bool(routers) and all(router.ready and router.ip for router in routers)


def _coming_up(observed: Observed, fit: tuple[Engine, ...], so_far: Decision) -> Decision:
    """Nothing is opened before every engine that was asked for is proven, and the front too."""
    cap = so_far.cap
    assert cap is not None
    allowed, ready, fits, intact, _ = so_far.findings
    if not all(finding.holds for finding in (allowed, ready, fits, intact)) or len(fit) < len(observed.engines):
        return so_far
    opened = _open(observed)  # since before: canaries tell them no cap, and a partner with a higher one fails a check
    if behind := _behind(observed, opened, cap):
        return replace(so_far, step=Admit(behind, cap))
    if _above(opened, cap):
        return so_far
    if pairs := pairs_to_prove(observed, fit, cap):
        return replace(so_far, step=ProvePairs(pairs, cap))
    if not all(is_proven(engine, observed, cap) for engine in fit):
        return so_far
    return _all_proven(observed, fit, replace(so_far, listed=fit), cap)


def _all_proven(observed: Observed, fit: tuple[Engine, ...], so_far: Decision, cap: int) -> Decision:
    """The router gets its list while doors take canaries alone, so that the front is proven before users come."""
    fronts = _fronts(observed, cap)
    if not fronts:
        return replace(so_far, step=ProveFronts(fit, observed.routers, cap)) if _are_ready(observed.routers) else so_far
    if _has_failed(fronts):
        return replace(so_far, listed=())
    if any(verdict.outcome is not Outcome.PASSED for verdict in fronts):
        return so_far
    shut = tuple(engine for engine in fit if not _is_up_to_date(observed, engine, cap))
    if shut:
        willing = tuple(engine for engine in shut if not _refused(observed, engine))
        return replace(so_far, step=Admit(willing, cap)) if willing else so_far
    return replace(so_far, serves=True)


def _behind(observed: Observed, engines: tuple[Engine, ...], cap: int) -> tuple[Engine, ...]:
    return tuple(e for e in engines if not _is_up_to_date(observed, e, cap) and not _refused(observed, e))


def _above(engines: tuple[Engine, ...], cap: int) -> tuple[Engine, ...]:
    """Open engines that take, or may take, more than this cap."""
    return tuple(e for e in engines if e.boot is not None and e.is_open and (e.boot.cap > cap or not e.boot.applied))


def _is_up_to_date(observed: Observed, engine: Engine, cap: int) -> bool:
    boot = engine.boot
    if boot is None:  # it cannot be told anything now
        return True
    if not (engine.is_open and boot.applied and boot.cap == cap and boot.peers == observed.peers):
        return False
    # One that is told and not there any more does no harm: its key died with its boot, and it may be back soon.
    return set(observed.partners_of(engine)) <= set(boot.partners)


def _refused(observed: Observed, engine: Engine) -> bool:
    return engine.boot is not None and engine.boot.nonces in observed.known.refusals
