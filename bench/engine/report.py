"""What was measured as tables for people, and which promises it keeps. Pure: from the results alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Found = dict[str, Any]


@dataclass(frozen=True)
class Promise:
    """Something that counting shows, whatever the speed of the machine."""

    text: str
    is_kept: bool


def promises(found: Found) -> list[Promise]:
    """Return what the defences promise of their cost, and whether this run bears it out."""
    steps, once = found["steps"], [counts for cell in found["admission"] for counts in cell["counts"].items()]
    idle = [cell["idle"] for cell in steps if cell["idle"]]
    alike = {(cell["batch"], cell["page_size"]): cell for cell in steps}
    return [
        Promise(
            "A decode step that begins no page asks the device for nothing.",
            bool(idle) and not any(value for one in idle for name, value in one.items() if name != "host"),
        ),
        Promise("No operation of a decode step reads the device.", not any(cell["tags"]["waits"] for cell in steps)),
        Promise(
            "A decode step assigns no Python number to single elements (torch up to 2.14 waits for the stream then).",
            not any(cell["tags"]["numbers"] for cell in steps),
        ),
        Promise(
            "What a decode step asks for does not grow with the context.",
            all(cell["tags"] == alike[cell["batch"], cell["page_size"]]["tags"] for cell in steps),
        ),
        Promise(
            "The host waits once for the verdicts of a request.",
            all(counts["waits"] == 1 for name, counts in once if name.startswith("verify")),
        ),
    ]


def report(found: Found) -> str:
    """Return all tables, as Markdown."""
    made, model = found["made_with"], found["model"]
    lines = [
        "# What the integrity defences cost inside SGLang",
        "",
        "Written by `make bench-engine`; [engine-speed](../../docs/engine-speed.md) says how to read it.",
        f"SGLang {made['sglang']}, torch {made['torch']}, one thread of {made['processors']} processors.",
        f"Load of the machine {made['load']}; times are processor time.",
        f"Model of the KV: {model['layers']} layers x {model['heads']} heads x {model['numbers']} x {model['dtype']},",
        f"{model['token_bytes']:,} bytes for each token; {found['layers_in_memory']} of the layers are in memory.",
        "",
        "## Promises",
        "",
        *(f"- {'kept' if one.is_kept else '**NOT KEPT**'}: {one.text}" for one in promises(found)),
        *_section("A decode step: operations and bytes", _counts(found["steps"])),
        *_section("A decode step: microseconds of the host", _times(found["steps"])),
        *_section("Once for each request: hashes and tags", _admission(found["admission"])),
        *_section("Once for each request: waits and copies", _waits(found["admission"][-1]["counts"])),
        *_section("Once for each request: the bytes themselves", _bytes(found["admission"])),
        *_section("Memory", _memory(found["memory"])),
    ]
    return "\n".join(lines) + "\n"


def _section(title: str, rows: Iterable[Sequence[object]]) -> list[str]:
    head, *body = [[str(cell) for cell in row] for row in rows]
    table = [head, ["---:"] * len(head), *body]
    return ["", f"## {title}", "", *(f"| {' | '.join(row)} |" for row in table)]


def _counts(steps: list[Found]) -> Iterable[Sequence[object]]:
    yield (
        "rows",
        "context",
        "page size",
        "steps that begin a page",
        "operations of the tags",
        "at most",
        "of SGLang",
        "ratio",
        "bytes of the tags",
        "of SGLang",
        "copies to the device",
        "numbers assigned",
    )
    for cell in steps:
        ours, theirs = cell["tags"], cell["sglang"]
        on_gpu = cell["sglang_operations_with_one_kernel"]
        yield (
            *(cell[name] for name in ("batch", "context", "page_size")),
            f"{cell['beginning']:.0%}",
            f"{ours['operations']:.2f}",
            cell["most"]["operations"],
            f"{on_gpu:.2f}",
            f"{ours['operations'] / on_gpu:.2f}",
            f"{ours['read'] + ours['written']:,.0f}",
            f"{theirs['read'] + theirs['written']:,.0f}",
            f"{ours['copies']:.2f}",
            f"{ours['numbers']:.2f}",
        )


def _times(steps: list[Found]) -> Iterable[Sequence[object]]:
    yield (
        "rows",
        "context",
        "page size",
        "tags, mean",
        "p50",
        "p99",
        "beginning a page, p50",
        "beginning none, p50",
        "SGLang's allocation, mean",
        "p50",
        "p99",
        "ratio of means",
    )
    names = (
        "tags_mean",
        "tags_p50",
        "tags_p99",
        "beginning_p50",
        "idle_p50",
        "sglang_mean",
        "sglang_p50",
        "sglang_p99",
    )
    for cell in steps:
        times = cell["times"]
        yield (
            *(cell[name] for name in ("batch", "context", "page_size")),
            *("-" if times[name] is None else f"{times[name] * 1e6:.0f}" for name in names),
            f"{times['tags_mean'] / times['sglang_mean']:.2f}",
        )


def _admission(cells: list[Found]) -> Iterable[Sequence[object]]:
    yield (
        "tokens",
        "page size",
        "prefill: content tags, ns a token",
        "digest, ns a token",
        "tag and label, ms",
        "verify, ms",
        "decode: take, ms",
        "arrive, ms",
        "verify, ms",
        "release, ms",
        "SGLang's allocation, ms",
        "decode's tags / allocation",
        "bytes of the tags on both / KV",
    )
    for cell in cells:
        seconds, tokens = cell["seconds"], cell["tokens"]
        allocation = seconds["baseline: SGLang's allocation"]
        on_decode = sum(seconds[name] for name in ("take", "arrive", "verify on decode", "release"))
        told = {name: counts for name, counts in cell["counts"].items() if name != "take"}  # it is in "tag and zero"
        moved = sum(counts["read"] + counts["written"] for counts in told.values())
        named = ("tag and label", "verify on prefill", "take", "arrive", "verify on decode", "release")
        yield (
            tokens,
            cell["page_size"],
            *(f"{seconds[name] / tokens * 1e9:.0f}" for name in ("hash contents", "digest")),
            *(f"{seconds[name] * 1000:.2f}" for name in named),
            f"{allocation * 1000:.2f}",
            f"{on_decode / allocation:.1f}",
            f"{moved / cell['kv_bytes']:.4%}",
        )


def _waits(parts: dict[str, Found]) -> Iterable[Sequence[object]]:
    yield "part", "operations", "waits for the device", "copies that wait", "numbers assigned"
    for name, counts in parts.items():
        yield name, *(counts[which] for which in ("operations", "waits", "copies", "numbers"))


def _bytes(cells: list[Found]) -> Iterable[Sequence[object]]:
    yield (
        "tokens",
        "page size",
        "bytes zeroed for each byte of KV",
        "zeroing, GB/s",
        "time / zeroing in a row",
        "time / writing the KV once",
        "proof: bytes read / KV",
        "time / writing that KV once",
        "proof, GB/s of what it reads",
    )
    for cell in cells:
        seconds, here = cell["seconds"], cell["kv_bytes_here"]
        zero, write = seconds["zero"], seconds["baseline: write KV once"]
        whole = write * cell["kv_bytes"] / here  # of all layers
        yield (
            cell["tokens"],
            cell["page_size"],
            f"{cell['zeroed'] / cell['kv_bytes']:.4f}",
            f"{cell['zeroed_here'] / zero / 1e9:.1f}",
            f"{zero / seconds['baseline: zero in a row']:.2f}",
            f"{zero / write:.2f}",
            f"{cell['proof_bytes'] / cell['kv_bytes']:.2%}",
            f"{seconds['proof'] / whole:.2f}",
            f"{cell['proof_bytes'] / seconds['proof'] / 1e9:.2f}",
        )


def _memory(cells: list[Found]) -> Iterable[Sequence[object]]:
    yield "page size", "bytes of tags for each page", "bytes of KV", "share"
    for cell in cells:
        share = cell["tag_bytes"] / cell["kv_bytes"]
        yield cell["page_size"], f"{cell['tag_bytes']:.0f}", f"{cell['kv_bytes']:,}", f"{share:.5%}"
