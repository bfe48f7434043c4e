from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from kvfence.domain.verdicts import Check, Outcome
from kvfence.verify.canary import controls, run
from kvfence.verify.canary.result import Result, failed, passed
from kvfence.verify.canary.run import CheckReport
from kvfence.verify.canary.session import BURST, Budget, BudgetSpentError, Session
from kvfence.verify.canary.stand_in import Flaw, Shape, StandIn
from kvfence.verify.canary.suite import SUITE
from tests.unit.verify.canary.spoiled import Spoiled

Says = Callable[[frozenset[Flaw]], Result]


def as_it_must(flaws: frozenset[Flaw]) -> Result:
    return failed("It leaks.") if flaws else passed()


@dataclass
class Scripted:
    """A check that says what a test wants: of a stand-in with these flaws, and of the target as of one without."""

    says: Says = as_it_must
    asks: int = 0
    NAME: Check = Check.OVERLONG_PROMPT
    HOSTILE: bool = False
    seen: list[frozenset[Flaw]] = field(default_factory=list)

    async def check(self, session: Session) -> Result:
        flaws = session.caller.flaws if isinstance(session.caller, StandIn) else frozenset()
        self.seen.append(flaws)
        for _ in range(self.asks):
            await session.ask("abc", 7)
        return self.says(flaws)


def session_on(shape: Shape = Shape.PAIR, requests: int = 100, **changes: object) -> Session:
    caller = Spoiled(shape)
    target = replace(caller.target, **changes)  # type: ignore[arg-type]
    return Session(caller, target, Budget(requests, 10**6, 0), random.Random(1))


def reports(check: Scripted, session: Session | None = None) -> tuple[CheckReport, ...]:
    return asyncio.run(run.run(session or session_on(), [check], random.Random(2)))


def outcome(check: Scripted, session: Session | None = None) -> Result:
    return reports(check, session)[0].result


def test_a_check_runs_on_what_is_broken_on_what_works_and_then_on_the_target() -> None:
    check = Scripted()
    assert outcome(check).outcome is Outcome.PASSED
    flaws = controls.CONTROLS[Check.OVERLONG_PROMPT].flaws
    assert check.seen == [*(frozenset({flaw}) for flaw in flaws), frozenset(), frozenset()]


@pytest.mark.parametrize("blind", controls.CONTROLS[Check.OVERLONG_PROMPT].flaws)
def test_a_check_that_does_not_see_one_of_its_flaws_is_broken_and_not_green(blind: Flaw) -> None:
    check = Scripted(lambda flaws: passed() if blind in flaws else as_it_must(flaws))
    result = outcome(check)
    assert result.outcome is Outcome.BROKEN
    assert blind in result.message


def test_a_check_that_fails_on_what_works_is_broken() -> None:
    check = Scripted(lambda _: failed("It leaks."))
    assert outcome(check).outcome is Outcome.BROKEN
    assert len(check.seen) == len(controls.CONTROLS[Check.OVERLONG_PROMPT].flaws) + 1, "the target was not asked"


def test_a_control_that_cannot_be_judged_is_broken_too() -> None:
    assert outcome(Scripted(lambda _: Result(Outcome.NOT_JUDGED, "Why."))).outcome is Outcome.BROKEN


def test_a_control_costs_the_target_nothing_and_the_check_is_counted() -> None:
    session = session_on()
    (report,) = reports(Scripted(asks=3), session)
    assert (report.requests, report.tokens) == (3, 30)
    assert (session.budget.asked, session.budget.spent) == (3, 30)


def test_a_budget_that_is_spent_is_said_in_its_words() -> None:
    result = outcome(Scripted(asks=3), session_on(requests=2))
    assert result.outcome is Outcome.NOT_JUDGED
    assert "the budget of 2 requests" in result.message.lower()
    assert "--max-requests" in result.message


def test_a_hostile_check_runs_only_where_it_may() -> None:
    hostile = Scripted(HOSTILE=True)
    result = outcome(hostile, session_on(may_be_attacked=False))
    assert (result.outcome, "--i-own-this" in result.message) == (Outcome.NOT_JUDGED, True)
    assert hostile.seen == []
    assert outcome(hostile).outcome is Outcome.PASSED


def test_progress_is_told_at_the_begin_and_at_the_end_of_each_check() -> None:
    told: list[tuple[Check, Outcome | None]] = []
    asyncio.run(
        run.run(
            session_on(),
            [Scripted(), Scripted(NAME=Check.STREAM_ERRORS)],
            random.Random(2),
            lambda check, report: told.append((check, None if report is None else report.result.outcome)),
        )
    )
    assert told == [
        (Check.OVERLONG_PROMPT, None),
        (Check.OVERLONG_PROMPT, Outcome.PASSED),
        (Check.STREAM_ERRORS, None),
        (Check.STREAM_ERRORS, Outcome.PASSED),
    ]


def test_one_round_goes_out_at_once_and_more_keep_the_pace() -> None:
    async def take(questions: int) -> float:
        budget = Budget(100, 100, 50.0)
        loop = asyncio.get_running_loop()
        began = loop.time()
        await asyncio.gather(*(budget.take(1) for _ in range(questions)))
        return loop.time() - began

    assert asyncio.run(take(BURST)) < 1 / 50
    assert asyncio.run(take(BURST + 3)) >= 3 / 50


def test_a_budget_is_never_overdrawn() -> None:
    async def take() -> tuple[int, int]:
        budget = Budget(3, 100, 50.0)
        for _ in range(3):
            await budget.take(30)
        with pytest.raises(BudgetSpentError, match="3 requests and 100 tokens"):
            await budget.take(1)
        with pytest.raises(BudgetSpentError):
            await Budget(9, 100, 0).take(101)
        return budget.asked, budget.tokens_left

    assert asyncio.run(take()) == (3, 10)


@pytest.mark.parametrize("check", SUITE)
@pytest.mark.parametrize("shape", Shape)
def test_every_check_of_the_suite_sees_its_controls(check: Check, shape: Shape) -> None:
    session = session_on(shape)
    assert asyncio.run(run.control(SUITE[check], session, random.Random(3))) is None


@pytest.mark.parametrize("seed", range(5))
def test_a_control_does_not_hang_on_chance(seed: int) -> None:
    for check in (Check.MARKER_ISOLATION, Check.OVERLONG_PROMPT, Check.PROMPT_TOKENS, Check.STREAM_ERRORS):
        for shape in Shape:
            assert asyncio.run(run.control(SUITE[check], session_on(shape), random.Random(seed))) is None


def test_the_suite_has_each_check_that_has_a_control() -> None:
    assert set(SUITE) == set(controls.CONTROLS)
    assert all(module.NAME is name for name, module in SUITE.items())
    used = {flaw for control in controls.CONTROLS.values() for flaw in control.flaws}
    assert used == set(Flaw), "a flaw that nobody looks for is none"


def test_a_prompt_that_cannot_be_paid_for_is_not_even_written() -> None:
    session = Session(StandIn(Shape.SERVER), StandIn(Shape.SERVER).target, Budget(9, 1000, 0), random.Random(1))
    with pytest.raises(BudgetSpentError):
        session.ids(2**60)
    assert len(session.ids(1000)) == 1000
