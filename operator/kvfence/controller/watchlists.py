"""The advisories that count now: those in the package, and those in a file that may come, change and go."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from kvfence.catalogue import Catalogue, added, merged, packaged
from kvfence.controller.metrics import ADVISORIES, ADVISORIES_DATE, ADVISORY_PROBLEMS
from kvfence.domain.advisory_gate import PACKAGES, Watchlist, counting

if TYPE_CHECKING:
    from pathlib import Path

    from kvfence.domain.advisories import Advisory

SIGNATURE_SUFFIX = ".sig"
SWAPPED = "..data"
"""The link by which the kubelet swaps all files of a ConfigMap at once."""

log = logging.getLogger(__name__)


@dataclass
class Watchlists:
    """Reads the file when it is told to, and keeps what it found.

    What was signed once counts until something signed that is not older takes its place: a file that is gone, broken or
    wrongly signed takes nothing away.

    Attributes:
        file: a signed catalogue, its signature beside it under the same name with `.sig`; `None` for the package's.
        public_keys: the text of those that may have signed it.
    """

    file: Path | None = None
    public_keys: tuple[bytes, ...] = ()
    _signed: Catalogue | None = field(default=None, repr=False)
    """The newest that was signed."""
    _advisories: tuple[Advisory, ...] | None = field(default=None, repr=False)
    _problems: tuple[str, ...] = field(default=(), repr=False)

    def current(self) -> Watchlist:
        """Return what counts now."""
        if self._advisories is None:
            self.refresh()
        assert self._advisories is not None
        return Watchlist(self._advisories, self._problems, datetime.now(UTC))

    def refresh(self) -> bool:
        """Read the file again. Return whether something else counts now than before."""
        found = packaged() if self.file is None else merged(packaged(), self._added(self.file))
        found = replace(found, problems=(*found.problems, *_not_judged(self._signed)))
        ADVISORIES.set(len(found.advisories))
        ADVISORY_PROBLEMS.set(len(found.problems))
        if found.date is not None:
            ADVISORIES_DATE.set(found.date.timestamp())
        advisories = counting(found.advisories)
        if (self._advisories, self._problems) == (advisories, found.problems):
            return False  # the old ones are kept: engines were judged by them
        self._advisories, self._problems = advisories, found.problems
        for problem in found.problems:
            log.error("Advisories: %s", problem)
        log.info("%d advisories are known, and %d can keep engines out", len(found.advisories), len(advisories))
        return True

    def _added(self, file: Path) -> Catalogue:
        """Return the newest that was signed, with what is wrong with the file now."""
        new = self._read(file)
        held = self._signed.date if self._signed is not None else None
        if new.date is not None and (held is None or new.date >= held):
            self._signed = new
        if self._signed is None or new is self._signed or held is None:
            return new
        problems = new.problems
        if new.date is not None:
            problems = (f"The added advisories are of {new.date.isoformat()}, and newer ones were there before.",)
        kept = f"Those of {held.isoformat()} go on counting until the operator is started anew."
        return replace(self._signed, problems=(f"{problems[0]} {kept}", *problems[1:]))

    def _read(self, file: Path) -> Catalogue:
        folder = file.parent
        try:
            if (folder / SWAPPED).exists():
                folder = (folder / SWAPPED).resolve()  # document and signature of one version
            raw = (folder / file.name).read_bytes()
            signature = (folder / f"{file.name}{SIGNATURE_SUFFIX}").read_bytes()
        except OSError as error:
            name = file.name if error.filename is None else str(error.filename).rpartition("/")[2]
            why = f"No advisories are added to those in kvfence: {name} cannot be read ({error.strerror})."
            return Catalogue(None, (), (f"{why} Make the ConfigMap that advisories.configMap names, or unset that.",))
        return added(raw, signature, self.public_keys, datetime.now(UTC))


def _not_judged(signed: Catalogue | None) -> tuple[str, ...]:
    """Name added entries about what the operator does not judge: they would be believed to protect."""
    if signed is None:
        return ()
    others = [one.id for one in signed.advisories if PACKAGES.isdisjoint(part.package for part in one.affected)]
    if not others:
        return ()
    words = "the operator judges engines of SGLang, and these are about something else; kvfence doctor judges them."
    return (f"{', '.join(others[:8])}: {words} Take them out of what the operator is given.",)
