"""From lines to records: out of JSON, out of one long line, and whole again where somebody wrapped them."""

from __future__ import annotations

import html
import re
from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kvfence.engine.logs.collected import broken, entries, unwrapped
from kvfence.engine.logs.lines import Lines
from kvfence.engine.logs.prefix import NONE, STAMP, Prefix, role_of, split

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kvfence.engine.logs.collected import Entry
    from kvfence.engine.logs.lines import Line

DEEPEST = 3
"""Collectors that put each other's JSON into theirs."""

_BREAKS = re.compile(r"\u23ce|\\r\\n|\\n")
"""What collectors write for the end of a line."""

_OF_USERS = re.compile(
    r"\b(?:Receive|Finish)\b.{0,20}obj=|GenerateReqInput|EmbeddingReqInput|Received request|prompt\b|\btext=|"
    r"request\.(?:received|finished)|input_ids|messages"
)
"""A record that holds what a user wrote; behind it anything may stand."""

_ACCESS = re.compile(r"\"(?:GET|POST|PUT|DELETE|HEAD|OPTIONS|PATCH) ")
"""A record that holds an address of a user's, in one line."""

_TERMINAL = re.compile(r"(?:\x1b|#033|\^\[)\[[0-9;?]{0,20}[A-Za-z]")
"""Colours that came through JSON or syslog."""

_PAIR = r"[A-Za-z_][\w.]*=[^\s,]+(?: [GM]B)?"
_CONTINUES = re.compile(rf"{_PAIR}(?:,? +{_PAIR})*,?")
_SIZES = re.compile(r"#tokens: |[KV] size|[KV]V? (?:size: )?[0-9.]+ GB")
_DIGITS = re.compile(r"(?:\S{1,80} ){0,3}[\s,_.']?[0-9][0-9,_.']{0,12}(?:,?$|, [A-Za-z]|\s[0-9])")
"""The rest of a number that was broken over two lines; no time and no progress bar begins so."""

LONGEST = 1 << 16
"""Characters of a record that are looked at."""

WRAPPED = 8
"""Lines that one record may have been broken over."""

_WRAPS = re.compile(
    r"[Mm]ax_total_num_tokens?=|(?:Virtual)?KV Cache is allocated|Mamba Cache|Use sliding window|Post-capture|DSV4 pool"
)
_SECTION = re.compile(r"==> (\S{1,300}) <==\s*$")


@dataclass(frozen=True, slots=True)
class Record:
    """One thing that was said."""

    line: int
    """Its place in the log: one behind the other where nothing stood between them."""
    prefix: Prefix
    body: str
    ended: bool = True
    """False where the text ends with it."""
    doubtful: bool = False
    """It stands bare behind a user's words, and may be more of them in a line of its own."""
    tainted: bool = False
    """What stands behind it in the same line was not read, since it may be a user's."""
    collected: bool = False
    """It was read out of a collector's JSON."""
    level: int = 0
    """How often something was unwrapped to get at it: 0 for a line of its own, 1 in JSON or in a log of one line."""
    outer: str | None = None
    """Who wrote the line that it was unwrapped from; none for a line of its own."""
    among: bool = False
    """It was one of several lines in one message."""
    broken: bool = False
    """It was JSON that was cut: what it said, and whose it was, is not known."""
    width: int = 0
    """Bytes of the line that it ends; 0 where it ends none, or its end is told."""


def records(lines: Iterable[Line]) -> Iterator[Record]:
    """Yield what was said, in the order of the lines."""
    waiting: deque[Record] = deque()
    before: deque[Record] = deque(maxlen=WRAPPED)
    for record in _trusted(_pieces(lines)):
        waiting.append(record)
        if len(waiting) > WRAPPED:
            yield _whole(waiting, before)
    while waiting:
        yield _whole(waiting, before)


def _trusted(found: Iterable[Record]) -> Iterator[Record]:
    """Mark the bare records right behind a user's words."""
    users, last = False, -1
    for record in found:
        users = (users and record.line == last + 1) and not record.prefix.own
        last = record.line
        yield replace(record, doubtful=True) if users and not record.doubtful else record
        users = users or _OF_USERS.search(record.body) is not None


def _pieces(lines: Iterable[Line]) -> Iterator[Record]:
    place, last = 0, -1
    for line, record in _told(lines):
        if len(record.body) > LONGEST:
            record = replace(record, body=record.body[:LONGEST], ended=False)  # noqa: PLW2901 - the same, cut
        place += 1 if line.number <= last + 1 else 2
        last = line.number
        yield replace(record, line=place)


