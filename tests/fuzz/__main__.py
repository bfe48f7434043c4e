"""`python -m tests.fuzz N [--seed S]`: tries N changed logs. `python -m tests.fuzz bench`: how fast logs are read."""

from __future__ import annotations

import argparse
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from tests.fuzz.bench import bench
from tests.fuzz.judging import Score
from tests.fuzz.play import Tally, play

PART = 2_000


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("what", help="how many changed logs to try, or `bench`")
    parser.add_argument("--seed", type=int, default=0, help="the first seed; each log has the next one")
    parser.add_argument("--megabytes", type=int, default=200, help="of the log of the bench")
    chosen = parser.parse_args()
    if chosen.what == "bench":
        sys.stdout.write(f"{bench(chosen.megabytes)}\n")
        return 0
    return fuzz(int(chosen.what), chosen.seed)


def fuzz(number: int, seed: int) -> int:
    """Try so many changed logs on all cores; return 1 when one came off wrong."""
    begun = time.monotonic()
    parts = [range(at, min(at + PART, seed + number)) for at in range(seed, seed + number, PART)]
    total = Tally()
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for tally in pool.map(play, parts):
            total.scores.update(tally.scores)
            total.wrong += tally.wrong
            for change, scores in tally.by_change.items():
                total.by_change.setdefault(change, type(scores)()).update(scores)
    for change, scores in sorted(total.by_change.items()):
        sys.stdout.write(f"  {change:16} " + "  ".join(f"{score}: {scores[score]:6}" for score in Score) + "\n")
    for line in total.wrong[:20]:
        sys.stderr.write(f"{line}\n")
    share = 100 * total.scores[Score.KEPT] / max(1, number)
    sys.stdout.write(
        f"{number} changed logs from seed {seed} in {time.monotonic() - begun:.0f} s: {share:.1f}% keep their answer, "
        f"{total.scores[Score.UNKNOWN]} cannot tell, {total.scores[Score.WRONG]} wrong\n"
    )
    return 1 if total.scores[Score.WRONG] else 0


if __name__ == "__main__":
    sys.exit(main())
