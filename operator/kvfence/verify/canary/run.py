"""Runs checks on a target, each after its own control: a check that cannot fail says nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from kvfence.domain.verdicts import Check, Outcome
from kvfence.verify.canary.controls import CONTROLS
from kvfence.verify.canary.result import Result, broken, not_judged
from kvfence.verify.canary.session import Budget, BudgetSpentError, Session
from kvfence.verify.canary.stand_in import Flaw, Shape, StandIn

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

CONTROL_REQUESTS, CONTROL_TOKENS = 10_000, 10_000_000
"""That a control may cost; it costs no server anything."""


class CanaryCheck(Protocol):
    """A module of this package that is a check."""

    @property
    def NAME(self) -> Check:  # noqa: N802 - a constant of a module
        """Which one it is."""
        ...

    @property
    def HOSTILE(self) -> bool:  # noqa: N802
        """Whether it does what an attacker would; see `Target.may_be_attacked`."""
        ...

    async def check(self, session: Session) -> Result:
        """Return what was seen.

        Raises:
            BudgetSpentError: `run` makes NotJudged of it.
        """
        ...


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What came of one check."""

    check: Check
    result: Result
    seconds: float
    """Of the real check, without its control."""
    requests: int
    """That the real check asked."""
    tokens: int
    """That it spent, on each leg."""


Progress = Callable[[Check, CheckReport | None], None]
"""Called with None when a check begins, and with its report when it has ended."""


async def run(
    session: Session,
    checks: Sequence[CanaryCheck],
    control_chance: random.Random,
    progress: Progress | None = None,
) -> tuple[CheckReport, ...]:
    """Run the checks one after the other.

    Args:
        session: the way to the target; its budget is for all of them.
        checks: modules such as those of `kvfence.verify.canary.suite.SUITE`.
        control_chance: draws for the controls, so that these take nothing from the session's own draws.
        progress: is told when a check begins and when it has ended.
    """
    reports = []
    for one in checks:
        if progress is not None:
            progress(one.NAME, None)
        began, asked, spent = time.monotonic(), session.budget.asked, session.budget.spent
        unfit = _forbidden(session, one) or await control(one, session, control_chance)
        if unfit is None:
            began = time.monotonic()
        result = unfit or await _judged(one, session)
        took = 0.0 if unfit is not None else time.monotonic() - began
        budget = session.budget
        report = CheckReport(one.NAME, result, took, budget.asked - asked, budget.spent - spent)
        if progress is not None:
            progress(one.NAME, report)
        reports.append(report)
    return tuple(reports)


async def control(one: CanaryCheck, session: Session, chance: random.Random) -> Result | None:
    """Return why a check does not count; none when it fails where it must and passes where all is well."""
    by_name = CONTROLS[one.NAME]
    shape = by_name.shape(session.target)
    for flaw in by_name.flaws:
        seen = await _on_stand_in(one, shape, frozenset({flaw}), chance)
        if seen.outcome is not by_name.seen_as:
            what = f"a {shape} that is broken on purpose ({flaw})"
            return broken(f"The check says nothing: on {what} it says {seen.outcome}. Report this. {seen.message}")
    seen = await _on_stand_in(one, shape, frozenset(), chance)
    if seen.outcome is not Outcome.PASSED:
        what = f"a {shape} that works"
        return broken(f"The check says nothing: on {what} it says {seen.outcome}. Report this. {seen.message}")
    return None


async def _on_stand_in(one: CanaryCheck, shape: Shape, flaws: frozenset[Flaw], chance: random.Random) -> Result:
    stand_in = StandIn(shape, flaws)
    return await _judged(one, Session(stand_in, stand_in.target, Budget(CONTROL_REQUESTS, CONTROL_TOKENS, 0), chance))


async def _judged(one: CanaryCheck, session: Session) -> Result:
    try:
        return await one.check(session)
    except BudgetSpentError as error:
        return not_judged(f"{str(error).capitalize()}: allow more with --max-requests or --max-tokens.")


def _forbidden(session: Session, one: CanaryCheck) -> Result | None:
    if not one.HOSTILE or session.target.may_be_attacked:
        return None
    return not_judged("It does what an attacker would, and this is no local address: say --i-own-this if it is yours.")
