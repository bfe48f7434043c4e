"""Documents: links inside the repository lead somewhere, and every decision is in the list."""

from __future__ import annotations

import re
from pathlib import Path

LINK = re.compile(r"\]\((?!https?://|#)([^)#\s]+)")


def dead_links(text: str, folder: Path) -> list[str]:
    """Return the targets of the text's relative links that do not exist, seen from the folder it is in."""
    return [target for target in LINK.findall(text) if not (folder / target).exists()]


def unlisted(records: Path) -> set[str]:
    """Return the records that the README of their folder does not link to."""
    return {path.name for path in records.glob("[0-9]*.md")} - set(LINK.findall((records / "README.md").read_text()))


def test_links_lead_somewhere(root: Path, files: list[Path]) -> None:
    documents = [root / name for name in files if name.suffix == ".md"]
    dead = {str(path.relative_to(root)): dead_links(path.read_text(), path.parent) for path in documents}
    assert dead
    assert {name: targets for name, targets in dead.items() if targets} == {}


def test_every_decision_is_listed(root: Path) -> None:
    assert unlisted(root / "docs" / "decisions") == set()


def test_a_dead_link_and_an_unlisted_decision_are_seen(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("[one](0001-one.md) [gone](gone.md#part) [out](https://example.com)")
    (tmp_path / "0001-one.md").touch()
    (tmp_path / "0002-two.md").touch()
    assert dead_links((tmp_path / "README.md").read_text(), tmp_path) == ["gone.md"]
    assert unlisted(tmp_path) == {"0002-two.md"}
