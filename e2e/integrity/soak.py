"""`python -m e2e.integrity.soak`: clean mixed load on a pair with all defences, for as long as is asked.

No plant, no hostile user: whatever is found is a false alarm. So that the bookkeeping has all its work, prompts begin
alike and are found in prefill's cache, clients leave at all moments, and decode, whose pool is small, keeps so little
free for answers so long that it runs out of pages and puts requests back, to take them up again when there is room.

Ends with status 1 when anything crossed over, was wrong or was found; and when no request was put back, none found a
page in the cache or nobody left, since then nothing was shown.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import re
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from e2e import progress
from e2e.door.engines import Injection
from e2e.integrity import mixed
from e2e.integrity.outcome import Verdict
from e2e.integrity.traffic import Kind, Mix, Seen, ask_all, drawn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from e2e.integrity.legs import Legs
    from e2e.integrity.traffic import User

CLEAN = Mix(
    {Kind.PLAIN: 2, Kind.ALIKE: 3, Kind.LONG_ANSWER: 4, Kind.LEAVES: 2},
    goes_on=220,
    leaves_within=8.0,
)
RESERVED = 8
"""Tokens that decode keeps free for each request: far fewer than a long answer has."""
AT_ONCE = 16
"""Users: several times as many as decode's pool holds, so that it is always full."""
PER_MINUTE = 2000
"""Users that are drawn for each minute: more than a pair answers."""
TELL_SECONDS = 60.0

_PUT_BACK = re.compile(rb"Retract requests\. #retracted_reqs: (\d+)")
_FOUND_IN_CACHE = re.compile(rb"Prefill batch.* #cached-token: (\d+)")


@dataclass
class Log:
    """Numbers that an engine's log tells, added up as it grows."""

    path: Path
    wanted: re.Pattern[bytes]
    """With one number in it."""
    total: int = 0
    _read: int = 0
    _rest: bytes = b""

    def read_on(self) -> int:
        """Return the sum of all so far."""
        with self.path.open("rb") as log:
            log.seek(self._read)
            new = log.read()
        self._read += len(new)
        *lines, self._rest = (self._rest + new).split(b"\n")
        self.total += sum(int(found[1]) for line in lines if (found := self.wanted.search(line)))
        return self.total


@dataclass(frozen=True)
class Passed:
    """What became of the load up to now."""

    seen: Seen
    counts: dict[str, Any]
    """Of the defences, by leg."""
    put_back: int
    """Requests for which decode had no page left."""
    found_in_cache: int
    """Tokens that prefill had computed before."""
    blown: dict[str, Any] = field(default_factory=dict)
    """Why the fuse of a leg is blown, by leg; nothing where it is not."""

    def line(self) -> str:
        """Say it in one line."""
        verdicts = Counter({verdict: self.seen.of(verdict) for verdict in Verdict})
        pages = ", ".join(f"{leg} {said['pagesVerified']}/{said['pagesExpected']}" for leg, said in self.counts.items())
        return (
            f"{self.seen.asked} users, {verdicts[Verdict.WRONG]} wrong, {verdicts[Verdict.LEAKED]} crossed, "
            f"{self.seen.unwanted} unwanted; pages verified/expected: {pages}; {self.put_back} put back, "
            f"{self.seen.left} left, {self.found_in_cache} tokens from the cache"
        )

    def faults(self) -> list[str]:
        """Return what should not be. Pure."""
        wrong = mixed.faults(self.seen, self.counts)
        wrong += [f"the fuse of {leg} is blown: {why}" for leg, why in self.blown.items() if why]
        shown = {
            "decode put no request back": self.put_back,
            "prefill found nothing in its cache": self.found_in_cache,
            "nobody left": self.seen.left,
        }
        for leg, said in self.counts.items():  # SGLang waits long enough for prefill to say that nothing comes any more
            if said["pagesRetired"]:
                wrong.append(f"{leg} gives nobody {said['pagesRetired']} pages any more, since clients left")
        return wrong + [f"{what}: nothing was shown of it" for what, count in shown.items() if not count]


def soaked(legs: Legs, seconds: float, seed: int) -> Passed:
    """Have users ask for so long, and say every minute how far it is."""
    return asyncio.run(_Soak(legs, seconds, seed).run())


class _Soak:
    def __init__(self, legs: Legs, seconds: float, seed: int) -> None:
        self._legs = legs
        self._seconds = seconds
        self._users = drawn(int(seconds / 60 * PER_MINUTE) + PER_MINUTE, seed, CLEAN)
        self._seen = Seen()
        self._put_back = Log(legs.decode.log, _PUT_BACK)
        self._cached = Log(legs.prefill.log, _FOUND_IN_CACHE)

    async def run(self) -> Passed:
        teller = asyncio.create_task(self._tell())
        try:
            await ask_all(self._until(time.monotonic() + self._seconds), self._legs.pair, self._seen, AT_ONCE)
        finally:
            teller.cancel()
        return await asyncio.to_thread(self._passed)

    def _until(self, deadline: float) -> Iterator[User]:
        return itertools.takewhile(lambda _: time.monotonic() < deadline, self._users)

    async def _tell(self) -> None:
        began = time.monotonic()
        while True:
            await asyncio.sleep(TELL_SECONDS)
            passed = await asyncio.to_thread(self._passed)
            progress.say(f"    {progress.clock(time.monotonic() - began)}: {passed.line()}")

    def _passed(self) -> Passed:
        legs = {leg.server.name: leg.status() for leg in (self._legs.prefill, self._legs.decode)}
        return Passed(
            self._seen,
            {name: status["ranks"][0]["integrity"] for name, status in legs.items()},
            self._put_back.read_on(),
            self._cached.read_on(),
            {name: status["blown"] for name, status in legs.items()},
        )


def main() -> int:
    """Soak a pair and say what became of it."""
    parser = argparse.ArgumentParser(prog="python -m e2e.integrity.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--page-size", type=int, default=16)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kvfence-soak-") as name:
        folder = Path(name)
        injection = Injection.build(folder / "injection")
        (folder / "logs").mkdir()
        with mixed.defended(injection, folder / "logs", asked.page_size, RESERVED) as legs:
            progress.say(f"==> {asked.minutes:g} minutes of clean load, pages of {asked.page_size}")
            passed = soaked(legs, asked.minutes * 60, asked.seed)
    progress.say(passed.line())
    for (kind, verdict), count in sorted(passed.seen.verdicts.items()):
        progress.say(f"    {kind:<12} {verdict:<8} {count:>6}")
    faults = passed.faults()
    progress.say("\n".join([*faults, *passed.seen.examples]) or "nothing was found, and there was nothing to be found")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
