"""OverlongPrompt: a prompt that fits is answered with the right count; each leg refuses one that does not, at once.

Prompts are ids of tokens, so that their length is exact whatever the tokenizer. `TOKENS` are ordinary in every
vocabulary that we know. Byte-level BPE has the 256 single bytes first, at ids 0 to 255 (GPT-2, and so Llama 3, Qwen,
GLM), behind two or three special ones in GPT-NeoX and DeepSeek; SentencePiece with byte fallback has the 256 byte
pieces behind its special ones, at 3 to 258 in Llama 2 and at 217 to 472 in Gemma 2. So 220 to 249 are bytes in all of
them. In Mistral's Tekken, which reserves its first 1,000 ids, they are control tokens without a meaning; the count is
right there too.

One over-long prompt is text and asks for a marker, as in the incident; it is made of as many numbers as its length in
tokens must be at least: no tokenizer that splits at spaces has fewer.

A long prompt is costly where the cap is a million tokens, so that three that fit are asked and no more, one of them
short. Those that do not fit cost a parse of their JSON.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvfence.verify import markers
from kvfence.verify.asking import Limits, Run, legs
from kvfence.verify.judging import (
    Finding,
    contradiction,
    crossed,
    not_judged,
    not_refused,
    unanswered,
    worst,
    wrong_count,
)

if TYPE_CHECKING:
    import random

    from kvfence.domain.asking import PairAnswer

TOKENS = range(220, 250)
"""See the module for why these."""

ANSWER_TOKENS = 4
"""Prompt and answer have cap - 2 tokens together at most (`max_req_len` of SGLang), so the longest prompt leaves five.
"""

REFUSED_SECONDS = 5.0
"""Until each leg has refused. The cap makes it milliseconds; in the incident decode waited five minutes."""

TOKENIZED_PER_SECOND = 100_000
"""What a slow tokenizer does, in tokens: a text is refused by its length only after that."""

_INPUT_KEPT = 6
"""`max_req_input_len` is that much below context and pool."""

_ASKING_TOKENS = 24
"""Of the answer to the text, should it come: enough for a marker and some text ahead of it."""


def accepted_lengths(limits: Limits) -> tuple[int, ...]:
    """Return lengths in tokens that must be answered, the shortest first: one token more than a page, and the edge."""
    lengths = {min(limits.longest, limits.page_size + 1), limits.longest - 2, limits.longest}
    return tuple(sorted(length for length in lengths if length >= 1))


def refused_lengths(limits: Limits) -> tuple[int, ...]:
    """Return lengths in tokens that must be refused, at most 18: past the cap, around what either pool would take,
    between the pools, and around the context that was asked for. What goes further is refused by any SGLang.
    """
    pools = sorted((limits.prefill_pool, limits.decode_pool))
    edges = [limits.longest, *(pool - _INPUT_KEPT for pool in pools), limits.requested_tokens]
    lengths = {edge + off for edge in edges for off in range(-2, 3)} | {sum(pools) // 2}
    return tuple(sorted(one for one in lengths if limits.longest < one <= limits.requested_tokens + 2))


def passes_needed(limits: Limits) -> int:
    """Return how many questions `prove` asks at most."""
    return len(accepted_lengths(limits)) + 1 + len(refused_lengths(limits))


async def prove(run: Run, limits: Limits, planted: tuple[str, ...]) -> Finding | None:
    """Ask one after the other, and return the first thing that is wrong.

    Args:
        run: the way to the pair.
        limits: of the pair.
        planted: markers that stand in earlier prompts.
    """
    lengths = accepted_lengths(limits)
    if not lengths:
        return not_judged(f"a cap of {limits.cap} tokens leaves no room for a prompt")
    for length in lengths:
        answer = await run.ask(ids(length, run.chance), ANSWER_TOKENS)
        if found := _judge_accepted(answer, length, planted):
            return _at(f"a prompt of {length} tokens, which fits", found)
    seconds = REFUSED_SECONDS + limits.longest / TOKENIZED_PER_SECOND
    answer = await run.ask(too_long_text(limits.longest, run.chance), _ASKING_TOKENS, seconds)
    if found := _judge_refused(answer, seconds, planted):
        return _at(f"a text of more than {limits.longest} tokens, which does not fit", found)
    for length in refused_lengths(limits):
        answer = await run.ask(ids(length, run.chance), ANSWER_TOKENS, REFUSED_SECONDS)
        if found := _judge_refused(answer, REFUSED_SECONDS, planted):
            return _at(f"a prompt of {length} tokens, which does not fit", found)
    return None


def too_long_text(longest: int, chance: random.Random) -> str:
    """Return a text of more tokens than `longest` for any tokenizer that splits at spaces; it ends with the lead."""
    return " ".join(chance.choices("23456789", k=longest + 1)) + markers.LEAD


def ids(length: int, chance: random.Random) -> tuple[int, ...]:
    """Return a prompt that nobody asked before: one that is in the prefix cache would need less room."""
    return tuple(chance.choices(TOKENS, k=length))


def _at(what: str, found: Finding) -> Finding:
    return Finding(found.outcome, f"{what}: {found.words}")


def _judge_accepted(answer: PairAnswer, length: int, planted: tuple[str, ...]) -> Finding | None:
    both = legs(answer)
    wrong = (wrong_count(leg, said, length) for leg, said in both)
    return worst([crossed(both, planted), contradiction(both), *wrong, unanswered(both)])


def _judge_refused(answer: PairAnswer, seconds: float, planted: tuple[str, ...]) -> Finding | None:
    both = legs(answer)
    return crossed(both, planted) or not_refused(both, seconds)
