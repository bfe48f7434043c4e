"""RouterPairing: which pairs of prefill and decode the questions of a canary really meet behind a router.

A router that goes round both roles in step, or sends light load to one pair, leaves pairs out (smg 1.13.0 round robin:
100 requests over two prefill and two decode engines met two of the four pairs). What a canary says through it then says
nothing of the others.

One question at a time goes through the router, with the counters of all engines read before and after it. The prefill
and the decode that each worked on just this one more request, of just so many tokens, are its pair; the header
`x-smg-routed-worker-id` names decode where there is one. A question that cannot be told from other users' requests
counts for no pair.

Passed when every pair was met. Else not judged, with the pairs that were not: nothing is broken, but they have to be
asked directly.
"""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kvfence.domain.verdicts import Check
from kvfence.verify import markers
from kvfence.verify.canary import counters
from kvfence.verify.canary.counters import Counted
from kvfence.verify.canary.edges import characters_at_most
from kvfence.verify.canary.people import is_answer, what_came
from kvfence.verify.canary.result import Result, no_room, not_judged, passed

if TYPE_CHECKING:
    from kvfence.domain.asking import Heard
    from kvfence.verify.canary.session import Known, Session

NAME = Check.ROUTER_PAIRING
HOSTILE = False

PER_PAIR = 4
"""Questions for each pair: a router that draws at random misses one of four pairs in one run of 25 then."""
MOST = 64
"""Questions at most; fewer where the budget of GETs does not last for so many readings of all engines."""
READ_SECONDS = 5.0
READINGS = 5
"""Times that the counters are read after an answer at most: they may lag behind it."""
PAUSE = 0.2
"""Seconds between two of them."""
HEALTH_CHECK_TOKENS = 1
"""Of the prompt of a health check, which SGLang counts as a request: those of a router hide no question."""
LARGEST = 200
"""Characters of a question."""
SMALLEST = len(markers.LEAD) + markers.LENGTH
SHOWN = 100
"""Characters of a worker's name that a sentence quotes."""

_ASK_THEM = (
    "Canaries through this router say nothing about them; ask each of these pairs directly: "
    "`kvfence canary PREFILL_URL,DECODE_URL`."
)


@dataclass
class _Seen:
    """What one run of the check has seen."""

    told: str | None = None
    """Role of the engine that the router names in its answers: which of this role it was need not be read."""

    met: dict[tuple[str, ...], int] = field(default_factory=dict)
    """URLs of prefill and decode, or of one server, and the questions that met there."""
    unclear: int = 0
    """Questions that counted for no pair."""
    notes: dict[str, None] = field(default_factory=dict)
    """Sentences about engines, each once and in order."""

    def note(self, sentence: str) -> None:
        self.notes[sentence] = None


async def check(session: Session) -> Result:
    """Ask one question after the other until all pairs were met.

    Raises:
        BudgetSpentError: when it would cost more than is left.
    """
    if not session.target.is_router:
        return passed("There is no router in between: what is asked directly is met.")
    seen = _Seen()
    engines = _engines(session, seen)
    wanted = _pairs(engines)
    size = characters_at_most(session.target, LARGEST)
    if not wanted:
        return not_judged(
            "The engines behind this router are not known, or not both prefill and decode are: where it lists its "
            "workers and they can be reached, their counters say which pairs a question meets."
        )
    if size < SMALLEST:
        return no_room(size, SMALLEST)
    if not _affordable(session, engines):
        return not_judged(f"{len(engines)} engines are too many to read for --max-requests {session.budget.requests}.")
    return await _meet(session, engines, size, seen)


