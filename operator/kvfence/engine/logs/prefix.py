"""What stands in front of a record: who collected it, when, which engine, which rank. Only known shapes are taken off.

What a user can write into a log never stands there: it comes behind words of the engine's own (`Receive: obj=`, the
address of an access line), and those are none of these shapes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from string import ascii_letters

from kvfence.api.v1alpha1.pool import RoleType

MOST = 16
"""Pieces in front of one record; more is no log."""

_DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME = r"[0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]+)?"
_TAGS = r"[A-Z][A-Z_]*[0-9]+(?:[ ,]+[A-Z][A-Z_]*[0-9]+)*"
_LEVEL = r"(?:TRACE|DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL|NOTICE)"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_WEEKDAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_INSTANT = rf"(?P<odate>{_DATE})[T ](?P<otime>{_TIME})(?:Z|[+-][0-9]{{2}}:?[0-9]{{2}})?"
_UNIT = r"(?:[\w.-]{1,200} )?[\w./@-]{1,200}\[[0-9]+\]: "
"""Which host and which of its units, as journald writes it; the host may be left out."""

_MESSAGE = r"[\w-]{1,128} [\w.-]{1,32} (?:-|\[[^\]]{0,500}\]) "
"""Process, kind and data of a message by RFC 5424."""

STAMP = rf"\[(?:{_DATE} )?{_TIME}(?: {_TAGS})?\]"
"""As SGLang writes it in front of every record of its own."""

_BAR = rf"(?:[A-Za-z][\w ()=.,/-]{{0,80}}: +)?[0-9]{{1,3}}%\|[^\[\n]{{0,400}}\[[^\]\n]{{0,60}}\](?={STAMP}|\[{_TAGS}\])"
"""A progress bar that a record was glued to."""

_HEADS = (
    r"server_args=|[Mm]ax_total_num_token|KV Cache is|Load weight|Memory pool end|The server is fired|Use sliding|"
    r"Scheduler hit|Rank [0-9]|RuntimeError:|Traceback|DS[Vv]4|INFO[: ]|[0-9]{1,3}%\||"
    r"[A-Za-z][\w ()=.,/-]{0,80}: +[0-9]{1,3}%\|"
)
"""How bare records of an engine begin: behind the names of a pod and its container."""

_PIECES = tuple(
    re.compile(pattern)
    for pattern in (
        rf"\[(?:(?P<date>{_DATE}) )?(?P<time>{_TIME})(?: (?P<tags>{_TAGS}))?\]\s*",
        rf"\[(?P<tags>{_TAGS})\]\s*",
        r"\[gpu(?:_id)?=(?P<gpu>[0-9]+)\]\s*",
        r"Rank (?P<gpu>[0-9]+): ",
        _BAR,
        r"\[(?P<id>pod/[^\]\s]{1,300})\]\s*",
        rf"(?:{_WEEKDAY} )?{_INSTANT}(?: [+-][0-9]{{4}}| [A-Z]{{2,5}}(?= {_UNIT}))?[\s|,]+",
        rf"<[0-9]{{1,3}}>1 {_INSTANT} (?P<id>[\w.-]{{1,200}} [\w./@-]{{1,48}}) {_MESSAGE}",
        rf"<[0-9]{{1,3}}>(?={_MONTH} )",
        r"(?:stdout|stderr) F ",
        rf"{_MONTH} +[0-9]{{1,2}} {_TIME} (?P<id>[\w.-]{{1,200}} [\w./@-]{{1,200}}?)(?:\[[0-9]+\])?: ",
        rf"(?:{_MONTH} +[0-9]{{1,2}} {_TIME}|[0-9]{{10}}\.[0-9]{{6}}) (?={_UNIT})",
        rf"\[ *[0-9]+\.[0-9]{{6}}(?: <[ 0-9.]{{1,40}}>)?\] (?={_UNIT})",
        r"(?P<id>(?:[\w.-]{1,200} )?[\w./@-]{1,200})\[[0-9]+\]: ",
        r"(?P<id>[A-Za-z0-9][\w./-]{0,200}) +\|(?: |$)",
        r"(?P<id>[\w./-]{1,200}\.(?:log|txt|out|err)):(?:[0-9]+:)? ?",
        rf"(?P<id>[a-z0-9][a-z0-9.-]{{0,200}} (?:\u203a )?[a-z0-9][a-z0-9.-]{{0,200}}) +(?={STAMP}|\[{_TAGS}\])",
        rf"(?P<id>[a-z0-9][a-z0-9.]*-[a-z0-9.-]{{1,200}} (?:\u203a )?[a-z0-9][a-z0-9.-]{{0,200}}) +(?={_HEADS})",
        rf"[0-9]{{1,9}}(?:[:\t]\s*|\s+(?={STAMP}))",
        r"\[?(?P<role>prefill|decode)\]?(?: +\([A-Z]+[0-9]+\))? *[:|]? +(?=\[)",
        r"\((?P<proc>[A-Za-z]+[\w ]{0,40}?) (?:rank=[0-9]+ )?pid=[0-9]+\)\s*",
        r"\[[A-Za-z_]{1,40}\]\[" + _LEVEL + r"\]\s*",
        rf"(?:- )?{_LEVEL}\b(?:(?: ?[:|-])?\s+|$)",
        rf"[0-9]{{2}}-[0-9]{{2}} {_TIME} ",
        r"\[?[\w/.-]{1,80}\.py:[0-9]+\]?:? ",
        r"[IWEF][0-9]{4} [0-9:.]{8,20} +[0-9]+ [\w./-]{1,120}:[0-9]+\] ",
        r"[A-Za-z_]\w{0,60}(?:\.\w{1,60})+(?: -|:) ",
        r"(?:[\s>*|`\ufeff]|#(?!tokens)|//|&gt;)+",
        r"- (?=\S)",
    )
)
_BEGINNING = {
    "[": tuple(piece for piece in _PIECES if piece.pattern.startswith((r"\[", r"[\w"))),
    " ": tuple(piece for piece in _PIECES if piece.pattern.startswith((r"(?:[\s", "[0-9]"))),
    **{letter: tuple(piece for piece in _PIECES if not piece.pattern.startswith(r"\[(")) for letter in ascii_letters},
}
"""Those that can begin with a character that most do."""

_TAG = re.compile(r"([A-Z][A-Z_]*)([0-9]{1,6})")


@dataclass(frozen=True, slots=True)
class Prefix:
    """What stands in front of a record."""

    identity: str = ""
    """Of the process that wrote it, as its collector names it."""
    role: RoleType | None = None
    outer: str | None = None
    """When it was collected, so that text sorts as time does."""
    inner: str | None = None
    """When it was written, by the engine's own clock; without its date where the engine does not tell one."""
    rank: int | None = None
    """Of data parallelism."""
    tags: str = ""
    """All of the ranks, as they are written."""

    @property
    def own(self) -> bool:
        """Whether the engine's own mark is there."""
        return self.inner is not None or bool(self.tags)


