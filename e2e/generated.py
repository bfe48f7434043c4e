"""A page of the docs of which a command writes a part, between two marks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_DOCS = Path(__file__).resolve().parents[1] / "docs"


@dataclass(frozen=True)
class Marked:
    """One such page."""

    name: str
    """Of its file in `docs/`."""
    command: str
    """What writes the part; the first mark says so."""

    @property
    def path(self) -> Path:
        """Where it is."""
        return _DOCS / self.name

    @property
    def begin(self) -> str:
        """The line above the part."""
        return f"<!-- from here on: {self.command} -->\n"

    @property
    def end(self) -> str:
        """The line below it."""
        return "<!-- up to here -->\n"

    def part_of(self, page: str) -> str:
        """Return what stands between the marks.

        Raises:
            ValueError: there is not one of each.
        """
        if page.count(self.begin) != 1 or page.count(self.end) != 1:
            raise ValueError("the page has not one mark of each kind")
        return page.partition(self.begin)[2].partition(self.end)[0].strip("\n") + "\n"

    def with_part(self, page: str, text: str) -> str:
        """Return the page with another text between its marks.

        Raises:
            ValueError: there is not one of each.
        """
        self.part_of(page)
        before, _, rest = page.partition(self.begin)
        return f"{before}{self.begin}\n{text}\n{self.end}{rest.partition(self.end)[2]}"
