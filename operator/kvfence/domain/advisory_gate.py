"""What known faults of engines mean for a pool: which apply to it, and what its conditions say of them.

An advisory that is grave enough blocks where it is known to apply. Where that hangs on something that no server tells,
nothing is blocked (nobody could ever be let in) and the message names it. One that a managed pool is safe from, because
kvfence itself closes the hole, counts for whoever runs SGLang alone, and not here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvfence.api.v1alpha1.advisories import AdvisoryAction
from kvfence.api.v1alpha1.conditions import ConditionStatus, ConditionType
from kvfence.api.v1alpha1.reasons import Reason
from kvfence.domain.advisories import Advisory, Applies, Exemption, Subject, exempted, judge, lapsed, with_components
from kvfence.domain.findings import Finding
from kvfence.domain.severity import Severity

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from kvfence.api.v1alpha1.pool import PoolSpec
    from kvfence.domain.engines import Engine
    from kvfence.domain.observed import Observed

PACKAGE = "sglang"
PACKAGES = frozenset({PACKAGE, "mooncake-transfer-engine", "nixl", "lmcache"})
"""What an engine is made of. Of all but SGLang no server tells the version, so that they never block."""
BLOCKING = Severity.HIGH
"""From which severity on an advisory keeps engines out. What is less grave is for the doctor."""
NAMED = 8
"""Ids that a message lists."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What the advisories of a watchlist say about an engine, or about what a pool declares."""

    applying: tuple[Advisory, ...] = ()
    """The gravest first."""
    unknown: tuple[Advisory, ...] = ()
    """Those of which no server tells whether they apply."""


@dataclass(frozen=True, slots=True)
class Watchlist:
    """What the operator knows of advisories at one moment."""

    advisories: tuple[Advisory, ...] = ()
    """Those that count for pools, see `counting`."""
    problems: tuple[str, ...] = ()
    """Why what was added to the package's own cannot be used, each a sentence; empty when all is well."""
    now: datetime | None = None
    """For exemptions; `None` only where there are no advisories."""


def counting(advisories: Iterable[Advisory]) -> tuple[Advisory, ...]:
    """Return the advisories that can keep an engine out of a pool: grave ones, about what an engine is made of."""
    return tuple(
        one
        for one in advisories
        if one.severity.at_least(BLOCKING)
        and one.withdrawn is None
        and not one.closed_in_pools
        and not PACKAGES.isdisjoint(part.package for part in one.affected)
    )


def judged(watchlist: Watchlist, subjects: Iterable[Subject]) -> Judged:
    """Judge what runs, or would run."""
    applying, unknown = [], []
    parts = [part for subject in subjects for part in with_components(subject)]
    for advisory in watchlist.advisories:
        answers = {judge(advisory, part).applies for part in parts}
        if Applies.YES in answers:
            applying.append(advisory)
        elif Applies.UNKNOWN in answers:
            unknown.append(advisory)
    return Judged(_gravest_first(applying), tuple(unknown))


def running(engine: Engine) -> Subject:
    """Return an engine that answers as advisories see it."""
    facts = engine.facts
    assert facts is not None
    return Subject(PACKAGE, facts.version, engine.type, facts.settings, engine.environment)


def declared(spec: PoolSpec) -> tuple[Subject, ...]:
    """Return what a pool declares as advisories see it; nothing when it declares no release."""
    version = spec.engine.sglang.version
    if version is None:
        return ()
    backend = {"disaggregation_transfer_backend": spec.disaggregation.transfer_backend.lower()}
    return tuple(Subject(PACKAGE, version, role.type, backend) for role in spec.roles)


def of_engine(engine: Engine, observed: Observed) -> Finding | None:
    """Refuse an engine that answers, when an advisory applies to what it says of itself; none when it may go on."""
    return _refusal(observed, engine.judged.applying, f"SGLang in pod {engine.name}")


def of_declared(observed: Observed) -> Finding | None:
    """Refuse a pool before it is started, when an advisory applies to the release that it declares."""
    what = f"SGLang {observed.declared.version}, as engine.sglang.version says"
    return _refusal(observed, observed.judged.applying, what)


def refuses(spec: PoolSpec, of_spec: Judged, watchlist: Watchlist) -> bool:
    """Whether what a spec declares may not run, for an advisory."""
    if spec.advisories.action is AdvisoryAction.WARN:
        return False
    return bool(_not_exempted(spec, watchlist, of_spec.applying))


def not_judged(observed: Observed) -> str:
    """Return a sentence that names the advisories of which no server tells whether they apply; empty for none."""
    unknown = {one.id: one for engine in observed.engines for one in engine.judged.unknown}
    ids = [one.id for one in _counted(observed, unknown.values())]
    return f" Whether these apply no server tells (kvfence explain ID): {_listed(sorted(ids))}." if ids else ""


def gravest(observed: Observed) -> Advisory | None:
    """Return the gravest advisory that applies to a running engine. An exemption counts; a pool's own Warn does not,
    since the cluster decides which pools are cut.
    """
    return next(iter(_counted(observed, _applying(observed))), None)