async def _meet(session: Session, engines: tuple[Known, ...], size: int, seen: _Seen) -> Result:
    """Ask until all pairs were met, or as often as is worth it."""
    wanted = _pairs(engines)
    before = await _read(session, engines)
    if all(count is None for count in before.values()):
        hint = "None of the engines tells its counters: start them with --enable-metrics and let us reach them."
        return not_judged(hint, *seen.notes)
    questions = min(MOST, PER_PAIR * len(wanted))
    for asked in range(questions):
        if not _affordable(session, _to_read(engines, seen)):
            return _not_all(wanted, asked, seen)
        heard = await _ask(session, size)
        if not is_answer(heard):
            return not_judged(f"The router {what_came(heard)}, so that no pair was met.", *seen.notes)
        before |= await _attribute(session, engines, before, heard, seen)
        if wanted <= seen.met.keys():
            return passed(f"All of {len(wanted)} {_noun(wanted)} were met: {_counts(seen)}.{_also(seen)}")
    return _not_all(wanted, questions, seen)


async def _ask(session: Session, size: int) -> Heard:
    """Ask for one token, with a text that no cache knows and of a length that others' will hardly have."""
    (marker,) = markers.draw(1, session.chance)
    text = marker + markers.LEAD + markers.filler(LARGEST)
    (heard,) = await session.ask(text[: session.chance.randint(SMALLEST, size)], 1)
    return heard


def _not_all(wanted: set[tuple[str, ...]], questions: int, seen: _Seen) -> Result:
    missing = sorted(wanted - seen.met.keys())
    unclear = (
        f" {seen.unclear} of them could not be told from others'; try again with less load." if seen.unclear else ""
    )
    return not_judged(
        f"{questions} questions met {len(wanted) - len(missing)} of {len(wanted)} {_noun(wanted)}, and not "
        f"{', '.join(map(_with, missing))}.{unclear}{_also(seen)} {_ASK_THEM}",
        *(f"{_with(pair)}: {count} questions" for pair, count in sorted(seen.met.items())),
        *(f"{_with(pair)}: none" for pair in missing),
    )


def _engines(session: Session, seen: _Seen) -> tuple[Known, ...]:
    """Return the engines behind the router, each once."""
    engines: dict[str, Known] = {}
    for engine in session.target.engines:
        if engine.url in engines:
            seen.note(f"The router lists {engine.url} twice: it gets twice its share.")
        engines.setdefault(engine.url, engine)
    return tuple(engines.values())


def _affordable(session: Session, engines: tuple[Known, ...]) -> bool:
    """Whether all of them may be read once more."""
    return session.budget.reads_left >= len(engines) * counters.READS


def _to_read(engines: tuple[Known, ...], seen: _Seen) -> tuple[Known, ...]:
    return tuple(engine for engine in engines if engine.name != seen.told)


def _pairs(engines: tuple[Known, ...]) -> set[tuple[str, ...]]:
    """Return the URLs of all that can meet: each prefill with each decode, or each server with nobody."""
    of = {role: [engine.url for engine in engines if engine.name == role] for role in ("prefill", "decode", "server")}
    return {*itertools.product(of["prefill"], of["decode"]), *((url,) for url in of["server"])}


async def _read(session: Session, engines: tuple[Known, ...]) -> dict[str, Counted | None]:
    counted = await asyncio.gather(*(counters.read(session, engine.url, READ_SECONDS) for engine in engines))
    return dict(zip((engine.url for engine in engines), counted, strict=True))


async def _attribute(
    session: Session,
    engines: tuple[Known, ...],
    before: dict[str, Counted | None],
    heard: Heard,
    seen: _Seen,
) -> dict[str, Counted | None]:
    """Find which engines worked on a question, and return the counters that were read, as they are now.

    Those of the role that the router names are read no more from its first answer on. An answer that then names none of
    them counts for no pair, and all are read again for the next one.

    A count of tokens that fits is proof. Without one it has to be the same in two readings, or another's request would
    be taken for a question that is not counted yet.
    """
    named = next((one.name for one in engines if heard.worker and one.url == heard.worker.rstrip("/")), None)
    if seen.told is not None and named != seen.told:
        seen.told, seen.unclear = None, seen.unclear + 1
        return await _read(session, engines) if _affordable(session, engines) else {}
    seen.told = named
    earlier, after = None, before
    undecided = _to_read(engines, seen)
    for reading in range(READINGS):
        if reading:
            if not _affordable(session, undecided):
                break
            await asyncio.sleep(PAUSE)
        after = await _read(session, undecided)
        found = _worked(engines, before, after, heard, seen)
        tokens = [one.prompt_tokens for one in after.values() if one is not None]
        if found is not None and (found == earlier or None not in (*tokens, heard.prompt_tokens)):
            seen.met[found] = seen.met.get(found, 0) + 1
            return after
        earlier = found
    seen.unclear += 1
    return after


