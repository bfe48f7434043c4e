"""Reads a log as a stream, however long it is."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, BinaryIO

from kvfence.domain.diagnosis.seen import EngineSeen, Unreadable
from kvfence.engine.logs import process, sglang, vllm
from kvfence.engine.logs.columns import Columns
from kvfence.engine.logs.engines import engines
from kvfence.engine.logs.facts import Fact, Kind, Said
from kvfence.engine.logs.lines import Lines
from kvfence.engine.logs.prefix import Prefix
from kvfence.engine.logs.records import broken_stamp, records
from kvfence.engine.logs.text import Text

if TYPE_CHECKING:
    from kvfence.api.v1alpha1.pool import RoleType
    from kvfence.engine.logs.records import Record

MOST_FACTS = 4_000
"""Of one engine that are kept, the last ones: dozens of starts of dozens of ranks."""

MOST_PROCESSES = 500
HINT = "Give the log from the engine's start on, or the address of the running server."


def read(stream: BinaryIO, source: str) -> tuple[EngineSeen | Unreadable, ...]:
    """Return what a log tells of the engines that wrote it.

    Args:
        stream: the log's bytes: text, wide text or gzip. Read once from where it stands, in bounded memory.
        source: what the user named.

    Raises:
        OSError: when the stream cannot be read.
    """
    text = Text(stream)
    collector = _Collector()
    for record in records(Lines(text)):
        collector.take(record)
        if collector.overflow:
            return (Unreadable(source, f"It names more than {MOST_PROCESSES} processes: cut it down to the engine's."),)
    if text.empty:
        return (Unreadable(source, f"It is empty. {HINT}"),)
    found = collector.engines()
    if not found:
        broken = "It is compressed and ends too early or is broken. " if text.cut else ""
        return (Unreadable(source, f"{broken}No line of SGLang or vLLM that tells of a KV pool is in it. {HINT}"),)
    return tuple(_named(found, source, several=len(collector.names - {""}) > 1, cut=text.cut))


@dataclass(slots=True)
class _Process:
    """The log of one process among others in one text."""

    facts: list[Fact] = field(default_factory=list)
    ranks: set[int | None] = field(default_factory=set)
    tainted: bool = False
    """Its one line was not read to its end, since users' words stand in it."""
    forgotten: bool = False
    """Its first facts are not kept."""


class _Collector:
    """Collects facts by the process that they are of."""

    def __init__(self) -> None:
        self._processes: dict[tuple[str, RoleType | None], _Process] = {}
        self.names: set[str] = set()
        self._columns = Columns()
        self._levels: dict[str, int] = {}
        """How deep the lines of a writer lie: what is wrapped once more in one of them is what somebody else said."""
        self._alone: set[str] = set()
        """Writers of whom messages of one line were read: one of several lines may hold a user's."""
        self._collected = self._broken = False
        self.overflow = False

    def take(self, record: Record) -> None:
        """Add what a record says."""
        body = record.body
        self._columns.add(record.width, body)
        self._collected |= record.collected
        self._broken |= record.broken
        if body and len(self.names) < MOST_PROCESSES:
            self.names.add(record.prefix.identity)
        if (name := process.exited(body)) is not None and record.ended:
            self._exited(name, record)
            return
        key = (record.prefix.identity, record.prefix.role)
        said = _said(record)
        outer = record.prefix.identity if record.outer is None else record.outer
        if record.prefix.own or said is not None:
            self._levels[outer] = min(record.level, self._levels.get(outer, record.level))
            if not record.among:
                self._alone.add(outer)
        if said is None and (not record.prefix.own or key not in self._processes):
            if record.tainted and key in self._processes:
                self._processes[key].tainted = True
            return
        if key not in self._processes and len(self._processes) >= MOST_PROCESSES:
            self.overflow = True
            return
        log = self._processes.setdefault(key, _Process())
        log.tainted |= record.tainted
        if said is None:
            last = log.facts[-1].kind if log.facts else None
            if last not in (Kind.TRACEBACK, Kind.FAILED, Kind.OTHER) and record.prefix.rank in log.ranks:
                return
            said = Said(Kind.OTHER)
        less = _said(replace(record, ended=False)) if said.counts and record.width else None
        self._add(
            log,
            Fact(
                said, record.line, record.prefix, record.doubtful, record.width, less, record.level, outer, record.among
            ),
        )

    def _add(self, log: _Process, fact: Fact) -> None:
        log.ranks.add(fact.prefix.rank)
        last = log.facts[-2:]
        if len(last) == 2 and all(_same(fact, one) for one in last):
            log.facts[-1] = fact
            return
        log.facts.append(fact)
        if len(log.facts) > MOST_FACTS:
            del log.facts[: MOST_FACTS // 2]
            log.forgotten = True

    def _exited(self, name: str, record: Record) -> None:
        for (identity, _), log in self._processes.items():
            if identity == name:
                self._add(log, Fact(Said(Kind.FAILED, word="its container ended in an error"), record.line, Prefix()))

    def _shortened(self, facts: list[Fact]) -> list[Fact]:
        """Return facts without what a cut at a column has made uncertain."""
        return [
            replace(fact, said=fact.if_cut or Said(fact.kind, fact.said.product, garbled=True))
            if fact.said.counts and self._columns.cut(fact.width)
            else fact
            for fact in facts
        ]

    def engines(self) -> list[tuple[str, EngineSeen]]:
        """Return the engines, each with the name of the process that it is in."""
        found = []
        broken = self._broken and self._collected
        for (identity, role), log in self._processes.items():
            own = [fact for fact in log.facts if fact.level <= self._levels.get(fact.outer, fact.level)]
            if log.facts and not own:
                continue
            mixed = any(fact.among and fact.outer in self._alone for fact in own)
            told = engines(self._shortened(own), tainted=log.tainted or mixed, forgotten=log.forgotten, broken=broken)
            found += [(identity, engine if role is None else replace(engine, role=role)) for engine in told]
        return found


def _said(record: Record) -> Said | None:
    body = record.body
    if not body or broken_stamp(body):
        return None
    found = sglang.said(body, ended=record.ended) or vllm.said(body, ended=record.ended)
    return found or process.said(body)


def _same(fact: Fact, other: Fact) -> bool:
    return (
        fact.said == other.said
        and fact.width == other.width
        and fact.prefix.tags == other.prefix.tags
        and fact.prefix.own == other.prefix.own
    )


def _named(found: list[tuple[str, EngineSeen]], source: str, *, several: bool, cut: bool) -> list[EngineSeen]:
    """Give each engine the name that tells it apart: its half of a pair, else the process that wrote its lines."""
    labels: dict[str, set[tuple[str, object]]] = {}
    for identity, engine in found:
        labels.setdefault(_half(engine), set()).add((identity, engine.role))
    several = several or len({identity for identity, _ in found}) > 1
    named = []
    for identity, engine in found:
        half = _half(engine)
        crowded = several and (not half or len(labels[half]) > 1)
        label = " ".join(part for part in (half, identity if crowded else "") if part)
        notes = (*engine.notes, "The log is compressed and ends too early.") if cut else engine.notes
        named.append(replace(engine, source=f"{source} ({label})" if label else source, notes=notes))
    return named


def _half(engine: EngineSeen) -> str:
    role = engine.role.value.lower() if engine.role is not None else ""
    return role if role in ("prefill", "decode") else ""
