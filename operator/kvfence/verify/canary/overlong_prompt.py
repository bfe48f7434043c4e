"""OverlongPrompt: around what each role holds, a prompt is answered with the right count or refused, and never half.

The fault that it is about: prefill's pool is smaller than what is advertised, a prompt between the two passes every
tokenizer, prefill hands over what is not there, and decode answers 200 out of pages that hold another user's words. So
users A leave markers in the pages first. Then users B ask with prompts of such lengths that end with the lead of a
marker, and users C with prompts at every limit, -2 to +2, and at every context. A prompt that no engine of a role can
hold has to be refused with a 4xx on each leg within seconds; any other is refused by all legs or answered by all of
them with the count of its tokens. Where engines or ranks of one role differ, a prompt that only some of them hold may
be answered or refused, as it goes to one or the other; but it may not hang.

Prompts are ids of tokens where the target takes them, else texts that were measured (`measuring`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kvfence.domain.asking import Fault
from kvfence.domain.verdicts import Check, Outcome
from kvfence.verify import judging, markers, overlong
from kvfence.verify.canary import edges, measuring, people, planting
from kvfence.verify.canary.measuring import Measure
from kvfence.verify.canary.result import Result, failed, not_judged, passed
from kvfence.verify.judging import (
    REFUSALS,
    Finding,
    contradiction,
    crossed,
    is_success,
    not_refused,
    unanswered,
    worst,
    wrong_count,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kvfence.verify.canary.people import Asked
    from kvfence.verify.canary.session import Prompt, Session, Target

NAME = Check.OVERLONG_PROMPT
HOSTILE = False

ASKING_TOKENS = 24
"""Of answers that could hold a marker: the rest of a lead and a whole marker are 18."""

MARKER_SECONDS = 12.0
"""Until such an answer must have come. On a busy machine a leak takes longer than a refusal may; too late it is judged
all the same, and what it holds is worth the wait.
"""

_UNTOLD = "The target tells neither what its KV pool holds nor its input limit"
_CURE = (
    "Do not let more than one user ask here: run one version from SGLang 0.5.21 on in all engines, without "
    "--allow-auto-truncate, and give all of them one --context-length that the smallest KV pool holds."
)


@dataclass(frozen=True)
class Bounds:
    """What a prompt of a certain length is judged by."""

    refused_from: int | None
    """Tokens that nobody can answer rightly, where that is known."""
    fits_below: int | None
    """Tokens that everybody takes, where that is known."""
    seconds: float
    """Until a prompt that fits must be answered."""

    def until(self, length: int) -> float:
        """Return seconds until the answer to a prompt of this length must be complete."""
        return self.refusal(length) if self.must_be_refused(length) else self.seconds

    def refusal(self, length: int) -> float:
        """Return seconds until a refusal of a prompt of this length must be complete."""
        return overlong.REFUSED_SECONDS + length / overlong.TOKENIZED_PER_SECOND

    def must_be_refused(self, length: int) -> bool:
        """Whether nobody can answer a prompt of this length."""
        return self.refused_from is not None and length >= self.refused_from

    def may_be_refused(self, length: int) -> bool:
        """Whether somebody cannot answer a prompt of this length."""
        return self.fits_below is not None and length >= self.fits_below


@dataclass
class _Run:
    session: Session
    bounds: Bounds
    planted: Mapping[str, str]
    measured: Measure | None
    asked: list[tuple[Asked, Finding | None]] = field(default_factory=list)

    async def ask(self, letter: str, length: int, prompt: Prompt, what: str, max_tokens: int) -> bool:
        """Ask, judge, and return whether to go on: not when a leg hung, whose pages are held for minutes then."""
        user = f"{letter}{sum(one.user.startswith(letter) for one, _ in self.asked) + 1}"
        until = self.bounds.until(length)
        if max_tokens == ASKING_TOKENS:
            until = max(until, MARKER_SECONDS)
        asked = await people.ask(self.session, user, what, prompt, max_tokens, seconds=until)
        self.asked.append((asked, judge(asked, length, self.bounds, self.planted)))
        return all(heard.fault is not Fault.TIMED_OUT for _, heard in asked.legs)

    @property
    def worst(self) -> Finding | None:
        """The first that failed, a marker before all else; then the first that could not be judged."""
        found = [one for _, one in self.asked]
        leaked = [one for asked, one in self.asked if people.whose(asked, self.planted)]
        return worst([*leaked, *found])


async def check(session: Session) -> Result:
    """Plant markers, ask between the limits, then at each of them.

    Raises:
        BudgetSpentError: when it would cost more than is left.
    """
    limits = edges.limits(session.target)
    if not limits and not edges.contexts(session.target):
        return not_judged(f"{_UNTOLD}, nor its context: no edge is known.")
    measured = await measuring.measure(session)
    if isinstance(measured, str) and not session.target.takes_token_ids:
        return not_judged(f"It takes no ids of tokens, and how it counts a text cannot be told: {measured}.")
    spent = session.budget.spent
    planted = await planting.plant(session)
    if isinstance(planted, Result):
        return planted
    spent = session.budget.spent - spent
    bounds = Bounds(edges.refused_from(session.target), min(limits, default=None), session.seconds)
    run = _Run(session, bounds, planted, measured if isinstance(measured, Measure) else None)
    await _between(run)
    if run.worst is None:
        await _at_the_edges(run)
    return _right(run, spent) if run.worst is None else _wrong(run, run.worst)


async def _between(run: _Run) -> None:
    """Ask for markers with prompts that one role takes and another cannot hold."""
    if run.measured is None:
        return
    limits = edges.limits(run.session.target)
    for wanted in edges.between_the_limits(run.session.target):
        length = run.measured.at_most(wanted)
        if length is None or (limits and not run.bounds.may_be_refused(length)):
            continue
        prompt = run.measured.text(length, run.session.chance)
        what = f"a text of {length} tokens that asks for a marker"
        if not await run.ask("B", length, prompt, what, ASKING_TOKENS):
            return
        cut = _cut(run.measured, length, limits[0]) if len(limits) > 1 else None
        if cut is not None:
            what = f"a text of {length} tokens that asks for a marker where it is cut"
            if not await run.ask("B", length, cut, what, ASKING_TOKENS):
                return


def _cut(measured: Measure, length: int, kept: int) -> str | None:
    """Return a prompt for an engine that cuts it; none where the tokenizer or the lengths leave no place for one."""
    if measured.begin is None:
        return None
    try:
        return markers.cut_asking_prompt(length, kept, measured.begin)
    except ValueError:  # no room for the leads in so few tokens
        return None


async def _at_the_edges(run: _Run) -> None:
    """Ask at each limit and each context, and stop at the first that is wrong."""
    for wanted in edges.at_the_edges(run.session.target):
        prompt = _of_length(run, wanted)
        if prompt is None:
            continue
        length, words, asked = prompt
        await run.ask("C", length, asked, words, overlong.ANSWER_TOKENS)
        if run.worst is not None:
            return


def _of_length(run: _Run, wanted: int) -> tuple[int, str, Prompt] | None:
    """Return a prompt of so many tokens, or as nearly as a text can be; with its length, and in words what it is."""
    if run.session.target.takes_token_ids:
        return wanted, f"a prompt of {wanted} tokens", run.session.ids(wanted)
    length = None if run.measured is None else run.measured.at_most(wanted)
    if run.measured is None or length is None:
        return None
    return length, f"a text of {length} tokens", run.measured.text(length, run.session.chance)


def judge(asked: Asked, length: int, bounds: Bounds, planted: Mapping[str, str]) -> Finding | None:
    """Return what is wrong with the answers to a prompt of so many tokens."""
    answers = asked.answers
    foreign = [marker for marker, user in planted.items() if user != asked.user]
    if found := crossed(answers, foreign) or contradiction(answers):
        return found
    if bounds.must_be_refused(length):
        return not_refused(answers, bounds.until(length))
    taken = [one for one in answers if is_success(one[1])]
    if len(taken) == len(answers):
        return worst(
            [
                *(_count(leg, said.prompt_tokens) for leg, said in answers),
                *(wrong_count(leg, said, length) for leg, said in answers),
                unanswered(answers),
            ]
        )
    refused = [leg for leg, said in answers if said.status in REFUSALS]
    if taken and refused:
        return judging.failed(f"{taken[0][0]} answered {taken[0][1].status} to what {refused[0]} refused")
    hangs = any(said.fault is Fault.TIMED_OUT for _, said in answers)
    if bounds.may_be_refused(length) and (refused or hangs):
        return not_refused([one for one in answers if one not in taken], bounds.refusal(length))
    return None if len(refused) == len(answers) else unanswered(answers)


def _count(leg: str, tokens: int | None) -> Finding | None:
    return judging.not_judged(f"{leg} does not tell how many tokens a prompt has") if tokens is None else None


def _right(run: _Run, spent: int) -> Result:
    target = run.session.target
    taken = sum(is_success(asked.answers[-1][1]) for asked, _ in run.asked)
    around = f"{len(run.asked)} prompts around {_edges(target)} tokens"
    if not taken:
        return not_judged(f"{around}: all were refused, those that fit as well.")
    counts = f"{taken} were answered with the right count, {len(run.asked) - taken} refused"
    if not edges.limits(target):
        return not_judged(f"{_UNTOLD}; of {around} {counts}, but where the engines stop is not known.")
    return passed(f"{around}: {counts}. {planting.words(len(run.planted), spent, target)}")


def _wrong(run: _Run, found: Finding) -> Result:
    leaked = tuple(line for asked, _ in run.asked for line in people.whose(asked, run.planted))
    wrong = [people.statuses(asked) for asked, one in run.asked if one is not None]
    first = next(asked for asked, one in run.asked if one == found)
    words = f"{found.words[0].upper()}{found.words[1:]} ({first.what})."
    words = f"{people.told(leaked) if leaked else words} The edges are at {_edges(run.session.target)} tokens."
    if found.outcome is Outcome.FAILED:
        return failed(f"{words} {_CURE}", *leaked, *wrong)
    return not_judged(words, *wrong)


def _edges(target: Target) -> str:
    return " and ".join(map(str, edges.limits(target) or edges.contexts(target)))
