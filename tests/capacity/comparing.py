"""Puts estimates beside what the field logs say."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kvfence.domain.estimate import (
    CacheType,
    Flags,
    Layout,
    Model,
    Range,
    estimate,
    gpu_named,
    known_model,
    left_for_pool,
    token_bytes,
    tokens_in,
)
from tests.capacity.cases import BOUGHT, NOT_COMPARED, RULED, SIZED, Bought

if TYPE_CHECKING:
    from collections.abc import Iterator

LOGS = Path(__file__).resolve().parents[1] / "field" / "logs"


def names() -> tuple[str, ...]:
    """Return the numbers of all field logs."""
    return tuple(sorted(path.name[:3] for path in LOGS.glob("*.log")))


def real_pool(log: str) -> int:
    """Return the pool that stands in a log's header as the right answer."""
    (path,) = LOGS.glob(f"{log}-*.log")
    (line,) = [line for line in path.read_text().splitlines() if line.startswith("# expected.pool_tokens: ")]
    return int(line.rpartition(" ")[2])


@dataclass(frozen=True)
class Compared:
    """One estimate and what was real."""

    case: Bought
    pool: Range[int]
    real: int

    @property
    def error(self) -> float:
        """Of what was likely, in per cent of what was real."""
        return 100 * (self.pool.likely - self.real) / self.real

    @property
    def within(self) -> bool:
        """Whether the real pool is in the range."""
        return self.pool.low <= self.real <= self.pool.high


def model(name: str) -> Model:
    """Return a model that is known."""
    known = known_model(name)
    assert known is not None
    return known


def compared() -> tuple[Compared, ...]:
    """Return all logs that tell what one knows before one buys."""
    found = []
    for case in BOUGHT:
        gpu = gpu_named(case.gpu)
        assert gpu is not None
        pool = estimate(model(case.model), gpu, case.layout, case.flags).alone.reckoning.pool
        found.append(Compared(case, pool, real_pool(case.log)))
    return tuple(found)


def text() -> str:
    """Return all of it as Markdown."""
    return "\n".join([*_bought(), "", *_ruled(), "", *_sized(), "", *_others()]) + "\n"


def _bought() -> Iterator[str]:
    rows = compared()
    yield "From GPU, model and flags alone, as one has them before one buys:"
    yield ""
    yield "| log | GPU | model | `--mem-fraction-static` | estimate (low, likely, high) | real | error | in range |"
    yield "|---|---|---|---|---|---|---|---|"
    for row in rows:
        case, pool = row.case, row.pool
        fraction = case.where_from if case.fraction is None else f"{case.fraction}, {case.where_from}"
        yield (
            f"| {case.log} | {case.layout.gpus} x {case.gpu} | {case.model} | {fraction} "
            f"| {pool.low:,}, {pool.likely:,}, {pool.high:,} | {row.real:,} | {row.error:+.1f} % "
            f"| {'yes' if row.within else 'NO'} |"
        )
    worst = max(rows, key=lambda row: abs(row.error))
    yield ""
    yield (
        f"{sum(row.within for row in rows)} of {len(rows)} real pools are within the range. The likely figure is off "
        f"by {sum(abs(row.error) for row in rows) / len(rows):.1f} % on average, and by {worst.error:+.1f} % at worst "
        f"(log {worst.case.log})."
    )


def _ruled() -> Iterator[str]:
    yield "SGLang's rule alone, with the free memory that the log itself tells (in GiB, rounded to hundredths there):"
    yield ""
    yield "| log | free before, after | fraction | by the rule | real |"
    yield "|---|---|---|---|---|"
    for case in RULED:
        rest = left_for_pool(case.before, case.before - case.after, case.fraction)
        said, real = f"{rest:.2f} GiB", f"{case.rest} GiB"
        if case.token_bytes is not None:
            said, real = f"{tokens_in(rest, case.token_bytes, Flags()):,} tokens", f"{real_pool(case.log):,} tokens"
        yield f"| {case.log} | {case.before}, {case.after} | {case.fraction} | {said} | {real} |"


def _sized() -> Iterator[str]:
    yield "Bytes of a token on one GPU, against the size that the log tells of its pool (rounded there, too):"
    yield ""
    yield "| log | model | estimate | by the log |"
    yield "|---|---|---|---|"
    for case in SIZED:
        size = token_bytes(model(case.model), Layout(tp=case.tp), CacheType(case.cache_type)).likely
        yield f"| {case.log} | {case.model} | {size:,} | {case.gib * 1024**3 / real_pool(case.log):,.0f} |"


def _others() -> Iterator[str]:
    yield "Not compared in the first table, and why:"
    yield ""
    reasons: dict[str, list[str]] = {}
    for log, why in NOT_COMPARED.items():
        reasons.setdefault(why, []).append(log)
    for why, logs in reasons.items():
        yield f"- {', '.join(logs)}: {why}."
