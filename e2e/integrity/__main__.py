"""`python -m e2e.integrity N`: so many users, ordinary and hostile, on a pair with all defences.

The first of them are asked again on a pair without.

Ends with status 1 when anything crossed over, was wrong or was found where nothing was planted; and when the pair
without defences did not leak, since then nothing was shown.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from e2e import progress
from e2e.door.engines import Injection
from e2e.integrity import mixed
from e2e.integrity.outcome import Verdict
from e2e.integrity.traffic import Seen, drawn


def main() -> int:
    """Ask for all of them twice, and say what became of them."""
    parser = argparse.ArgumentParser(prog="python -m e2e.integrity", description=__doc__)
    parser.add_argument("users", type=int, nargs="?", default=300)
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--control", type=int, default=1000, help="how many of them are asked on SGLang alone")
    parser.add_argument("--page-size", type=int, default=16)
    asked = parser.parse_args()
    users = list(drawn(asked.users, asked.seed))
    with tempfile.TemporaryDirectory(prefix="kvfence-integrity-") as name:
        folder = Path(name)
        injection = Injection.build(folder / "injection")
        for logs in ("defended", "bare"):
            (folder / logs).mkdir()
        with mixed.defended(injection, folder / "defended", asked.page_size) as legs:
            seen = mixed.asked(users, legs.pair, "all defences enforced")
            counts = legs.counts()
        _say("all defences enforced", seen)
        for leg, said in counts.items():
            progress.say(f"    {leg}: {said}")
        with mixed.bare(folder / "bare", asked.page_size) as pair:
            control = mixed.asked(users[: asked.control], pair, "SGLang alone")
        _say("SGLang alone", control)
    faults = mixed.faults(seen, counts)
    if not control.of(Verdict.LEAKED):
        faults.append("SGLang alone did not leak: nothing was shown")
    progress.say("\n".join(faults) or f"{len(users)} users: nothing crossed over; alone SGLang leaked")
    return 1 if faults else 0


def _say(who: str, seen: Seen) -> None:
    progress.say(f"{who}:")
    for (kind, verdict), count in sorted(seen.verdicts.items()):
        progress.say(f"    {kind:<12} {verdict:<8} {count:>6}")
    progress.say(f"    left         {seen.left:>15}")
    for example in seen.examples:
        progress.say(f"    {example}")


if __name__ == "__main__":
    sys.exit(main())
