"""What the operator counts; `/metrics` shows it. No label carries a name of a user's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

disable_created_metrics()  # type: ignore[no-untyped-call] # a gauge beside each counter that nobody asks for
REGISTRY = CollectorRegistry()

EVENTS = Counter("kvfence_watch_events", "Watch events that came in, by kind of object.", ("kind",), registry=REGISTRY)
RECONCILES = Counter(
    "kvfence_reconciles", "Looks at a pool that were finished, by how they ended.", ("result",), registry=REGISTRY
)
RESYNCS = Counter("kvfence_resyncs", "Rounds in which every pool is looked at to be sure.", registry=REGISTRY)
RECONCILE_SECONDS = Histogram(
    "kvfence_reconcile_seconds",
    "Time for one look at a pool.",
    registry=REGISTRY,
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)
JOBS = Counter("kvfence_jobs", "Steps that take time which were begun, by kind.", ("step",), registry=REGISTRY)
QUEUE_LENGTH = Gauge("kvfence_queue_length", "Pools that wait or are being looked at.", registry=REGISTRY)
ADVISORIES = Gauge("kvfence_advisories", "Known faults of engines that count.", registry=REGISTRY)
ADVISORIES_DATE = Gauge(
    "kvfence_advisories_date_seconds",
    "When the newest catalogue of known faults was true, in seconds since 1970.",
    registry=REGISTRY,
)
ADVISORY_PROBLEMS = Gauge(
    "kvfence_advisory_problems",
    "What is wrong with added advisories; the log says it.",
    registry=REGISTRY,
)
LEADING = Gauge("kvfence_leading", "1 while this operator holds the Lease.", registry=REGISTRY)


class ApiWrites(Collector):
    """Shows how many requests that write were sent to the API server, as whoever sends them counts."""

    def __init__(self, count: Callable[[], int]) -> None:
        self._count = count

    def collect(self) -> Iterable[CounterMetricFamily]:
        """Return the one counter, as it stands."""
        yield CounterMetricFamily(
            "kvfence_api_writes", "Requests to the API server that write, the Lease's aside.", value=self._count()
        )
