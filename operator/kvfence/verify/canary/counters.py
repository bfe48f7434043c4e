"""Reads how much an engine has worked on from its `/metrics`: SGLang's (`--enable-metrics`) and vLLM's counters.

The text is from outside. Only the two counters are read, and only if all their values are whole numbers from 0: a wrong
count would name the wrong engine.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kvfence.verify.canary.session import Session

REQUESTS = ("sglang:num_requests_total", "vllm:request_success_total")
"""Counted by the HTTP process when a request ends, on prefill and decode alike (SGLang's `metrics_collector.py`)."""

PROMPT_TOKENS = ("sglang:prompt_tokens_total", "vllm:prompt_tokens_total")

LARGEST = 2**53
"""Counts are below it: greater ones are not exact in the format."""

_PATHS = ("/metrics", "/metrics/")
"""SGLang has the page at the second and sends whoever asks for the first there; redirections are not followed."""

_REDIRECTIONS = frozenset({301, 302, 307, 308})

_SAMPLE = re.compile(r"(?:\{.*\})?[ \t]+(?P<value>[0-9.eE+-]+)(?:[ \t]+-?[0-9]+)?[ \t\r]*")
"""What follows the name: labels, the value, perhaps a time."""


@dataclass(frozen=True, slots=True)
class Counted:
    """What an engine has worked on since it started; its counters only grow while it runs."""

    requests: int
    """That came to an end."""
    prompt_tokens: int | None = None
    """Of those requests, if it tells."""


READS = len(_PATHS)
"""GETs that one reading costs at most."""


async def read(session: Session, url: str, seconds: float) -> Counted | None:
    """Return the counters of an engine; none when it does not tell them.

    Args:
        session: the way to it.
        url: of the engine, without a slash at its end.
        seconds: until its page must be there.

    Raises:
        BudgetSpentError: when there would be too many GETs.
    """
    for path in _PATHS:
        reply = await session.read(url + path, seconds)
        if reply.fault is None and reply.status == 200:
            return counted(reply.body)
        if reply.fault is not None or reply.status not in _REDIRECTIONS:
            return None
    return None


def counted(page: bytes) -> Counted | None:
    """Return the counters that stand in a page in Prometheus' text format; none when one is no count.

    Each is summed over its labels: SGLang counts streams apart, vLLM the reasons why requests ended.
    """
    sums: dict[str, int] = {}
    for line in page.decode(errors="replace").split("\n"):
        name = next((one for one in (*REQUESTS, *PROMPT_TOKENS) if line.startswith((one + "{", one + " "))), None)
        if name is None:
            continue
        sample = _SAMPLE.fullmatch(line, len(name))
        value = None if sample is None else _whole(sample["value"])
        if value is None:
            return None
        sums[name] = sums.get(name, 0) + value
    requests = [sums[name] for name in REQUESTS if name in sums]
    tokens = [sums[name] for name in PROMPT_TOKENS if name in sums]
    if len(requests) != 1 or len(tokens) > 1:
        return None
    return Counted(requests[0], tokens[0] if tokens else None)


def _whole(text: str) -> int | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return int(value) if math.isfinite(value) and 0 <= value < LARGEST and value == int(value) else None
