"""TransferReceipt and TagLive pass engines that keep right receipts and find every fault, and no others."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from kvfence.domain.asking import Answer, PairAnswer, Question, Unanswered
from kvfence.domain.receipts import CANARY_RID, DRILL_RID, Receipt
from kvfence.domain.verdicts import Check, Outcome, Verdict
from kvfence.engine.door import DoorClient
from kvfence.verify import evidence
from kvfence.verify.evidence import Evidence
from kvfence.verify.pair_suite import passes_needed, prove_pair
from kvfence_engine import canaries
from kvfence_engine.hooked.drills import KINDS
from tests.unit.verify.stub_pair import LIMITS, SUBJECT, StubPair, refusal

ALL = frozenset({"pageTagging", "pageScrubbing", "coverage"})
BOTH = {"prefill": "10.0.0.1", "decode": "10.0.0.2"}
DRILLS = [
    *(("prefill", "ForeignPage"), ("prefill", "UnwrittenPage"), ("decode", "ForeignPage"), ("decode", "UnwrittenPage")),
    *(("decode", "OtherBytes"), ("decode", "Coverage")),
]


@dataclass
class Engines(StubPair):
    """A pair that keeps receipts and finds the faults that it is asked for."""

    ranks: int = 1
    blind: str = ""
    """A kind of fault that is not found."""
    worse: Callable[[Receipt], Receipt] = lambda kept: kept
    """Changes what is kept."""
    silent: bool = False
    kept: dict[tuple[str, str], list[Receipt]] = field(default_factory=dict)

    async def ask(self, pair: Any, question: Question, room: int, seconds: float | None = None) -> PairAnswer:
        answer = await super().ask(pair, question, room, seconds)
        legs = {"prefill": answer.prefill, "decode": answer.decode}
        for leg, rid in question.rids.items():
            kind = canaries.drilled(rid)
            found = {kind: 1} if kind and kind != self.blind else {}
            if found:
                legs[leg] = refusal(500)
            self._keep(leg, rid, room, answer.decode.prompt_tokens or 0, found)
        return PairAnswer(legs["prefill"], legs["decode"])

    def _keep(self, leg: str, rid: str, room: int, tokens: int, found: dict[str, int]) -> None:
        made = Receipt(room, leg, 0, tokens, 3, 3 - len(found), (0, tokens, tokens), 4096, not found, found)
        self.kept[BOTH[leg], rid] = [self.worse(replace(made, rank=rank)) for rank in range(self.ranks)]

    async def receipts(self, host: str, rid: str) -> tuple[Receipt, ...] | Unanswered:
        kept = self.kept.get((host, rid))
        return Unanswered("GET /receipt answered 404") if self.silent or kept is None else tuple(kept)


def proven(hosts: dict[str, str] | None = None, enforced: frozenset[str] = ALL, **changes: Any) -> dict[Check, Verdict]:
    """Return the verdicts by their check; the passes are used up to the last one."""
    engines = Engines(LIMITS.cap, set(), **changes)
    asked = Evidence(engines, BOTH if hosts is None else hosts, enforced)
    shown = [f"pass-{number}" for number in range(passes_needed(LIMITS, asked))]
    engines.passes = set(shown)
    verdicts = asyncio.run(prove_pair(engines, SUBJECT, LIMITS, iter(shown), random.Random(7), asked))
    rooms = engines.rooms
    assert len(set(rooms)) == len(rooms)
    by_check = {verdict.check: verdict for verdict in verdicts}
    if all(verdict.outcome is Outcome.PASSED for verdict in verdicts):
        assert not engines.passes
    return by_check


def test_a_pair_with_all_its_defences_passes() -> None:
    for ranks in (1, 2):
        seen = proven(ranks=ranks)
        assert {check: one.outcome for check, one in seen.items()} == dict.fromkeys(
            (Check.MARKER_ISOLATION, Check.OVERLONG_PROMPT, Check.TRANSFER_RECEIPT, Check.TAG_LIVE), Outcome.PASSED
        )


def test_every_fault_that_engines_can_make_is_asked_for_on_its_leg() -> None:
    asked = Evidence(Engines(1003, set()), BOTH, ALL)
    assert sorted(asked.drills) == sorted(DRILLS)
    assert {kind for _, kind in asked.drills} == {kind.value for kind in KINDS}
    assert (CANARY_RID, DRILL_RID) == (canaries.CANARY, canaries.DRILL)


@pytest.mark.parametrize(("leg", "kind"), DRILLS)
def test_a_fault_that_is_not_found_fails_whoever_answered(leg: str, kind: str) -> None:
    seen = proven({leg: BOTH[leg]}, blind=kind)[Check.TAG_LIVE]
    assert seen.outcome is Outcome.FAILED
    assert kind in seen.message
    assert f"{leg} answered 200" in seen.message


@pytest.mark.parametrize(
    ("worse", "words"),
    [
        (lambda kept: replace(kept, room=kept.room ^ 1), "another leg or room"),
        (lambda kept: replace(kept, leg="decode" if kept.leg == "prefill" else "prefill"), "another leg or room"),
        (lambda kept: replace(kept, tokens=kept.tokens - 1), "tokens of a prompt"),
        (lambda kept: replace(kept, pages_verified=2), "verified 2 of 3 pages"),
        (lambda kept: replace(kept, pages=0, pages_verified=0), "verified 0 of 0 pages"),
        (lambda kept: replace(kept, handed_over=None), "as handed over"),
        (lambda kept: replace(kept, handed_over=(1, kept.tokens, kept.tokens)), "as handed over"),
        (lambda kept: replace(kept, handed_over=(0, kept.tokens - 1, kept.tokens)), "as handed over"),
        (lambda kept: replace(kept, bytes=0), "looked at no bytes"),
        (lambda kept: replace(kept, verified=False), "found something"),
        (lambda kept: replace(kept, found={"EmptyPage": 1}), "found EmptyPage"),
    ],
)
@pytest.mark.parametrize("rank", [0, 1])
def test_a_receipt_that_differs_fails(worse: Callable[[Receipt], Receipt], words: str, rank: int) -> None:
    seen = proven(ranks=2, worse=lambda kept: worse(kept) if kept.rank == rank else kept)[Check.TRANSFER_RECEIPT]
    assert seen.outcome is Outcome.FAILED
    assert words in seen.message
    assert f"rank {rank} of" in seen.message


@pytest.mark.parametrize("leg", BOTH)
def test_a_rank_that_did_not_find_the_fault_fails_although_another_did(leg: str) -> None:
    def worse(kept: Receipt) -> Receipt:
        return replace(kept, found={}, verified=True) if kept.rank and kept.found else kept

    seen = proven({leg: BOTH[leg]}, ranks=2, worse=worse)[Check.TAG_LIVE]
    assert seen.outcome is Outcome.FAILED
    assert f"rank 1 of {leg} did not find" in seen.message


def test_without_a_receipt_nothing_is_judged() -> None:
    seen = proven(silent=True)
    assert {seen[check].outcome for check in (Check.TRANSFER_RECEIPT, Check.TAG_LIVE)} == {Outcome.NOT_JUDGED}


@pytest.mark.parametrize("status", [400, 404, 503, None])
def test_a_drill_that_was_refused_shows_nothing(status: int | None) -> None:
    def spoil(question: Question, _tokens: int, answer: PairAnswer) -> PairAnswer:
        if not any(canaries.is_drill(rid) for rid in question.rids.values()):
            return answer
        refused = refusal(status) if status is not None else Answer(None, "", None, 1.0)
        return PairAnswer(refused, refused)

    seen = proven(spoil=spoil, blind="ForeignPage")[Check.TAG_LIVE]
    assert seen.outcome is Outcome.NOT_JUDGED


def test_an_engine_that_answers_nobody_after_the_drills_is_not_judged() -> None:
    drilled: list[bool] = []

    def spoil(question: Question, _tokens: int, answer: PairAnswer) -> PairAnswer:
        drilled.append(any(canaries.is_drill(rid) for rid in question.rids.values()))
        return PairAnswer(refusal(500), refusal(500)) if any(drilled[:-1]) and not drilled[-1] else answer

    assert proven(spoil=spoil)[Check.TAG_LIVE].outcome is Outcome.NOT_JUDGED


def test_only_what_is_enforced_is_asked_for() -> None:
    assert Check.TAG_LIVE not in proven(enforced=frozenset())
    assert Check.TRANSFER_RECEIPT not in proven(enforced=frozenset())
    for name in ALL:
        asked = Evidence(Engines(1003, set()), BOTH, frozenset({name}))
        assert 0 < len(asked.drills) < len(DRILLS)
    assert proven(enforced=frozenset({"coverage"}))[Check.TAG_LIVE].outcome is Outcome.PASSED


def test_of_a_leg_that_serves_already_nothing_is_asked() -> None:
    only = proven({"decode": BOTH["decode"]})
    assert only[Check.TRANSFER_RECEIPT].outcome is Outcome.PASSED
    assert Check.TRANSFER_RECEIPT not in proven({})
    coverage_on_prefill = proven({"prefill": BOTH["prefill"]}, enforced=frozenset({"coverage"}))
    assert Check.TAG_LIVE not in coverage_on_prefill


def test_the_client_of_doors_is_a_witness() -> None:
    witness: evidence.Witness = DoorClient()
    assert witness is not None
