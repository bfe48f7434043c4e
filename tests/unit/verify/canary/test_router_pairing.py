from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from kvfence.domain.asking import Call, Fault, Heard, Reply
from kvfence.domain.verdicts import Outcome
from kvfence.verify.canary import router_pairing
from kvfence.verify.canary.result import Result
from kvfence.verify.canary.session import Known
from kvfence.verify.canary.stand_in import Flaw, Shape
from tests.unit.verify.canary.spoiled import NO_ANSWERS, Spoiled, judged, said

P1, P2, D1, D2 = "http://p1", "http://p2", "http://d1", "http://d2"
PAIRS = Spoiled(Shape.ROUTER).target


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(router_pairing, "PAUSE", 0)


@dataclass
class Router(Spoiled):
    """A router before engines whose counters a test moves."""

    shape: Shape = Shape.ROUTER
    prefills: tuple[str, ...] = (P1, P2)
    decodes: tuple[str, ...] = (D1, D2)
    servers: tuple[str, ...] = ()
    chance: random.Random = field(default_factory=lambda: random.Random(1))
    names_decode: bool = False
    counts_tokens: bool = True
    others: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Requests and tokens of other users at each question."""
    silent: set[str] = field(default_factory=set)
    """Engines without counters."""
    late: float = 0
    """Readings after a question that still show the old counters."""
    met: set[tuple[str, ...]] = field(default_factory=set)
    counts: dict[str, list[int]] = field(default_factory=dict)
    pending: list[list[Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__post_init__()
        roles = {"prefill": self.prefills, "decode": self.decodes, "server": self.servers}
        engines = tuple(Known(role, url) for role, urls in roles.items() for url in urls)
        self.target = replace(self.target, engines=engines)
        self.counts = {engine.url: [100, 5000] for engine in engines}

    def choose(self) -> tuple[str, ...]:
        if self.servers:
            return (self.chance.choice(self.servers),)
        return self.chance.choice(self.prefills), self.chance.choice(self.decodes)

    async def send(self, call: Call, seconds: float) -> Heard:
        self.calls.append(call)
        pair = self.choose()
        self.met.add(pair)
        tokens = len(call.body["prompt"]) + 1
        for url in pair:
            self.pending.append([int(self.late * len(self.counts)), url, tokens])
        for url, (requests, more) in self.others.items():
            self.counts[url][0] += requests
            self.counts[url][1] += more
        heard = Heard(200, "x", tokens, 1, seconds=0.01, worker=pair[-1] + "/" if self.names_decode else None)
        return self.spoil(call, heard)

    async def read(self, url: str, seconds: float) -> Reply:
        for one in self.pending:
            if one[0] <= 0:
                self.counts[one[1]][0] += 1
                self.counts[one[1]][1] += one[2]
        self.pending = [[left - 1, *rest] for left, *rest in self.pending if left > 0]
        engine = url.removesuffix("/metrics")
        if engine in self.silent:
            return Reply(404, b"", 0.01)
        requests, tokens = self.counts[engine]
        page = f"sglang:num_requests_total {requests}\n"
        page += f"sglang:prompt_tokens_total {tokens}\n" if self.counts_tokens else ""
        return self.replied(url, Reply(200, page.encode(), 0.01))


@dataclass
class Lockstep(Router):
    def choose(self) -> tuple[str, ...]:
        turn = len(self.calls)
        return self.prefills[turn % 2], self.decodes[turn % 2]


def judge(router: Router, **changes: Any) -> Result:
    result = judged(router_pairing, router, **changes)
    assert result.outcome is not Outcome.FAILED, "nothing is broken that it could see"
    return result


@pytest.mark.parametrize("seed", range(8))
def test_a_router_that_goes_round_in_lockstep_is_not_judged_and_the_pairs_that_it_leaves_out_are_named(
    seed: int,
) -> None:
    result = judged(router_pairing, Spoiled(Shape.ROUTER, (Flaw.LOCKSTEP_PAIRING,)), seed=seed)
    assert result.outcome is Outcome.NOT_JUDGED
    assert "16 questions met 2 of 4 pairs, and not http://prefill-1.example with http://decode-2.example" in (
        result.message
    )
    assert "ask each of these pairs directly: `kvfence canary PREFILL_URL,DECODE_URL`" in result.message
    assert "http://prefill-1.example with http://decode-1.example: 8 questions" in result.evidence


@pytest.mark.parametrize("seed", range(8))
def test_a_router_that_uses_all_pairs_passes(seed: int) -> None:
    result = judged(router_pairing, Spoiled(Shape.ROUTER), seed=seed)
    assert result.outcome is Outcome.PASSED
    assert "All of 4 pairs were met" in result.message


@pytest.mark.parametrize("shape", [Shape.SERVER, Shape.PAIR])
def test_what_is_asked_directly_needs_no_router(shape: Shape) -> None:
    caller = Spoiled(shape)
    assert judged(router_pairing, caller).outcome is Outcome.PASSED
    assert not caller.calls


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("counts_tokens", [True, False])
@pytest.mark.parametrize("names_decode", [True, False])
def test_it_never_says_that_a_pair_was_met_that_was_not(seed: int, counts_tokens: bool, names_decode: bool) -> None:
    router = Router(chance=random.Random(seed), counts_tokens=counts_tokens, names_decode=names_decode)
    result = judge(router)
    wanted = {(p, d) for p in router.prefills for d in router.decodes}
    assert (result.outcome is Outcome.PASSED) == (router.met == wanted)


@pytest.mark.parametrize("seed", range(20))
def test_what_others_do_meanwhile_is_never_taken_for_a_pair_that_was_met(seed: int) -> None:
    chance = random.Random(seed)

    @dataclass
    class Busy(Router):
        def choose(self) -> tuple[str, ...]:
            for url in self.counts:
                requests = chance.choice([0, 0, 0, 1, 2])
                self.counts[url][0] += requests
                self.counts[url][1] += requests * chance.choice([1, 1, 300, 900])
            return chance.choice(self.prefills[:1]), chance.choice(self.decodes[:1])

    router = Busy(late=chance.choice([0, 1]), names_decode=chance.random() < 0.3)
    result = judge(router, seed=seed)
    assert result.outcome is Outcome.NOT_JUDGED, "it went to one of four pairs"
    met = {line.rpartition(": ")[0] for line in result.evidence if not line.endswith(": none")}
    assert met <= {f"{P1} with {D1}"}


@dataclass
class ToTheFirst(Router):
    def choose(self) -> tuple[str, ...]:
        return self.prefills[0], self.decodes[0]


def test_the_requests_of_others_are_not_taken_for_a_question_that_is_not_counted_yet() -> None:
    result = judge(ToTheFirst(names_decode=True, late=1, others={P2: (2, 900)}))
    assert f"{P2} with {D1}: none" in result.evidence


def test_without_counts_of_tokens_one_reading_is_not_enough() -> None:
    result = judge(ToTheFirst(names_decode=True, late=0.5, counts_tokens=False, others={P2: (1, 0)}))
    assert f"{P2} with {D1}: none" in result.evidence


def test_it_stops_when_all_pairs_were_met() -> None:
    router = Router(prefills=(P1,), decodes=(D1,))
    assert judge(router).outcome is Outcome.PASSED
    assert len(router.calls) == 1


def test_counters_that_lag_behind_an_answer_are_waited_for() -> None:
    assert judge(Router(late=2)).outcome is Outcome.PASSED
    result = judge(Router(late=20))
    assert result.outcome is Outcome.NOT_JUDGED


def test_health_checks_that_count_along_hide_nothing() -> None:
    router = Router(others={P1: (1, 1), D2: (1, 1)})
    assert judge(router).outcome is Outcome.PASSED


def test_questions_that_cannot_be_told_from_those_of_others_count_for_no_pair() -> None:
    busy = dict.fromkeys((P1, P2, D1, D2), (3, 3000))
    result = judge(Router(others=busy))
    assert result.outcome is Outcome.NOT_JUDGED
    assert "16 questions met 0 of 4 pairs" in result.message
    assert "16 of them could not be told from others'; try again with less load" in result.message


def test_a_header_that_names_decode_helps_where_only_prefill_counts() -> None:
    router = Router(silent={D1, D2}, names_decode=True)
    assert judge(router).outcome is Outcome.PASSED
    without = judge(Router(silent={D1, D2}))
    assert without.outcome is Outcome.NOT_JUDGED
    assert f"{D1} does not tell its counters." in without.message


def test_an_engine_without_counters_makes_the_others_count_only_where_tokens_fit() -> None:
    result = judge(Router(silent={P2}))
    assert result.outcome is Outcome.NOT_JUDGED
    assert f"{P2} with {D1}" in result.message
    assert f"{P1} with {D1}: none" not in result.evidence
    guessing = judge(Router(silent={P2}, counts_tokens=False, others={P1: (1, 0)}))
    assert all(line.endswith(": none") for line in guessing.evidence), "P1 may have worked on another's request"


def test_a_worker_that_the_router_does_not_list_is_named() -> None:
    router = Router(spoil=lambda _call, heard: replace(heard, worker="http://planted:1\n"))
    result = judge(router)
    assert result.outcome is Outcome.NOT_JUDGED
    assert "sent a question to 'http://planted:1\\n', which is not among the engines that we know" in result.message


def test_a_worker_that_is_listed_twice_is_one_and_said_to_be_twice() -> None:
    router = Router(prefills=(P1,), decodes=(D1,))
    result = judge(router, engines=(*router.target.engines, Known("decode", D1)))
    assert result.outcome is Outcome.PASSED
    assert "All of 1 pairs were met" in result.message
    assert f"The router lists {D1} twice" in result.message


def test_a_worker_that_goes_away_or_starts_anew_is_said() -> None:
    def gone(url: str, reply: Reply) -> Reply:
        return Reply(None, b"", 1.0, Fault.UNREACHABLE) if url.startswith(D2) and router.calls else reply

    router = Router(replied=gone)
    result = judge(router)
    assert result.outcome is Outcome.NOT_JUDGED
    assert f"{D2} does not tell its counters any more: it may be gone." in result.message

    def anew(url: str, reply: Reply) -> Reply:
        return Reply(200, b"sglang:num_requests_total 0\n", 1.0) if url.startswith(D2) and again.calls else reply

    again = Router(replied=anew)
    result = judge(again)
    assert f"The counters of {D2} went back: it was started anew meanwhile." in result.message


def test_servers_without_pd_are_met_one_by_one() -> None:
    router = Router(prefills=(), decodes=(), servers=("http://s1", "http://s2", "http://s3"))
    result = judge(router)
    assert result.outcome is Outcome.PASSED
    assert "All of 3 engines were met" in result.message


@pytest.mark.parametrize("engines", [(), (Known("prefill", P1),), (Known("decode", D1),), (Known("router", D1),)])
def test_a_router_whose_engines_are_not_known_is_not_judged(engines: tuple[Known, ...]) -> None:
    result = judge(Router(), engines=engines)
    assert result.outcome is Outcome.NOT_JUDGED
    assert "The engines behind this router are not known" in result.message


def test_engines_without_counters_are_not_judged() -> None:
    result = judge(Router(silent={P1, P2, D1, D2}))
    assert result.outcome is Outcome.NOT_JUDGED
    assert "--enable-metrics" in result.message


@pytest.mark.parametrize(("words", "heard"), NO_ANSWERS.items())
def test_no_answer_is_not_judged(words: str, heard: Heard) -> None:
    result = judge(Router(spoil=lambda _call, _heard: heard))
    assert result.outcome is Outcome.NOT_JUDGED
    assert words in result.message


def test_no_room_for_a_question_is_not_judged() -> None:
    result = judge(Router(), legs=(Known("router", "http://r", context_length=20),))
    assert "There is room for" in said(result)
