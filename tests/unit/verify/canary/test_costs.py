"""What a run may cost: GETs are counted and keep the pace, rounds go out at once, and a lost transfer ends nothing."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from kvfence.domain.asking import Call, Fault, Heard, Reply
from kvfence.domain.verdicts import Outcome
from kvfence.verify import isolation, markers
from kvfence.verify.canary import (
    abort_reuse,
    fake_transfer,
    health_check_rid,
    marker_isolation,
    overlong_prompt,
    planting,
    router_pairing,
)
from kvfence.verify.canary.run import CanaryCheck
from kvfence.verify.canary.session import BURST, Budget, BudgetSpentError, Known, Session
from kvfence.verify.canary.stand_in import Flaw, Shape
from tests.unit.verify.canary.spoiled import TIMED_OUT, Spoiled, judged, status

T = TypeVar("T")


class Clockwork(asyncio.SelectorEventLoop):
    """A loop in which time passes only while all wait: a busy machine changes nothing."""

    now = 1000.0

    def time(self) -> float:
        return self.now

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:  # type: ignore[attr-defined]
            self.now = max(self.now, self._scheduled[0].when())  # type: ignore[attr-defined]
        super()._run_once()  # type: ignore[misc]


def in_clockwork(work: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=Clockwork) as runner:
        return runner.run(work)


PAGE = b"sglang:num_requests_total 1\nsglang:prompt_tokens_total 1\n"


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(router_pairing, "PAUSE", 0)


def session_on(caller: Spoiled, requests: int, per_second: float = 0, **changes: object) -> Session:
    target = replace(caller.target, **changes)  # type: ignore[arg-type]
    return Session(caller, target, Budget(requests, 10**9, per_second), random.Random(3))


# --- GETs ---


class Counting(Spoiled):
    """A router before many engines, whose pages are behind a redirection; counts what it is asked to read."""

    def __init__(self, worker: str | None = None) -> None:
        super().__init__(Shape.ROUTER, spoil=lambda _call, heard: replace(heard, worker=worker))
        self.read_urls: list[str] = []

    async def read(self, url: str, seconds: float) -> Reply:
        self.read_urls.append(url)
        return Reply(307, b"", 0.01) if url.endswith("/metrics") else Reply(200, PAGE, 0.01)


MANY = tuple(Known("prefill" if n % 2 else "decode", f"http://e{n}") for n in range(64))


@pytest.mark.parametrize("requests", [40, 150, 500, 2_000])
def test_router_pairing_reads_no_more_than_it_may_however_many_engines_there_are(requests: int) -> None:
    caller = Counting()
    session = session_on(caller, requests, engines=MANY)
    result = asyncio.run(router_pairing.check(session))
    assert result.outcome is Outcome.NOT_JUDGED
    assert len(caller.read_urls) == session.budget.reads <= requests


def test_engines_of_the_role_that_the_router_names_are_read_only_until_it_does() -> None:
    caller = Counting(worker=MANY[0].url)
    asyncio.run(router_pairing.check(session_on(caller, 100_000, engines=MANY[:4])))
    decodes = [url for url in caller.read_urls if url.startswith((MANY[0].url + "/", MANY[2].url + "/"))]
    assert len(decodes) == 4, "both, once each, behind a redirection"
    assert len(caller.read_urls) > 8


def test_a_read_counts_and_keeps_the_pace() -> None:
    caller = Counting()

    async def read() -> tuple[float, int]:
        session = session_on(caller, 50, 50.0)
        loop = asyncio.get_running_loop()
        began = loop.time()
        await asyncio.gather(*(session.read("http://e/metrics", 1.0) for _ in range(BURST + 3)))
        took = loop.time() - began
        session.budget.reads = 50
        with pytest.raises(BudgetSpentError, match="GETs beside 50 requests"):
            await session.read("http://e/metrics", 1.0)
        return took, session.budget.asked

    took, asked = in_clockwork(read())
    assert took == pytest.approx(3 / 50)
    assert asked == 0
    assert len(caller.read_urls) == BURST + 3


# --- rounds ---


class Timed(Spoiled):
    """Notes at which time which prompts went out."""

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.sent: list[tuple[float, Call]] = []

    async def send(self, call: Call, seconds: float) -> Heard:
        self.sent.append((asyncio.get_running_loop().time(), call))
        return await super().send(call, seconds)


def sent_by(check: CanaryCheck, shape: Shape, per_second: float) -> list[tuple[float, Call]]:
    caller = Timed(shape)
    in_clockwork(check.check(session_on(caller, 10_000, per_second)))
    return caller.sent


@pytest.mark.parametrize("shape", [Shape.SERVER, Shape.PAIR])
def test_users_of_a_round_ask_at_once_though_the_rounds_keep_the_pace(shape: Shape) -> None:
    sent = sent_by(marker_isolation, shape, 60.0)
    legs = 2 if shape is Shape.PAIR else 1
    each = legs * (isolation.AT_ONCE + isolation.ASKING)
    for first in range(0, len(sent), each):
        together = [when for when, _ in sent[first : first + legs * isolation.AT_ONCE]]
        assert together[0] == together[-1], "as `Probing.at_once` takes for granted"
    assert sent[-1][0] - sent[0][0] > (len(sent) / legs - BURST - isolation.AT_ONCE) / 60


def test_those_that_are_left_and_those_that_follow_go_out_at_once() -> None:
    assert abort_reuse.AT_MOST + abort_reuse.FOLLOWING <= BURST
    sent = sent_by(abort_reuse, Shape.PAIR, 60.0)
    left = [when for when, call in sent if call.hang_up_after is not None]
    assert left
    rounds = [[left[0]]]
    for when in left[1:]:
        if when == rounds[-1][-1]:
            rounds[-1].append(when)
        else:
            rounds.append([when])
    assert len(rounds) <= sum(map(len, abort_reuse.MOMENTS.values())), "no round is torn apart by the pace"


def test_a_question_to_both_legs_of_which_one_is_left_costs_one_question() -> None:
    async def ask() -> tuple[int, list[float | None]]:
        caller = Spoiled(Shape.PAIR)
        session = session_on(caller, 10)
        asked = await session.ask_apart("a text", 4, hang_up_after={"decode": 1.0})
        await asyncio.gather(*(answer for _, answer in asked))
        assert len({call.body["bootstrap_room"] for call in caller.calls}) == 1
        return session.budget.asked, [call.hang_up_after for call in caller.calls]

    assert asyncio.run(ask()) == (1, [None, 1.0])


# --- transfers that are lost under load ---


def losing(count: int, *flaws: Flaw) -> Spoiled:
    """A pair that loses the transfers of the first prompts that plant a marker."""
    lost: list[str] = []

    def spoil(call: Call, heard: Heard) -> Heard:
        prompt = str(call.body["prompt"])
        if prompt.count(markers.LEAD) > 3 and (prompt in lost or len(lost) < count):
            if prompt not in lost:
                lost.append(prompt)
            return status(500) if len(lost) % 2 else TIMED_OUT
        return heard

    return Spoiled(Shape.PAIR, flaws, spoil)


@pytest.mark.parametrize("check", [overlong_prompt, fake_transfer])
@pytest.mark.parametrize("lost", range(planting.PATIENCE + 1))
def test_a_few_transfers_that_are_lost_do_not_end_a_check(check: CanaryCheck, lost: int) -> None:
    assert judged(check, losing(lost)).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("check", "flaw"), [(overlong_prompt, Flaw.STALE_PAGES), (fake_transfer, Flaw.FAKE_TRANSFER_ACCEPTED)]
)
def test_and_a_leak_is_seen_all_the_same(check: CanaryCheck, flaw: Flaw) -> None:
    assert judged(check, losing(planting.PATIENCE, flaw)).outcome is Outcome.FAILED


@pytest.mark.parametrize("check", [overlong_prompt, fake_transfer])
def test_more_lost_transfers_than_that_are_not_judged(check: CanaryCheck) -> None:
    result = judged(check, losing(planting.PATIENCE + 1))
    assert (result.outcome, "could not be planted" in result.message) == (Outcome.NOT_JUDGED, True)


# --- 403 ---


@pytest.mark.parametrize("goes_on", [True, False])
def test_403_counts_as_a_refusal_of_a_field_only_where_an_ordinary_question_is_answered_afterwards(
    goes_on: bool,
) -> None:
    shut: list[bool] = []

    def spoil(call: Call, heard: Heard) -> Heard:
        if call.body.get("bootstrap_host") == "2.2.2.2" or "rid" in call.body:
            shut.append(True)
            return status(403)
        return status(403) if shut and not goes_on else heard

    for check, shape in (
        (fake_transfer, Shape.PAIR),
        *((health_check_rid, shape) for shape in (Shape.PAIR, Shape.ROUTER)),
    ):
        shut.clear()
        assert judged(check, Spoiled(shape, spoil=spoil)).outcome is (Outcome.PASSED if goes_on else Outcome.NOT_JUDGED)


def test_403_says_nothing_about_the_length_of_a_prompt() -> None:
    def spoil(call: Call, heard: Heard) -> Heard:
        return status(403) if heard.fault is Fault.STATUS and heard.status == 400 else heard

    assert judged(overlong_prompt, Spoiled(Shape.SERVER, spoil=spoil)).outcome is Outcome.NOT_JUDGED
