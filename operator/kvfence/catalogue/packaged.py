"""The catalogue that comes with this release of kvfence: the files in `osv/`, and the day they were looked through."""

from __future__ import annotations

import functools
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from kvfence.catalogue import documents
from kvfence.catalogue.catalogue import Catalogue, collected
from kvfence.domain.advisories.parsing import moment

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

FOLDER = "osv"
DATE_FILE = "DATE"
LEFT_OUT_FILE = "left-out.json"


@functools.cache
def packaged() -> Catalogue:
    """Return the catalogue in the package. A file that cannot be read is a problem of it, and the others count."""
    found, problems = [], []
    for entry in sorted(_data().joinpath(FOLDER).iterdir(), key=lambda entry: entry.name):
        if not entry.name.endswith(".json"):
            continue
        try:
            found.append(documents.read(entry.read_bytes(), entry.name))
        except ValueError as error:
            problems.append(str(error))
    date = moment(_data().joinpath(DATE_FILE).read_text().strip(), DATE_FILE)
    catalogue = collected(found, date)
    return Catalogue(date, catalogue.advisories, (*problems, *catalogue.problems))


def left_out() -> tuple[tuple[str, str], ...]:
    """Return what was read and is not in the catalogue, each with the reason."""
    entries: list[dict[str, Any]] = documents.read(_data().joinpath(LEFT_OUT_FILE).read_bytes(), LEFT_OUT_FILE)
    return tuple((entry["what"], entry["why"]) for entry in entries)


def _data() -> Traversable:
    return files("kvfence.catalogue")
