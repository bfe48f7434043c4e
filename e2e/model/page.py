"""The part of docs/model.md that is generated: what each search came to, and each counterexample with its replay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from e2e.generated import Marked
from e2e.model import replay, telling
from e2e.model.defences import ALL, WITHOUT
from e2e.model.replay import Ending

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from e2e.model.checker import Found
    from e2e.model.replay import Played

PAGE = Marked("model.md", "python -m e2e.model --write")
_LATER = {
    Ending.REFUSED: "the request is refused",
    Ending.NOT_GIVEN: "the page is not given out",
    Ending.RIGHT: "nothing goes wrong",
}


def text(found: Iterable[Found]) -> str:
    """Return what stands between the marks after these searches."""
    found = list(found)
    table = ["| defences on | faults, at most | found | states | depth |", "|---|---|---|---|---|"]
    table += [f"| {_row(one)} |" for one in found]
    return "\n".join([*table, *(line for one in found if one.violation for line in _counterexample(one))]) + "\n"


def result(found: Found) -> str:
    """Return in a few words what a search came to."""
    if not found.violation:
        return "nothing: all states were looked at"
    if found.violation[-1].kind == "verify":
        return "a false alarm"
    return "a leak" if found.violation[-1].numbers[2] else "zeros are read"


def _row(found: Found) -> str:
    search = found.search
    return f"{search.name} | {search.faults} | {result(found)} | {found.states:,} | {found.depth}"


def _counterexample(found: Found) -> Iterator[str]:
    search = found.search
    without = next((defence.value for defence, one in WITHOUT.items() if one == search), None)
    yield ""
    yield f"### Without {without}" if without else "### With no defence"
    yield ""
    for number, step in enumerate(telling.steps(found.violation), 1):
        yield f"{number}. {step}"
    yield ""
    yield f"On the code: {_ends(replay.play(found.violation, search.on))}."
    yield f"With all defences: {_ends(replay.play(found.violation, ALL))}."


def _ends(played: Played) -> str:
    if played.ending in _LATER:
        return f"{_LATER[played.ending]} ({played.what})"
    return f"the same ({played.what})"