def _told(lines: Iterable[Line]) -> Iterator[tuple[Line, Record]]:
    section = ""
    for line in lines:
        text = line.raw.decode(errors="replace")
        if (header := _SECTION.match(text)) is not None:
            section = header[1]
            continue
        known = NONE if not section else Prefix(identity=section, role=role_of(section))
        for record in _of_line(text, line, known, DEEPEST):
            yield line, record


def _of_line(text: str, line: Line, known: Prefix, depth: int) -> Iterator[Record]:
    text = _TERMINAL.sub("", text)
    prefix, body = split(text, known)
    if "&" in text and len(text) < 10_000 and entries(body) is None:
        text = html.unescape(text).replace("\n", " ")
        prefix, body = split(text, known)
    if depth and (inside := entries(body)) is not None:
        for entry in inside:
            for one in _of_message(entry, line, prefix, depth - 1):
                yield replace(one, collected=True, level=one.level + 1, outer=prefix.identity)
        return
    if depth == DEEPEST and line.ended and broken(body):
        yield Record(line.number, prefix, "", broken=True)
        return
    breaks = None if body.startswith(("{", "[{")) else _BREAKS.search(text)
    if breaks is None or _users(text[: breaks.start()]):
        yield Record(line.number, prefix, body, line.ended, width=len(line.raw))
        return
    yield from _of_one_line(text, line, known)


def _of_message(entry: Entry, line: Line, known: Prefix, depth: int) -> Iterator[Record]:
    """Yield the records of what a collector's JSON holds: a line, or a whole log with users' words somewhere in it."""
    told, message = unwrapped(entry, known)
    line, message = replace(line, ended=True, raw=b""), message.rstrip("\r\n")
    if "\n" not in message:
        yield from _of_line(message, line, told, depth)
        return
    hits = [hit.start() for hit in (_OF_USERS.search(message), _ACCESS.search(message)) if hit is not None]
    first = message.count("\n", 0, min(hits)) if hits else None
    for part in Lines((f"{message}\n".encode(errors="replace"),), wanted=WRAPPED):
        found = _of_line(part.raw.decode(errors="replace"), line, told, depth)
        users = first is not None and part.number > first
        for record in found:
            yield replace(record, doubtful=record.doubtful or users, among=True)


def _of_one_line(text: str, line: Line, known: Prefix) -> Iterator[Record]:
    """Yield the records of a log whose line ends were replaced, up to the first that holds a user's words."""
    parts = _BREAKS.split(text)
    front = split(parts[0], known)[0]
    for index, part in enumerate(parts):
        last = index == len(parts) - 1
        stop = not last and _users(part)
        prefix, body = split(part.strip(), known)
        if not prefix.identity:
            prefix = replace(prefix, identity=front.identity, role=prefix.role or front.role)
        tainted, width = stop or (last and line.overlong), len(line.raw) if last else 0
        ended = line.ended or not last
        yield Record(line.number, prefix, body, ended, tainted=tainted, width=width, level=1, outer=front.identity)
        if stop:
            return


def _users(text: str) -> bool:
    return _OF_USERS.search(text) is not None or _ACCESS.search(text) is not None


def _whole(waiting: deque[Record], before: deque[Record]) -> Record:
    """Take the first record off, with the lines that it was broken over.

    `before` are those taken off last: where a log stands with its newest line first, the rest of a number is there.
    """
    first = waiting.popleft()
    before.append(first)
    body, ended, at, width = first.body, first.ended, first.line, first.width
    wraps = _WRAPS.match(body) is not None
    while wraps and waiting and body.endswith(",") and _goes_on(first, waiting[0], at):
        part = waiting.popleft()
        body, ended, at, width = f"{body} {part.body}", part.ended, part.line, part.width
    if body[-1:].isdigit() or body.endswith((",", "_")):
        ended = ended and not any(_DIGITS.match(part.body) and not part.prefix.own for part in (*before, *waiting))
    return replace(first, body=body, ended=ended, width=width)


def _goes_on(first: Record, part: Record, at: int) -> bool:
    """Tell whether a line can be the rest of a record: it stands right behind, is bare, and holds only more fields."""
    if (
        part.line != at + 1
        or part.body.startswith("server_args=")
        or part.prefix.own
        or part.prefix.identity != first.prefix.identity
    ):
        return False
    return _CONTINUES.fullmatch(part.body) is not None or _SIZES.match(part.body) is not None


def broken_stamp(text: str) -> bool:
    """Tell whether another record begins inside of this one: two processes wrote at once."""
    return re.search(STAMP, text) is not None
