"""What happens in a counterexample, as the model prints it."""

from __future__ import annotations

from dataclasses import dataclass

_MARK = "EVENT "


@dataclass(frozen=True)
class Event:
    """One thing that happens. `pages.pml` says what the numbers of each kind are, where it prints them."""

    kind: str
    numbers: tuple[int, ...]


def read(output: str) -> tuple[Event, ...]:
    """Return the events in what a replayed trail printed, in their order."""
    lines = (line.strip().removeprefix(_MARK).split() for line in output.splitlines() if line.strip().startswith(_MARK))
    return tuple(Event(kind, tuple(map(int, numbers))) for kind, *numbers in lines)


def request(number: int) -> str:
    """Return the name of a request: A1 is 1, B1 2, A2 3, B2 4."""
    return f"{'AB'[(number - 1) % 2]}{(number + 1) // 2}"
