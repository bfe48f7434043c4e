"""Tells the starts of an engine in one log apart. The last one counts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kvfence.domain.diagnosis.seen import Product
from kvfence.engine.logs.facts import SIZES, Kind
from kvfence.engine.logs.process import AT_START, BIND, STARTUP

if TYPE_CHECKING:
    from kvfence.engine.logs.order import Moment, Timeline

RESTART = 5.0
"""Seconds after which a rank that failed can only speak as another process."""

RESTART_OF_ANOTHER = 60.0
"""The same, when one rank failed and another one speaks: it may still have been on its way."""

LONGEST_STEP = 3600.0
"""Seconds that a step of a start takes at most: weights from a slow disk, graphs of a large model."""

NODES_APART = 600.0
"""Seconds within which the nodes of one engine begin: they wait for each other, and not for ever."""

_OF_A_NODE = frozenset({"node_rank", "host", "random_seed", "base_gpu_id", "nccl_port"})
"""Settings in which the nodes of one engine may differ."""

SAME_MOMENT = 2.0
"""Seconds within which the ranks of one start print the same step."""


@dataclass(slots=True)
class Boot:
    """One start of an engine: of all of its ranks."""

    moments: list[Moment] = field(default_factory=list)
    said: set[tuple[Kind, int | None]] = field(default_factory=set)
    """Kinds of what was said, and the ranks that said it."""
    failures: list[Moment] = field(default_factory=list)
    ready: list[Moment] = field(default_factory=list)
    failed: Moment | None = None
    """The first failure before it was ready."""
    crashed: bool = False
    """It failed after it had been ready."""
    doubts: list[str] = field(default_factory=list)
    """Why it cannot be told whose a fact is: nothing of this start is known then."""

    def has(self, *kinds: Kind, rank: int | None = None, of_rank: bool = False) -> bool:
        """Tell whether something of these kinds was said, by this rank where asked."""
        return any(kind in kinds and (not of_rank or by == rank) for kind, by in self.said)

    @property
    def under_way(self) -> bool:
        """Whether it came further than its settings."""
        kinds = (
            *SIZES,
            Kind.LOADING,
            Kind.SUMMARY,
            Kind.WARNING,
            Kind.SETTLED,
            Kind.READY,
            Kind.FAILED,
            Kind.TRACEBACK,
        )
        return self.has(*kinds)

    @property
    def mode(self) -> str | None:
        """Which half of a pair it is, as its settings say."""
        modes = {m.fact.said.settings.get("disaggregation_mode") for m in self.moments} - {None}
        return str(next(iter(modes))) if len(modes) == 1 else None


def boots(line: Timeline) -> list[Boot]:
    """Return the starts, in their order; at least one."""
    found = [Boot()]
    for moment in line.moments:
        if _begins(moment, found[-1]):
            found.append(Boot())
        _add(moment, found[-1])
    _end_in_traceback(found[-1])
    return found


def _begins(moment: Moment, boot: Boot) -> bool:
    kind, rank = moment.fact.kind, moment.fact.prefix.rank
    if kind is Kind.SERVER_ARGS:
        return _settings_begin(moment, boot)
    if kind is Kind.VERSION and moment.fact.said.product is Product.VLLM:
        return boot.has(*SIZES, Kind.READY, Kind.FAILED)
    if kind is Kind.LOADING:
        over = boot.has(Kind.SUMMARY, rank=rank, of_rank=True) or boot.has(Kind.READY, Kind.FAILED)
        return over and not _at_once(moment, boot)
    if kind in SIZES:
        return _size_begins(moment, boot)
    if kind in (Kind.SUMMARY, Kind.READY):
        return _long_after_failure(moment, boot)
    return kind is Kind.OTHER and boot.failed is not None and _long_after_failure(moment, boot, RESTART_OF_ANOTHER)


def _settings_begin(moment: Moment, boot: Boot) -> bool:
    """vLLM prints a line for each of its engines: a start begins only with the second one of the same engine."""
    if moment.fact.said.settings or moment.fact.said.product is None or not moment.fact.said.word:
        return boot.under_way and not _another_node(moment, boot)
    return boot.has(*SIZES, rank=moment.fact.prefix.rank, of_rank=True) or boot.has(Kind.READY, Kind.FAILED)


def _at_once(moment: Moment, boot: Boot) -> bool:
    """Tell whether a step stands in the same second as the summary: then the lines stood in no order."""
    ends = [m.at for m in boot.moments if m.fact.kind in (Kind.SUMMARY, Kind.READY, Kind.FAILED)]
    return any(end is not None and moment.at is not None and moment.at - end < 1.0 for end in ends[-1:])


def _size_begins(moment: Moment, boot: Boot) -> bool:
    prefix = moment.fact.prefix
    if boot.failed is not None or boot.crashed:
        return _long_after_failure(moment, boot)
    for said in reversed(boot.moments):
        if said.fact.kind is Kind.READY or (said.fact.kind is Kind.SUMMARY and said.fact.prefix.rank == prefix.rank):
            same = said.fact.prefix.tags == prefix.tags and said.fact.kind is Kind.SUMMARY
            if moment.at is None or said.at is None:
                return same or said.fact.kind is Kind.READY
            return moment.at - said.at >= (1.0 if same else SAME_MOMENT)
    return False


def _long_after_failure(moment: Moment, boot: Boot, least: float = RESTART) -> bool:
    ends = boot.failures
    if not ends or moment.at is None or (last := ends[-1]).at is None:
        return False
    same = last.fact.prefix.rank in (None, moment.fact.prefix.rank)
    return moment.at - last.at >= (least if same else RESTART_OF_ANOTHER)


def _add(moment: Moment, boot: Boot) -> None:
    kind = moment.fact.kind
    if boot.failed is not None and kind in (Kind.SUMMARY, Kind.READY):
        boot.doubts.append("A failure and a success stand side by side, and it is not told which came first.")
    if boot.crashed and kind is Kind.SUMMARY:
        boot.doubts.append("It failed after it had been ready, and the size behind that may be of another start.")
    if kind is Kind.SERVER_ARGS and _other_settings(moment, boot):
        boot.doubts.append("The settings of two servers stand side by side, and it is not told whose the sizes are.")
    boot.moments.append(moment)
    boot.said.add((kind, moment.fact.prefix.rank))
    if kind is Kind.READY:
        boot.ready.append(moment)
    elif kind is Kind.FAILED:
        _fail(moment, boot)


def _fail(moment: Moment, boot: Boot) -> None:
    boot.failures.append(moment)
    unbound = moment.fact.said.word == BIND and all(m.fact.said.word == STARTUP for m in boot.ready)
    if boot.ready and not unbound:
        boot.crashed = True
    elif boot.failed is None and (moment.fact.said.word in AT_START or _still_starting(moment, boot)):
        boot.failed = moment


def _still_starting(moment: Moment, boot: Boot) -> bool:
    """Tell whether something of a start stands before a failure, and not so long ago that it must be over."""
    kinds = (*SIZES, Kind.SERVER_ARGS, Kind.LOADING, Kind.SUMMARY, Kind.WARNING, Kind.SETTLED, Kind.OTHER)
    steps = [m for m in boot.moments if m.fact.kind in kinds]
    if not steps:
        return False
    last = steps[-1].at
    return last is None or moment.at is None or moment.at - last < LONGEST_STEP


def _other_settings(moment: Moment, boot: Boot) -> bool:
    settings = moment.fact.said.settings
    before = [m.fact.said.settings for m in _settings(boot)]
    keys = ("port", "disaggregation_mode", "model_path")
    others = any(settings and one.get(key) != settings.get(key) for one in before for key in keys)
    alone = settings and any(one.get("node_rank") != settings.get("node_rank") for one in before)
    return others or (bool(alone) and not _another_node(moment, boot))


def _settings(boot: Boot) -> list[Moment]:
    return [m for m in boot.moments if m.fact.kind is Kind.SERVER_ARGS and m.fact.said.settings]


def _another_node(moment: Moment, boot: Boot) -> bool:
    """Tell whether settings are those of one more node of the engine that starts: not seen yet, and else the same."""
    settings, before = moment.fact.said.settings, _settings(boot)
    nodes = [m.fact.said.settings.get("node_rank") for m in before]
    node, of = settings.get("node_rank"), settings.get("nnodes")
    if not before or type(node) is not int or type(of) is not int or not 0 <= node < of or node in nodes:
        return False
    if boot.has(Kind.SUMMARY, Kind.READY, Kind.FAILED) or not all(type(one) is int for one in nodes):
        return False
    times = [one.at for one in (before[0], moment)]
    late = times[0] is not None and times[1] is not None and times[1] - times[0] > NODES_APART
    same = all(
        {key: value for key, value in m.fact.said.settings.items() if key not in _OF_A_NODE}
        == {key: value for key, value in settings.items() if key not in _OF_A_NODE}
        for m in before
    )
    return same and not late


def _end_in_traceback(boot: Boot) -> None:
    """A traceback is a failure when nothing follows it: optional parts that are not there print one too."""
    if boot.ready or boot.failed is not None or not boot.moments:
        return
    last = boot.moments[-1]
    if last.fact.kind is Kind.TRACEBACK:
        boot.failed = last
