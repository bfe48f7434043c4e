"""Draws what was measured: small SVG files that are the same whenever the numbers are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib as mpl

from bench.drawing import NO_METADATA, SETTINGS

mpl.use("svg")

from matplotlib import pyplot as plt
from matplotlib.ticker import NullLocator

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes

    from bench.engine.report import Found

OURS, THEIRS = "#c1440e", "#0b6e4f"
SHADES = {1: "#c1440e", 16: "#e0a458", 64: "#5b8e7d"}
"""Of page sizes."""


def draw(found: Found, folder: Path) -> list[Path]:
    """Write the pictures; return their files."""
    drawn = {
        "engine-step-operations.svg": _operations,
        "engine-step-time.svg": _step_time,
        "engine-request-time.svg": _request_time,
        "engine-scrub.svg": _scrub,
    }
    files = []
    with mpl.rc_context(SETTINGS):
        for name, picture in drawn.items():
            figure, axis = plt.subplots(figsize=(5.6, 3.2))
            picture(axis, found)
            figure.tight_layout()
            figure.savefig(folder / name, format="svg", metadata=NO_METADATA)
            plt.close(figure)
            files.append(folder / name)
    return files


def _operations(axis: Axes, found: Found) -> None:
    cells = _of_one_context(found)
    _pairs(
        axis,
        cells,
        [cell["tags"]["operations"] for cell in cells],
        [cell["sglang_operations_with_one_kernel"] for cell in cells],
        "{:.1f}",
    )
    axis.set_ylabel("operations of the device in a step, mean")
    axis.set_title("What a decode step asks of the device; the context makes no difference", fontsize=8)


def _step_time(axis: Axes, found: Found) -> None:
    cells = _of_one_context(found)
    ours = [cell["times"]["tags_mean"] * 1e6 for cell in cells]
    theirs = [cell["times"]["sglang_mean"] * 1e6 for cell in cells]
    _pairs(axis, cells, ours, theirs, "{:.0f}")
    axis.set_ylabel("processor time of the host in a step, mean, µs")
    axis.set_title(f"What a decode step takes of the host on a CPU, contexts of {cells[0]['context']:,}", fontsize=8)


def _pairs(axis: Axes, cells: list[Found], ours: list[float], theirs: list[float], shown: str) -> None:
    places = [place + place // 3 * 0.6 for place in range(len(cells))]
    for offset, values, colour, label in ((-0.2, ours, OURS, "tags"), (0.2, theirs, THEIRS, "SGLang's allocation")):
        bars = axis.bar([place + offset for place in places], values, 0.38, color=colour, label=label)
        axis.bar_label(bars, [shown.format(value) for value in values], fontsize=6, padding=1)
    axis.set_xticks(places, [f"{cell['page_size']}" for cell in cells])
    for start in range(0, len(cells), 3):
        axis.text(places[start + 1], -0.16, f"batch of {cells[start]['batch']}", ha="center", transform=_below(axis))
    axis.set_xlabel("page size, tokens", labelpad=18)
    axis.legend(frameon=False, fontsize=7, loc="upper left")
    axis.margins(y=0.2)


def _below(axis: Axes) -> Any:
    return axis.get_xaxis_transform()


def _request_time(axis: Axes, found: Found) -> None:
    parts = ("hash contents", "tag and label", "verify on prefill", "take", "arrive", "verify on decode", "release")
    for size, shade in SHADES.items():
        cells = [cell for cell in found["admission"] if cell["page_size"] == size]
        tokens = [cell["tokens"] for cell in cells]
        ours = [sum(cell["seconds"][part] for part in parts) * 1000 for cell in cells]
        axis.plot(
            tokens, ours, "o-", color=shade, markersize=3, linewidth=1.2, label=f"hashes and tags, pages of {size}"
        )
        theirs = [cell["seconds"]["baseline: SGLang's allocation"] * 1000 for cell in cells]
        label = f"SGLang's allocation, pages of {size}"
        axis.plot(tokens, theirs, "s--", color=shade, markersize=3, linewidth=0.8, label=label)
    axis.set_xscale("log", base=2)
    axis.set_yscale("log")
    axis.set_xticks(tokens, [f"{count // 1024}k" for count in tokens])
    axis.xaxis.set_minor_locator(NullLocator())
    axis.set_xlabel("tokens of the prompt")
    axis.set_ylabel("processor time, both legs, ms")
    axis.set_title("What a request takes once, without zeroing and proof, on a CPU", fontsize=8)
    axis.legend(frameon=False, fontsize=6)


def _scrub(axis: Axes, found: Found) -> None:
    most = max(cell["tokens"] for cell in found["admission"])
    cells = [cell for cell in found["admission"] if cell["tokens"] == most]
    bars = (
        ("zeroing the pages", "zero", OURS),
        ("zeroing as many bytes in a row", "baseline: zero in a row", "#999999"),
        ("writing that KV once", "baseline: write KV once", THEIRS),
    )
    for number, (label, name, colour) in enumerate(bars):
        values = [cell["seconds"][name] / cell["kv_bytes_here"] * 1e12 for cell in cells]
        drawn = axis.bar(
            [place + (number - 1) * 0.27 for place in range(len(cells))], values, 0.25, color=colour, label=label
        )
        axis.bar_label(drawn, [f"{value:.0f}" for value in values], fontsize=6, padding=1)
    axis.set_xticks(range(len(cells)), [f"{cell['page_size']}" for cell in cells])
    axis.set_xlabel("page size, tokens")
    axis.set_ylabel("processor time for each GB, ms")
    axis.set_title(f"Scrub of {most:,} tokens beside plain writing, on a CPU", fontsize=8)
    axis.margins(y=0.45)
    axis.legend(frameon=False, fontsize=7, loc="upper left")


def _of_one_context(found: Found) -> list[Found]:
    longest = max(cell["context"] for cell in found["steps"])
    return [cell for cell in found["steps"] if cell["context"] == longest]
