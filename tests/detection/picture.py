"""Draws what was measured beside the formula, as a small SVG that is the same whenever the numbers are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl

from bench.drawing import NO_METADATA, SETTINGS
from kvfence.verify.canary.detection import Probing, detected, detected_at_least
from tests.detection.measured import Seen, interval

mpl.use("svg")

from matplotlib import pyplot as plt
from matplotlib.ticker import NullLocator

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = 4
STEPS = 24
"""Points of a curve."""
LEAST, MOST = 0.005, 0.6
"""Rates that are shown."""


@dataclass(frozen=True)
class Curve:
    """One check."""

    name: str
    formula: Probing
    measured: tuple[Seen, ...]


def draw(curves: Sequence[Curve], output: Path) -> None:
    """Write the picture."""
    rows = -(-len(curves) // COLUMNS)
    with mpl.rc_context(SETTINGS):
        figure, axes = plt.subplots(
            rows, COLUMNS, figsize=(2.4 * COLUMNS, 2.2 * rows), sharex=True, sharey=True, squeeze=False
        )
        for axis, curve in zip(axes.flat, curves, strict=False):
            _one(axis, curve)
        for axis in axes.flat[len(curves) :]:
            axis.set_visible(False)
        axes[0][0].legend(loc="upper left", frameon=False, fontsize=6)
        figure.supxlabel("share of the requests that leak")
        figure.supylabel("probability that the check does not pass")
        figure.tight_layout()
        figure.savefig(output, format="svg", metadata=NO_METADATA)
        plt.close(figure)


def _one(axis: Axes, curve: Curve) -> None:
    rates = [LEAST * (MOST / LEAST) ** (step / STEPS) for step in range(STEPS + 1)]
    independent = [detected(curve.formula, rate) for rate in rates]
    axis.plot(rates, independent, color="#0b6e4f", linewidth=1.2, label="formula")
    if curve.formula.at_once > 1:
        least = [detected_at_least(curve.formula, rate) for rate in rates]
        axis.plot(rates, least, color="#0b6e4f", linewidth=0.8, linestyle="--", label="if rounds leak as one")
    shares = [seen.share for seen in curve.measured]
    spread = [interval(seen) for seen in curve.measured]
    errors = (
        [max(0.0, share - low) for share, (low, _) in zip(shares, spread, strict=True)],
        [max(0.0, high - share) for share, (_, high) in zip(shares, spread, strict=True)],
    )
    axis.errorbar(
        [seen.rate for seen in curve.measured],
        shares,
        yerr=errors,
        fmt="o",
        markersize=2.5,
        linewidth=0.8,
        color="#c1440e",
        label="measured, 95 %",
    )
    axis.set_title(curve.name, fontsize=8)
    axis.set_xscale("log")
    axis.xaxis.set_minor_locator(NullLocator())
    axis.set_xticks([0.01, 0.1, 0.5], ["1 %", "10 %", "50 %"])
    axis.set_ylim(0, 1.03)
