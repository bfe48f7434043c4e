"""Puts changes together at random, and counts how they come off."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.fuzz.codings import CODINGS, CUTS, rubbish
from tests.fuzz.collectors import COLLECTORS, SORTING, STAMPING, beside_another
from tests.fuzz.columns import cut_at_column
from tests.fuzz.corpus import Field, field_logs
from tests.fuzz.judging import Answers, Score, answers, judge, told
from tests.fuzz.records import RECORDS, crash_after, cut_with_a_mark, earlier_start, hard_wrapped
from tests.fuzz.wrappings import REVERSING, TIMED, WRAPPINGS, texts_of_docker

Change = Callable[[random.Random, str], str]


@dataclass(frozen=True, slots=True)
class Case:
    """One changed log, made anew from its seed."""

    seed: int
    log: Field
    changes: tuple[str, ...]
    raw: bytes

    @property
    def ends_early(self) -> bool:
        """Whether its end is missing."""
        return any(change.__name__ in self.changes for change in CUTS)


@dataclass(slots=True)
class Tally:
    """What came out of many."""

    scores: Counter[Score] = field(default_factory=Counter)
    by_change: dict[str, Counter[Score]] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)


def case(seed: int) -> Case:
    """Return the changed log of a seed."""
    rng = random.Random(seed)
    log = rng.choice(field_logs())
    text = log.whole if rng.random() < 0.25 else log.body
    changes = []
    done: list[Change] = []
    for change in rng.sample(RECORDS, rng.choice([0, 1, 1, 2, 3])):
        tearing = {change, *done} & {hard_wrapped, cut_with_a_mark, crash_after}
        if (change is earlier_start and log.newest_first) or len(tearing) > 1:
            continue
        done.append(change)
        text = change(rng, text)
        changes.append(change.__name__)
    for change in rng.sample((*COLLECTORS, *WRAPPINGS), rng.choice([0, 0, 1, 1, 2])):
        if change in (*REVERSING, texts_of_docker) and {hard_wrapped, cut_with_a_mark} & {*done}:
            continue
        if change in (*STAMPING, *TIMED) and any(sorting in done for sorting in (*SORTING, *REVERSING)):
            continue
        done.append(change)
        text = change(rng, text)
        changes.append(change.__name__)
    if rng.random() < 0.1 and {hard_wrapped, cut_with_a_mark, crash_after, beside_another}.isdisjoint(done):
        done.append(cut_at_column)
        text = cut_at_column(rng, text)
        changes.append(cut_at_column.__name__)
    raw = text.encode()
    whole = {earlier_start, hard_wrapped, beside_another, cut_at_column, *SORTING, *REVERSING}.isdisjoint(done)
    codings = [one for one in CODINGS if (one not in CUTS or whole) and not (one is rubbish and cut_at_column in done)]
    for coding in sorted(rng.sample(codings, rng.choice([0, 0, 1, 1, 2])), key=CODINGS.index):
        raw = coding(rng, raw)
        changes.append(coding.__name__)
    return Case(seed, log, tuple(changes), raw)


def play(seeds: range) -> Tally:
    """Try the changed logs of these seeds."""
    tally = Tally()
    right = {log.name: answers(told(log.body.encode())) for log in field_logs()}
    for seed in seeds:
        made = case(seed)
        score = _score(made, right[made.log.name], tally)
        tally.scores[score] += 1
        for change in made.changes:
            tally.by_change.setdefault(change, Counter())[score] += 1
    return tally


def _score(made: Case, right: Answers, tally: Tally) -> Score:
    announced = 6247850 if made.log.failed else None
    what = f"seed {made.seed}: {made.log.name}, {', '.join(made.changes)}"
    try:
        after = told(made.raw)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what is looked for
        tally.wrong.append(f"{what}: {type(error).__name__}: {error}")
        return Score.WRONG
    score = judge(right, after, announced, may_fail=made.ends_early and made.log.failed_before)
    if score is Score.WRONG:
        tally.wrong.append(f"{what}: {after}")
    return score