def cut_words(observed: Observed) -> str:
    """Return why a pool that is cut is so, and what ends it."""
    advisory = gravest(observed)
    if advisory is None:
        return (
            "An advisory had the pool cut off, and not every engine tells what it runs now. Requests are answered by "
            "nobody until all of them do, and none of such gravity applies."
        )
    return (
        f"{_words(advisory)} It applies, and whoever runs this cluster has pools cut off for that: nobody is answered "
        f"until it does not apply to any engine. {advisory.what_to_do}{_exempt_it(observed, advisory)}"
    )


def tolerated(observed: Observed) -> Finding | None:
    """Say that the pool is weakened: it serves in spite of a fault, or has exempted one; none when neither is so."""
    applying = _applying(observed)
    warned = _counted(observed, applying) if observed.spec.advisories.action is AdvisoryAction.WARN else ()
    if warned:
        words = f"{_words(warned[0])} It applies, and engines are let in all the same: advisories.action is Warn."
        return _weakened(f"{words}{_more(warned)}")
    now = observed.watchlist.now
    standing = [one for one in _exemptions(observed.spec) if now is not None and now < one.until]
    if not standing:
        return None
    known = [one for one in standing if any(advisory.named(one.id) for advisory in observed.watchlist.advisories)]
    unknown = [one.id for one in standing if one not in known]
    words = f"The pool exempts itself from {_listed([one.id for one in standing])} under advisories.exemptions."
    if unknown:
        words += f" No grave advisory about engines is called {_listed(unknown)}: correct the id, or remove the entry."
    return _weakened(words)


def incomplete(observed: Observed) -> Finding | None:
    """Say that added advisories could not be used; none when all could."""
    problems = observed.watchlist.problems
    if not problems:
        return None
    more = f" And {len(problems) - 1} more: see the operator's log." if len(problems) > 1 else ""
    return Finding(ConditionType.SECURED, ConditionStatus.FALSE, Reason.ADVISORIES_INCOMPLETE, f"{problems[0]}{more}")


def _applying(observed: Observed) -> tuple[Advisory, ...]:
    """Return the advisories that apply to some engine, each once, the gravest first."""
    return _gravest_first({one.id: one for engine in observed.engines for one in engine.judged.applying}.values())


def _gravest_first(advisories: Iterable[Advisory]) -> tuple[Advisory, ...]:
    return tuple(sorted(advisories, key=lambda one: (one.severity.order, one.id)))


def _counted(observed: Observed, advisories: Iterable[Advisory]) -> tuple[Advisory, ...]:
    """Return those that the pool does not exempt."""
    return _not_exempted(observed.spec, observed.watchlist, advisories)


def _not_exempted(spec: PoolSpec, watchlist: Watchlist, advisories: Iterable[Advisory]) -> tuple[Advisory, ...]:
    now, exemptions = watchlist.now, _exemptions(spec)
    return tuple(one for one in advisories if now is None or exempted(one, exemptions, now) is None)


def _exemptions(spec: PoolSpec) -> tuple[Exemption, ...]:
    """Return those that somebody answers for; the API server refuses others, and a stored one may be older than that
    rule.
    """
    return tuple(
        Exemption(one.id, one.who, one.reason, one.until)
        for one in spec.advisories.exemptions
        if one.id.strip() and one.who.strip() and one.reason.strip()
    )


def _refusal(observed: Observed, applying: tuple[Advisory, ...], what: str) -> Finding | None:
    found = () if observed.spec.advisories.action is AdvisoryAction.WARN else _counted(observed, applying)
    if not found:
        return None
    return Finding(
        ConditionType.ENGINE_ALLOWED,
        ConditionStatus.FALSE,
        Reason.ADVISORY_APPLIES,
        f"{_words(found[0])} It applies to {what}: no new engine is let in, and those that serve go on. "
        f"{found[0].what_to_do}{_exempt_it(observed, found[0])}{_more(found)}",
    )


def _exempt_it(observed: Observed, advisory: Advisory) -> str:
    now = observed.watchlist.now
    ended = lapsed(advisory, _exemptions(observed.spec), now) if now is not None else None
    if ended is not None:
        return f" The pool's exemption from it ended at {ended.until.isoformat()}."
    return " If it does no harm here, say so under advisories.exemptions, with who decided it, why and until when."


def _weakened(words: str) -> Finding:
    return Finding(ConditionType.SECURED, ConditionStatus.FALSE, Reason.ADVISORY_TOLERATED, words)


def _words(advisory: Advisory) -> str:
    return f"{advisory.id} ({advisory.severity}): {advisory.summary.rstrip('.')}."


def _more(found: tuple[Advisory, ...]) -> str:
    return f" So do {_listed([one.id for one in found[1:]])}." if len(found) > 1 else ""


def _listed(ids: list[str]) -> str:
    more = f" and {len(ids) - NAMED} more" if len(ids) > NAMED else ""
    return ", ".join(ids[:NAMED]) + more
