"""What the launcher says on `/metrics`, in Prometheus' text format, with the library that SGLang itself needs."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kvfence_engine.state import Door

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_COUNTS = {
    "pagesExpected": ("pages_expected", "Pages that requests were about to read when they were looked at."),
    "pagesVerified": ("pages_verified", "Pages of these that were found right."),
    "requestsVerified": ("requests_verified", "Requests all of whose pages were found right."),
    "requestsUnverified": ("requests_unverified", "Requests that were not looked at: the engine's own health probes."),
    "requestsFailed": ("requests_failed", "Requests that were ended because of a finding."),
    "bytesZeroed": ("bytes_zeroed", "Bytes of pages that were zeroed before prefill was told of them."),
    "pagesRetired": ("pages_retired", "Pages that nobody gets any more in this boot."),
}
_BY_KIND = {
    "found": ("findings", "Findings in the KV that requests were about to read, by kind."),
    "drills": ("drills_found", "Faults that canaries asked for, and that were found, by kind."),
}


def text(status: Mapping[str, Any]) -> bytes:
    """Return the metrics of an engine.

    Args:
        status: what the launcher says on `/status`.
    """
    library = import_module("prometheus_client")

    class Collector:
        def collect(self) -> Iterator[Any]:
            """Yield the metrics, as the library asks for them."""
            yield from _families(import_module("prometheus_client.core"), status)

    registry = library.CollectorRegistry()
    registry.register(Collector())
    written: bytes = library.generate_latest(registry)
    return written


def _families(core: Any, status: Mapping[str, Any]) -> Iterator[Any]:
    door = core.GaugeMetricFamily("kvfence_engine_door", "1 for the state that the door is in.", labels=["state"])
    for state in Door:
        door.add_metric([state.value], float(status["door"] == state.value))
    yield door
    yield core.GaugeMetricFamily("kvfence_engine_cap_tokens", "Tokens of context; 0 before.", value=status["cap"])
    labels = ["finding", "kind"]
    blown = core.GaugeMetricFamily("kvfence_engine_fuse_blown", "1 when the fuse is blown, and by what.", labels=labels)
    if status["blown"] is not None:
        blown.add_metric([status["blown"][name] for name in labels], 1.0)
    yield blown
    for name, (metric, what) in _COUNTS.items():
        family = core.CounterMetricFamily(f"kvfence_engine_{metric}", what, labels=["rank"])
        for rank in status["ranks"]:
            family.add_metric([str(rank["index"])], rank["integrity"].get(name, 0))
        yield family
    for name, (metric, what) in _BY_KIND.items():
        family = core.CounterMetricFamily(f"kvfence_engine_{metric}", what, labels=["rank", "kind"])
        for rank in status["ranks"]:
            for kind, count in rank["integrity"].get(name, {}).items():
                family.add_metric([str(rank["index"]), kind], count)
        yield family
