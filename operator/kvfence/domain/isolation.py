"""The gate IsolationVerified: what the checks said about the engines and the front, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvfence.api.v1alpha1.conditions import ConditionStatus, ConditionType
from kvfence.api.v1alpha1.reasons import Reason
from kvfence.domain.context_fits import NAMED
from kvfence.domain.eligible import is_proven
from kvfence.domain.findings import Finding
from kvfence.domain.verdicts import Outcome, Verdict

if TYPE_CHECKING:
    from kvfence.domain.engines import Engine
    from kvfence.domain.observed import Observed


def isolation_verified(
    observed: Observed, engines: tuple[Engine, ...], fronts: tuple[Verdict, ...], cap: int | None
) -> Finding:
    """Return the condition IsolationVerified.

    Args:
        observed: the pool.
        engines: those that may be let in.
        fronts: what was said about the fronts, under the cap that is to be in force.
        cap: that one; none when nothing fits.
    """
    verdicts = _verdicts(observed, engines, fronts, cap)
    for outcome, status, reason in (
        (Outcome.FAILED, ConditionStatus.FALSE, Reason.CHECK_FAILED),
        (Outcome.NOT_JUDGED, ConditionStatus.UNKNOWN, Reason.CHECK_NOT_JUDGED),
    ):
        if found := [verdict for verdict in verdicts if verdict.outcome is outcome]:
            return _finding(status, reason, _words(found))
    proven = [engine for engine in engines if is_proven(engine, observed, cap)]
    waiting = len(engines) - len(proven)
    if observed.serving and proven:
        more = f" {waiting} new boots are being proven." if waiting else ""
        return _finding(
            ConditionStatus.TRUE,
            Reason.ISOLATION_PROVEN,
            f"All {len(proven)} engines that are let in are proven.{more}",
        )
    if engines and not waiting and fronts:
        return _finding(
            ConditionStatus.TRUE, Reason.ISOLATION_PROVEN, f"All {len(proven)} engines and the front are proven."
        )
    if engines and not waiting:
        return _finding(
            ConditionStatus.UNKNOWN, Reason.PROVING, f"All {len(proven)} engines are proven. The front comes next."
        )
    return _finding(
        ConditionStatus.UNKNOWN,
        Reason.PROVING,
        f"{len(proven)} of {len(observed.engines)} engines are proven with marker prompts and over-long prompts.",
    )


def _verdicts(
    observed: Observed, engines: tuple[Engine, ...], fronts: tuple[Verdict, ...], cap: int | None
) -> list[Verdict]:
    may_come = {engine.name for engine in engines}
    boots = [
        engine.boot.nonces
        for engine in observed.engines  # a boot that failed has its door shut, and is not among those that may come in
        if engine.boot is not None
        and (engine.name in may_come or observed.known.is_condemned(engine.boot.nonces))
        and not is_proven(engine, observed, cap)
    ]
    of_engines = [verdict for nonces in boots for verdict in observed.known.said(nonces)]
    return [*of_engines, *fronts]


def _words(verdicts: list[Verdict]) -> str:
    sentences = list(dict.fromkeys(f"{one.check}: {one.message}" for one in verdicts))
    more = f" And {len(sentences) - NAMED} more." if len(sentences) > NAMED else ""
    return " ".join(sentences[:NAMED]) + more


def _finding(status: ConditionStatus, reason: Reason, message: str) -> Finding:
    return Finding(ConditionType.ISOLATION_VERIFIED, status, reason, message)
