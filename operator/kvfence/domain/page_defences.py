"""The part of the gate IntegrityEnforced that is about kvfence-engine's own defences: tags, scrubbing and coverage.

An engine that says nothing of them has none, whatever it was started with: SGLang goes on when a plugin did not load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvfence.api.v1alpha1.conditions import ConditionStatus, ConditionType
from kvfence.api.v1alpha1.pool import DefenceMode
from kvfence.api.v1alpha1.reasons import Reason
from kvfence.domain.findings import Finding
from kvfence.domain.plugin import has_page_defences

if TYPE_CHECKING:
    from kvfence.api.v1alpha1.pool import PoolSpec
    from kvfence.domain.engines import Attested, Engine, Rank
    from kvfence.domain.observed import Observed

_STRENGTH = (DefenceMode.DISABLED, DefenceMode.OBSERVE, DefenceMode.ENFORCE)
_OF_TAGS = ("ForeignPage", "UnwrittenPage")
"""Kinds of findings of page tags; each is a page that was looked at and was not verified."""
_BY_CLIENTS = frozenset({"Coverage"})
"""Whoever reaches both engines can bring it about with two prompts under one room; each such request is ended."""


def modes_of(spec: PoolSpec) -> dict[str, DefenceMode]:
    """Return what a pool asks for, by the names of `spec.integrity`."""
    asked = spec.integrity
    return {"pageTagging": asked.page_tagging, "pageScrubbing": asked.page_scrubbing, "coverage": asked.coverage}


def demanded(observed: Observed) -> dict[str, DefenceMode]:
    """Return what is demanded of every engine of the revision; nothing of a kvfence-engine that cannot have it."""
    if not has_page_defences(observed.plugin_version or observed.newest_plugin_version):
        return {}
    return {name: mode for name, mode in modes_of(observed.spec).items() if mode is not DefenceMode.DISABLED}


def enforced(observed: Observed) -> frozenset[str]:
    """Return the names of what every engine of the revision must enforce."""
    return frozenset(name for name, mode in demanded(observed).items() if mode is DefenceMode.ENFORCE)


def attests(engine: Engine, observed: Observed) -> Finding | None:
    """Return what is wrong with what an engine attests; none when it attests all that is demanded."""
    wanted = demanded(observed)
    if not wanted or engine.boot is None or engine.facts is None:
        return None
    if not engine.boot.ranks:
        return _finding(ConditionStatus.FALSE, Reason.PAGE_DEFENCE_NOT_ATTESTED, f"Pod {engine.name} tells no rank.")
    for rank in engine.boot.ranks:
        if (wrong := _of_rank(engine, rank, wanted)) is not None:
            return wrong
    if not engine.facts.repeats_nonce:
        return _finding(
            ConditionStatus.UNKNOWN,
            Reason.PAGE_DEFENCE_NOT_ATTESTED,
            f"Not all ranks of pod {engine.name} have repeated what was asked of them just now. They are asked again.",
        )
    return None


def wrong_pages(engines: tuple[Engine, ...]) -> str:
    """Return what the defences of these engines stopped, as a sentence; empty when there was nothing."""
    for engine in engines:
        found: dict[str, int] = {}
        for rank in engine.boot.ranks if engine.boot is not None else ():
            for kind, count in rank.attested.found.items() if rank.attested is not None else ():
                found[kind] = found.get(kind, 0) + count
        if told := ", ".join(f"{kind} {found[kind]}" for kind in sorted(found) if kind not in _BY_CLIENTS):
            return (
                f"Pod {engine.name} found wrong KV before anybody read it ({told}), and ended those requests. See its "
                "log; a few more within minutes close it."
            )
    return ""


def _of_rank(engine: Engine, rank: Rank, wanted: dict[str, DefenceMode]) -> Finding | None:
    said = rank.attested
    if said is None or not said.self_tested:
        return _finding(
            ConditionStatus.FALSE,
            Reason.PAGE_DEFENCE_NOT_ATTESTED,
            f"Rank {rank.index} of pod {engine.name} does not attest that {', '.join(sorted(wanted))} work on its KV "
            "pool. See the pod's log for what keeps kvfence-engine from them.",
        )
    for name, mode in wanted.items():
        runs = said.modes.get(name, "")
        if runs not in list(DefenceMode) or _STRENGTH.index(DefenceMode(runs)) < _STRENGTH.index(mode):
            return _finding(
                ConditionStatus.FALSE,
                Reason.PAGE_DEFENCE_OFF,
                f"Rank {rank.index} of pod {engine.name} says that {name} is {runs or 'not there'}, and the pool asks "
                f"for {mode.value}. Look for what starts it in another way than the pool says.",
            )
    return _not_tagged(engine, rank, said) if "pageTagging" in wanted else None


def _not_tagged(engine: Engine, rank: Rank, said: Attested) -> Finding | None:
    expected, verified = said.counts["pagesExpected"], said.counts["pagesVerified"]
    if verified + sum(said.found.get(kind, 0) for kind in _OF_TAGS) >= expected:
        return None
    return _finding(
        ConditionStatus.FALSE,
        Reason.PAGES_NOT_TAGGED,
        f"Rank {rank.index} of pod {engine.name} verified {verified} of {expected} pages that requests were to read, "
        "and says of the others nothing. Delete the pod, and report it with its log.",
    )


def _finding(status: ConditionStatus, reason: Reason, message: str) -> Finding:
    return Finding(ConditionType.INTEGRITY_ENFORCED, status, reason, message)
