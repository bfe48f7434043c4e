"""Runs the canary: finds out what the target is, runs the checks on it, and keeps what came of each."""

from __future__ import annotations

import random
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from kvfence.cli.canary.callers import ByName
from kvfence.cli.canary.choosing import LEAST_TOKENS, chosen, patience, tokens_for
from kvfence.cli.canary.counted import CountedWeb
from kvfence.cli.canary.discovery import FIRST_SECONDS, NotToldError, Ways, discover
from kvfence.cli.canary.report import VERDICTS, Judged, LeftOut, Report, Verdict
from kvfence.cli.canary.telling import Telling
from kvfence.engine.caller import Caller
from kvfence.verify.canary.probes import probing_of
from kvfence.verify.canary.run import run
from kvfence.verify.canary.session import Budget, Session
from kvfence.verify.canary.suite import SUITE

if TYPE_CHECKING:
    from rich.console import Console

    from kvfence.cli.canary.asked import Asked
    from kvfence.domain.verdicts import Check
    from kvfence.verify.canary.run import CheckReport
    from kvfence.verify.canary.session import Target


@dataclass(frozen=True, slots=True)
class Screen:
    """Where progress is told."""

    console: Console
    moves: bool
    """It is a terminal on which a line may move."""


@dataclass
class Course:
    """What is known of a run at any time, so that one that is stopped has something to say."""

    asked: Asked
    began: datetime = field(default_factory=lambda: datetime.now(UTC))
    target: Target | None = None
    notes: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    checks: tuple[Judged, ...] = ()

    def report(self, *, interrupted: bool = False) -> Report:
        """Return what can be reported now."""
        return Report(
            self.asked.name, self.began, self.checks, self.left_out, self.target, self.notes, interrupted=interrupted
        )


async def examine(course: Course, screen: Screen) -> None:
    """Run all of it, and keep in `course` what came of it.

    Raises:
        WrongUsageError: the user named something else than what is there.
    """
    asked = course.asked
    budget = Budget(asked.pace.requests, asked.pace.tokens or LEAST_TOKENS, asked.pace.per_second)
    chance = random.SystemRandom() if asked.seed is None else random.Random(asked.seed)  # noqa: S311 - as asked for
    async with AsyncExitStack() as opened:
        web = await opened.enter_async_context(CountedWeb(budget, asked.api_key))
        strangers = await opened.enter_async_context(CountedWeb(budget))
        named = asked.urls if asked.reference is None else (*asked.urls, asked.reference)
        caller = ByName(
            await opened.enter_async_context(Caller(api_key=asked.api_key)),
            await opened.enter_async_context(Caller()),
            named,
        )
        ways = Ways(web, strangers, lambda target: Session(caller, target, budget, chance, FIRST_SECONDS), budget)
        try:
            found = await discover(asked, ways)
        except NotToldError as error:
            checks, course.left_out = chosen(asked.checks, tuple(SUITE), None)
            course.checks = tuple(Judged(check, Verdict.NOT_JUDGED, str(error)) for check in checks)
            return
        course.target, course.notes = found.target, (*course.notes, *found.notes)
        budget.tokens = asked.pace.tokens or tokens_for(found.target)
        await _run(course, Session(caller, found.target, budget, chance, patience(found.target)), screen)


async def _run(course: Course, session: Session, screen: Screen) -> None:
    checks, course.left_out = chosen(course.asked.checks, tuple(SUITE), session.target)
    seed = course.asked.seed
    controls = random.Random(0 if seed is None else seed)  # noqa: S311 - a control asks nobody but ourselves
    with Telling(screen.console, len(checks), session.budget, moves=screen.moves) as telling:

        def progress(check: Check, report: CheckReport | None) -> None:
            if report is None:
                telling.began(check)
                return
            telling.ended(report)
            course.checks = (*course.checks, judged(report, session.target))

        await run(session, [SUITE[check] for check in checks], controls, progress)


def judged(report: CheckReport, target: Target) -> Judged:
    """Return a check's report as it is printed."""
    verdict = VERDICTS[report.result.outcome]
    return Judged(
        report.check,
        verdict,
        report.result.message,
        report.result.evidence,
        report.requests,
        report.tokens,
        report.seconds,
        probing_of(report.check, target, report.requests) if verdict is Verdict.PASS else None,
    )
