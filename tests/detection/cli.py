"""Command line of the measurement."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from kvfence.verify.canary.detection import detected, detected_at_least
from kvfence.verify.canary.probes import probing_of
from kvfence.verify.canary.suite import SUITE
from tests.detection.measured import Tried, first_control, interval, measure, probing
from tests.detection.picture import Curve, draw

PICTURE = Path(__file__).resolve().parents[2] / "docs" / "images" / "detection.svg"
RATES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4)
RUNS = 100


def main() -> None:
    """Measure all checks that chance has a part in, print what was seen, and draw it."""
    parser = argparse.ArgumentParser(prog="python -m tests.detection", description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS, help="of each check at each rate")
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--output", type=Path, default=PICTURE, help="an SVG file")
    asked = parser.parse_args()
    if asked.runs < 1:
        parser.error("--runs is a number from 1")
    curves = [curve(tried, asked.runs, asked.seed) for tried in all_tried()]
    asked.output.parent.mkdir(parents=True, exist_ok=True)
    draw(curves, asked.output)
    say(f"{asked.output}: {asked.output.stat().st_size:,} bytes")


def all_tried() -> list[Tried]:
    """Return every check that has a formula, with its first control."""
    every = [first_control(check) for check in SUITE.values()]
    return [one for one in every if probing_of(one.check.NAME, one.target, 100) is not None]


def curve(tried: Tried, runs: int, seed: int) -> Curve:
    """Measure one check at all rates, and say what was seen."""
    formula = probing(tried)
    points = []
    for rate in RATES:
        seen = measure(tried, rate, runs, seed)
        low, high = interval(seen)
        least, independent = detected_at_least(formula, rate), detected(formula, rate)
        say(
            f"{tried.check.NAME.value:<16} leaks in 1 of {1 / rate:<6g} seen in {seen.seen:>4} of {runs} runs "
            f"({low:.2f} to {high:.2f}), formula {least:.2f} to {independent:.2f}"
        )
        points.append(seen)
    return Curve(tried.check.NAME.value, formula, tuple(points))


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
