"""A pair that is made of a few lines, works, and can be broken in one place."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from kvfence.domain.asking import Answer, Fault, Pair, PairAnswer, Question
from kvfence.domain.verdicts import Check, Outcome, Verdict
from kvfence.verify import markers
from kvfence.verify.pair_suite import Limits, Subject, passes_needed, prove_pair

Spoil = Callable[[Question, int, PairAnswer], PairAnswer]


@dataclass
class StubPair:
    """Answers as the copy model behind two doors on canary does: one token per character and one to begin with."""

    cap: int
    passes: set[str]
    spoil: Spoil = lambda _question, _tokens, answer: answer
    """Changes an answer; gets the length of the prompt in tokens."""
    asked: list[Question] = field(default_factory=list)
    rooms: list[int] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0

    async def ask(self, pair: Pair, question: Question, room: int, seconds: float | None = None) -> PairAnswer:
        self.asked.append(question)
        self.rooms.append(room)
        tokens = len(question.prompt) + isinstance(question.prompt, str)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        return self.spoil(question, tokens, self._answer(question, tokens))

    async def ask_leg(self, pair: Pair, question: Question, room: int, leg: str) -> Answer:
        answer = await self.ask(pair, question, room)
        return answer.prefill if leg == "prefill" else answer.decode

    def _answer(self, question: Question, tokens: int) -> PairAnswer:
        if question.pass_ not in self.passes:
            return both(refusal(503))
        self.passes.discard(question.pass_)
        if tokens > self.cap - 7:
            return both(refusal(400))
        text = _copied(question.prompt)[: question.max_tokens] if isinstance(question.prompt, str) else "...."
        return PairAnswer(Answer(200, text[:1], tokens, 0.01), Answer(200, text, tokens, 0.02))


def _copied(prompt: str) -> str:
    """What follows the first lead, as far as the prompt goes."""
    _, lead, behind = prompt.partition(markers.LEAD)
    return behind if lead and behind else "nothing to copy"


def refusal(status: int, seconds: float = 0.01) -> Answer:
    return Answer(status, "", None, seconds, Fault.STATUS, "no")


def both(answer: Answer) -> PairAnswer:
    return PairAnswer(answer, answer)


def on_decode(answer: PairAnswer, **changes: object) -> PairAnswer:
    return replace(answer, decode=replace(answer.decode, **changes))  # type: ignore[arg-type]


def on_prefill(answer: PairAnswer, **changes: object) -> PairAnswer:
    return replace(answer, prefill=replace(answer.prefill, **changes))  # type: ignore[arg-type]


SUBJECT = Subject("pod a with pod b", Pair("http://a", "http://b", "10.0.0.1"), "tiny")
LIMITS = Limits(cap=1003, requested_tokens=4096, prefill_pool=1024, decode_pool=4096, page_size=16)
LONGEST = 996
PASSED = {Check.MARKER_ISOLATION: Outcome.PASSED, Check.OVERLONG_PROMPT: Outcome.PASSED}


def as_it_is(_question: Question, _tokens: int, answer: PairAnswer) -> PairAnswer:
    return answer


def proven(spoil: Spoil = as_it_is, limits: Limits = LIMITS) -> tuple[dict[Check, Verdict], StubPair]:
    """Return the verdicts by their check, and the pair that was asked."""
    passes = [f"pass-{i}" for i in range(passes_needed(limits))]
    pair = StubPair(limits.cap, set(passes), spoil)
    verdicts = asyncio.run(prove_pair(pair, SUBJECT, limits, iter(passes), random.Random(7)))
    return {verdict.check: verdict for verdict in verdicts}, pair


def outcomes(verdicts: dict[Check, Verdict]) -> dict[Check, Outcome]:
    return {check: verdict.outcome for check, verdict in verdicts.items()}


def is_planted(question: Question) -> bool:
    return isinstance(question.prompt, str) and question.prompt.count(markers.LEAD) == 2


def is_asking(question: Question) -> bool:
    return isinstance(question.prompt, str) and not is_planted(question) and len(question.prompt) < LONGEST


def when(which: Callable[[Question, int], bool], change: Callable[[PairAnswer], PairAnswer]) -> Spoil:
    """Return what changes the answers to some questions."""
    return lambda question, tokens, answer: change(answer) if which(question, tokens) else answer


def leaking() -> Spoil:
    """Answer with what the one before planted."""
    seen: list[str] = []

    def spoil(question: Question, _tokens: int, answer: PairAnswer) -> PairAnswer:
        if not is_planted(question):
            return answer
        seen.append(answer.decode.text)
        return on_decode(answer, text=seen[-2]) if len(seen) > 1 else answer

    return spoil


def leaking_later(where: Callable[[PairAnswer, str], PairAnswer]) -> Spoil:
    """Give what was planted first to those who planted nothing."""
    seen: list[str] = []

    def spoil(question: Question, _tokens: int, answer: PairAnswer) -> PairAnswer:
        if is_planted(question):
            seen.append(answer.decode.text[3:10])
        return where(answer, f"so: {seen[0]}...") if is_asking(question) else answer

    return spoil


OK = Answer(200, "an answer", 3000, 0.1)


def is_too_long(_question: Question, tokens: int) -> bool:
    return tokens > LONGEST
