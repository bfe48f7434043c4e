"""The checks of a directed pair, in which the operator plays the router: both legs, a room of its own, and one
single-use pass for each question.

Over a cap of a thousand tokens they take a few seconds. Over a million they take as long as the engines need for two
prompts of a million tokens, one after the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvfence.domain.verdicts import Check, Outcome, Verdict
from kvfence.verify import evidence, isolation, markers, overlong
from kvfence.verify.asking import Asker, Limits, Run, Subject

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

    from kvfence.verify.evidence import Evidence
    from kvfence.verify.judging import Finding

__all__ = ["Limits", "Subject", "passes_needed", "prove_pair"]

_TO_DO = {
    (Check.MARKER_ISOLATION, Outcome.FAILED): (
        "Do not let anyone in: take an image with a fixed engine, and report what the logs of both pods say."
    ),
    (Check.OVERLONG_PROMPT, Outcome.FAILED): (
        "Do not let anyone in: use a release of SGLang that refuses such prompts (0.5.20 and older do not), and see in "
        "the logs of both pods whether kvfence-engine has applied the cap."
    ),
    (Check.TRANSFER_RECEIPT, Outcome.FAILED): (
        "Do not let anyone in: prefill and decode do not work on the same request, or do not look at all of it. Report "
        "what the logs of both pods say."
    ),
    (Check.TAG_LIVE, Outcome.FAILED): (
        "Do not let anyone in: a defence that is switched on does not find what it is there for. Report what the logs "
        "of both pods say."
    ),
}
_TRIED_AGAIN = "It is tried again; see the logs of both pods."


def passes_needed(limits: Limits, asked: Evidence | None = None) -> int:
    """Return how many passes `prove_pair` may use; both doors must know all of them."""
    return isolation.passes_needed(limits) + overlong.passes_needed(limits) + evidence.passes_needed(asked)


async def prove_pair(
    client: Asker,
    subject: Subject,
    limits: Limits,
    passes: Iterator[str],
    chance: random.Random,
    asked: Evidence | None = None,
) -> tuple[Verdict, ...]:
    """Check MarkerIsolation and OverlongPrompt on a pair whose doors are on canary, and what the engines can show.

    Args:
        client: a `kvfence.engine.pair.Client`. Its limit must leave time for the longest prompt.
        subject: the pair.
        limits: what it was measured to hold, and the cap that its doors have.
        passes: in clear; at least `passes_needed`.
        chance: a `random.SystemRandom()` wherever users can reach the engines; see `markers`.
        asked: for TransferReceipt and TagLive; none when the engines have no defences of pages to show.

    Raises:
        ValueError: when the passes have run out.
    """
    run = Run(client, subject, passes, chance)
    planted = markers.draw(isolation.AT_ONCE, chance)
    found = {
        Check.MARKER_ISOLATION: await isolation.prove(run, limits, planted),
        Check.OVERLONG_PROMPT: await overlong.prove(run, limits, planted),
    }
    if asked is not None and evidence.passes_needed(asked):
        found[Check.TRANSFER_RECEIPT] = await evidence.prove_receipt(run, limits, asked)
        if asked.drills:
            found[Check.TAG_LIVE] = await evidence.prove_drills(run, limits, asked)
    return tuple(_verdict(check, subject.name, finding) for check, finding in found.items())


def _verdict(check: Check, subject: str, finding: Finding | None) -> Verdict:
    if finding is None:
        return Verdict(check, Outcome.PASSED, subject)
    to_do = _TO_DO.get((check, finding.outcome), _TRIED_AGAIN)
    return Verdict(check, finding.outcome, subject, f"{subject}: {finding.words}. {to_do}")
