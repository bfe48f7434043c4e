"""The defences, by their names in `pages.pml`, and the searches that are made."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Defence(Enum):
    """One that the model can do without."""

    OWNER = "OWNER"
    WRITER = "WRITER"
    COVERAGE = "COVERAGE"
    SCRUB = "SCRUB"
    RETIRE = "RETIRE"
    FRESH = "FRESH"
    WITHHOLD = "WITHHOLD"
    KEEP = "KEEP"
    ORDER = "ORDER"
    CLEAR = "CLEAR"


ALL = frozenset(Defence)


@dataclass(frozen=True)
class Search:
    """One search of the model."""

    name: str
    on: frozenset[Defence]
    faults: int
    """How many may happen. Counterexamples are sought with as few as will do, so that they are easy to read."""
    false_alarms: bool
    """Whether a request that is refused for nothing counts too."""
    zeros: bool
    """Whether zeros that are read count as a violation."""
    shortest: bool
    """Breadth first: takes more memory, and finds the shortest way to a violation."""

    def settings(self) -> list[str]:
        """Return the model's definitions, as arguments of spin."""
        values = {"FAULTS": self.faults, "FALSE_ALARMS": int(self.false_alarms), "ZEROS": int(self.zeros)}
        values |= {defence.value: int(defence in self.on) for defence in Defence}
        return ["-DDEFENCES", *(f"-D{name}={value}" for name, value in values.items())]


WITH_ALL = Search("all", ALL, faults=2, false_alarms=True, zeros=True, shortest=False)
WITH_NONE = Search("none", frozenset(), faults=1, false_alarms=False, zeros=False, shortest=True)
WITHOUT = {
    defence: Search(
        f"all but {defence.value}",
        ALL - {defence},
        faults=0 if defence in (Defence.ORDER, Defence.CLEAR) else 1,
        false_alarms=defence is Defence.CLEAR,
        zeros=defence is Defence.WRITER,  # the others give another's KV away
        shortest=True,
    )
    for defence in Defence
}
SEARCHES = (WITH_ALL, *WITHOUT.values(), WITH_NONE)