NONE = Prefix()


def split(text: str, known: Prefix = NONE) -> tuple[Prefix, str]:
    """Return what is in front of a record, added to what is known of it, and the record's own words."""
    found, at = known, 0
    for _ in range(MOST):
        pieces = _BEGINNING.get(text[at : at + 1], _PIECES)
        match = next((hit for piece in pieces if (hit := piece.match(text, at)) and hit.end() > at), None)
        if match is None:
            break
        found, at = _added(found, match.groupdict()), match.end()
    return found, text[at:].rstrip(" \t`*\u23ce\ufeff")


def _added(found: Prefix, piece: dict[str, str | None]) -> Prefix:
    """Return a prefix with one more piece of it."""
    if (time := piece.get("otime")) is not None:
        found = replace(found, outer=found.outer or f"{piece['odate']} {time.replace(',', '.')}")
    if (name := piece.get("id")) is not None:
        identity = found.identity if name in found.identity else f"{found.identity} {name}".strip()
        return replace(found, identity=identity, role=found.role or role_of(name))
    if (role := piece.get("role")) is not None:
        return replace(found, role=RoleType(role.capitalize()))
    if (gpu := piece.get("gpu")) is not None:
        return replace(found, tags=f"GPU{gpu}")
    if (process := piece.get("proc")) is not None:
        return _process(found, process)
    tags = piece.get("tags")
    if (time := piece.get("time")) is not None:
        found = replace(found, inner=f"{piece['date'] or ''} {time.replace(',', '.')}".strip())
    return found if tags is None else replace(found, tags=tags, rank=dict(_ranks(tags)).get("DP"))


def _ranks(tags: str) -> list[tuple[str, int]]:
    return [(name, int(number)) for name, number in _TAG.findall(tags)]


def _process(found: Prefix, process: str) -> Prefix:
    """Read the name that vLLM gives a process: `EngineCore_DP1`, `EngineCore_0`, `VllmWorker`."""
    if (rank := re.search(r"DP([0-9]{1,6})", process)) is not None:
        return replace(found, tags=process, rank=int(rank[1]))
    core = re.fullmatch(r"EngineCore_([0-9]{1,6})", process)
    return replace(found, tags=process, rank=int(core[1]) if core and int(core[1]) else None)


def role_of(name: str) -> RoleType | None:
    """Return the role that a name tells, where it tells one and not both."""
    words = set(re.split(r"[^a-z]+", name.lower()))
    roles = [role for role in (RoleType.PREFILL, RoleType.DECODE) if role.value.lower() in words]
    return roles[0] if len(roles) == 1 else None