def _worked(
    engines: tuple[Known, ...],
    before: dict[str, Counted | None],
    after: dict[str, Counted | None],
    heard: Heard,
    seen: _Seen,
) -> tuple[str, ...] | None:
    """Return who worked on a question: prefill and decode, or a server; none when that is not certain."""
    roles = {engine.url: engine.name for engine in engines}
    worker = None if heard.worker is None else heard.worker.rstrip("/")
    if worker is not None and worker not in roles:
        seen.note(f"The router sent a question to {worker[:SHOWN]!r}, which is not among the engines that we know.")
        return None
    found: dict[str, str | None] = {}
    for role in ("prefill", "decode", "server"):
        read = [url for url, name in roles.items() if name == role and url in after]
        moves = {url: _move(url, before[url], after[url], seen) for url in read}
        found[role] = _the_one(moves, heard.prompt_tokens)
    if worker is not None:
        found[roles[worker]] = worker
    prefill, decode, server = found["prefill"], found["decode"], found["server"]
    if prefill is not None and decode is not None and server is None:
        return prefill, decode
    return (server,) if server is not None and prefill is decode is None else None


def _move(url: str, before: Counted | None, after: Counted | None, seen: _Seen) -> Counted | None:
    """Return by how much the counters of an engine have grown; none when that is not known."""
    if before is None or after is None:
        seen.note(f"{url} does not tell its counters" + (" any more: it may be gone." if before is not None else "."))
        return None
    tokens = None
    if before.prompt_tokens is not None and after.prompt_tokens is not None:
        tokens = after.prompt_tokens - before.prompt_tokens
    if after.requests < before.requests or (tokens or 0) < 0:
        seen.note(f"The counters of {url} went back: it was started anew meanwhile.")
        return None
    return Counted(after.requests - before.requests, tokens)


def _the_one(moves: dict[str, Counted | None], tokens: int | None) -> str | None:
    """Return the engine of a role that got the question; none when another can have.

    Where one does not tell its counters, only a count that fits exactly tells the others from it.
    """
    could = [url for url, move in moves.items() if move is not None and _may_be_ours(move, tokens)]
    move = moves[could[0]] if len(could) == 1 else None
    if move is None:
        return None
    if tokens is None or move.prompt_tokens is None:
        return could[0] if move.requests == 1 and None not in moves.values() else None
    return could[0] if move.prompt_tokens - tokens == (move.requests - 1) * HEALTH_CHECK_TOKENS else None


def _may_be_ours(move: Counted, tokens: int | None) -> bool:
    """Whether a question of so many tokens may be among what an engine has worked on."""
    if tokens is None or move.prompt_tokens is None:
        return move.requests > 0
    return move.prompt_tokens == tokens if move.requests == 1 else move.requests > 1 and move.prompt_tokens >= tokens


def _counts(seen: _Seen) -> str:
    return ", ".join(f"{_with(pair)} {count} times" for pair, count in sorted(seen.met.items()))


def _also(seen: _Seen) -> str:
    return "".join(f" {sentence}" for sentence in seen.notes)


def _noun(pairs: set[tuple[str, ...]]) -> str:
    return "pairs" if all(len(pair) == 2 for pair in pairs) else "engines"


def _with(pair: tuple[str, ...]) -> str:
    return " with ".join(pair)
