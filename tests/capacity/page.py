"""The part of docs/capacity.md that is generated."""

from __future__ import annotations

from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "capacity.md"
BEGIN = "<!-- from here on: python -m tests.capacity --write -->\n"
END = "<!-- up to here -->\n"


def figures_in(page: str) -> str:
    """Return what stands between the marks.

    Raises:
        ValueError: there are not exactly two marks.
    """
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        raise ValueError("the page has not one mark of each kind")
    return page.partition(BEGIN)[2].partition(END)[0].strip("\n") + "\n"


def with_figures(page: str, figures: str) -> str:
    """Return the page with other figures between its marks.

    Raises:
        ValueError: there are not exactly two marks.
    """
    figures_in(page)
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n{figures}\n{END}{rest.partition(END)[2]}"
