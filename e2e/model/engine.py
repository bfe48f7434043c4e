"""A decode engine without a model: SGLang's part is written down here in a few lines, the defences are the real ones.

Where a defence is no class of its own that runs without SGLang, the method that stands in for it says so.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from e2e.model.defences import Defence
from e2e.model.memory import PAGE_TOKENS, PAGES, Memory
from e2e.model.telling import USER_BEFORE
from kvfence_engine.hooked.holders import draw
from kvfence_engine.integrity import coverage, handover
from kvfence_engine.integrity.content import Contents, namespace
from kvfence_engine.integrity.handover import INT32_SLOTS, UINT64_SLOTS, HandOver
from kvfence_engine.integrity.tags import TagTable, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from e2e.model.events import Event
    from e2e.model.memory import Numbers

_DUMMY = 0
_SPACE = namespace(None, None, None)


class NotGivenError(Exception):
    """The allocator does not have the page that it gives out in the counterexample."""


@dataclass
class Request:
    """One that has a row of the page table."""

    number: int
    generation: int = 0
    size: int = 0
    """Pages of its prompt."""
    pages: list[int] = field(default_factory=list)
    """The row."""
    addresses: list[int] = field(default_factory=list)
    """Where prefill writes."""
    whose: int = 0
    """Whose KV prefill sends."""
    coming: set[int] = field(default_factory=set)
    """Entries whose KV is under way."""
    metadata: tuple[list[int], list[int]] | None = None
    """The slots that travel beside the pages."""
    handed: HandOver | None = None
    came: bool = False


class Engine:
    """Lets happen what the model says.

    Args:
        on: the defences that it has.
    """

    def __init__(self, on: Collection[Defence]) -> None:
        self._on = frozenset(on)
        self._memory = Memory()
        for page in range(1, PAGES):
            self._memory.write(page, USER_BEFORE, 0)
        self._tags = TagTable(PAGES, lambda count: np.zeros(count, np.int64), np.arange)
        self._contents = Contents(b"of this replay")
        self._free = set(range(1, PAGES))
        self._rows: list[Request | None] = [None, None]
        self._lives = [0, 0]
        self._late: dict[int, tuple[int, int]] = {}
        self._flying: list[tuple[int, int, int]] = []
        self.objections: list[str] = []
        """What was found at the last verification."""
        self.reader = self.was_read = 0
        """Who read last, and whose KV that was."""

    def let(self, event: Event) -> None:
        """Let one thing happen.

        Raises:
            NotGivenError: the page is not to be had here.
        """
        happen: Callable[..., None] = getattr(self, f"_{event.kind}")
        happen(*event.numbers)

    def refuse(self, row: int) -> None:
        """End a request at its verification."""
        self._release(row)

    # Pages are given

    def _come(self, row: int, pages: int) -> None:
        number = 2 * self._lives[row] + row + 1
        self._lives[row] += 1
        self._rows[row] = Request(number, self._generation(row), pages)
        self._settle()

    def _return(self, row: int) -> None:
        request = self._at(row)
        request.generation, request.pages = self._generation(row), []
        self._settle()

    def _generation(self, row: int) -> int:
        return draw() if Defence.FRESH in self._on else row + 1

    def _settle(self) -> None:
        """ORDER: stands in for one stream of the device that waits for another one."""
        if Defence.ORDER in self._on:
            while self._flying:
                self._memory.write(*self._flying.pop(0))

    def _take(self, row: int, page: int, is_free: int) -> None:
        request = self._at(row)
        if is_free and page not in self._free:
            raise NotGivenError(f"page {page} is not free")
        self._free.discard(page)
        pages, is_step = _array([page]), len(request.pages) == request.size
        self._tags.take(pages, request.generation, written=is_step)
        if Defence.KEEP in self._on and not self._tags.held(pages, request.generation)[0]:
            page = _DUMMY  # KEEP: stands in for the row that is changed on the device
        request.pages.append(page)
        if is_step:
            self._memory.write(page, request.number, 1)
        elif Defence.SCRUB in self._on:
            self._memory.pages.zero(_array([page]))

    # Prefill and the network

    def _publish(self, row: int) -> None:
        request = self._at(row)
        request.addresses = list(request.pages)

    def _send(self, row: int, pages: int, whose: int) -> None:
        request = self._at(row)
        request.whose, request.coming = whose, set(range(pages))
        there, tokens = Memory(), pages * PAGE_TOKENS
        for place in range(pages):
            there.write(place + 1, whose, place)
        proof = there.proof(list(range(1, pages + 1)))
        digest = self._contents.digest(_SPACE, [whose] * tokens)
        request.metadata = handover.write(HandOver(request.number, 0, tokens, tokens, digest, proof, draw()))

    def _land(self, row: int, entry: int, _page: int, _whose: int) -> None:
        request = self._at(row)
        request.coming.remove(entry)
        self._memory.write(request.addresses[entry], request.whose, entry)

    def _lose(self, row: int, entry: int, _page: int) -> None:
        self._at(row).coming.remove(entry)

    def _complete(self, row: int) -> None:
        request = self._at(row)
        request.came = True
        assert request.metadata is not None
        int32_values = [0] * INT32_SLOTS.start + request.metadata[0]
        uint64_values = [request.number, *request.metadata[1]]
        request.handed = handover.read(int32_values[INT32_SLOTS], uint64_values[UINT64_SLOTS], request.number)
        covered = min(coverage.covered(request.handed) // PAGE_TOKENS, len(request.pages))
        if covered:
            self._tags.arrived(_array(request.pages[:covered]), request.generation)

    def _land_late(self, entry: int, _page: int, _whose: int) -> None:
        page, whose = self._late.pop(entry)
        self._memory.write(page, whose, entry)

    # Before the first step, and decode

    def _overwrite(self, row: int, entry: int, page: int) -> None:
        self._at(row).pages[entry] = page

    def _verify(self, row: int, _is_fine: int) -> None:
        request = self._at(row)
        pages = _array(request.pages)
        verdicts = self._tags.verdicts(pages, request.generation)
        found = {
            "a page of another": Defence.OWNER in self._on and (verdicts == Verdict.FOREIGN).any(),
            "a page that nobody wrote": Defence.WRITER in self._on and (verdicts == Verdict.UNWRITTEN).any(),
            "other bytes": Defence.SCRUB in self._on and request.came and self._has_other_bytes(request),
        }
        self.objections = [what for what, is_so in found.items() if is_so]
        if Defence.COVERAGE in self._on and request.came:
            tokens = request.size * PAGE_TOKENS
            digest = self._contents.digest(_SPACE, [request.number] * tokens)
            mismatch = coverage.judge(request.handed, tokens=tokens, start=0, digest=digest)
            self.objections += [mismatch.value] if mismatch else []
        request.came = False

    def _has_other_bytes(self, request: Request) -> bool:
        if request.handed and request.handed.proof:
            return self._memory.proof(request.pages) != request.handed.proof
        return bool(self._memory.pages.empty(_array(request.pages)).any())

    def _step(self, row: int) -> None:
        self.reader = self._at(row).number

    def _read(self, _row: int, page: int, _whose: int) -> None:
        self.was_read = self._memory.whose(page)

    # Pages are given back

    def _finish(self, row: int) -> None:
        self._fly_on(row)
        self._release(row)

    def _put_aside(self, row: int) -> None:
        request = self._at(row)
        self._fly_on(row)
        self._release(row)
        request.size = len(request.pages)
        self._rows[row] = request

    def _restore(self, row: int) -> None:
        request = self._at(row)
        for place, page in enumerate(request.pages):
            self._memory.write(page, request.number, place)
        self._tags.arrived(_array(request.pages), request.generation)

    def _not_restore(self, row: int) -> None:
        """Nothing is written."""

    def _fly_on(self, row: int) -> None:
        request = self._at(row)
        self._flying.append((request.pages[-1], request.number, len(request.pages) - 1))

    def _fly(self, page: int, whose: int) -> None:
        for write in [one for one in self._flying if one[:2] == (page, whose)]:  # none if ORDER had it write before
            self._memory.write(*write)
            self._flying.remove(write)

    def _abort(self, row: int) -> None:
        if not self._at(row).coming:
            self._release(row)

    def _drained(self, row: int) -> None:
        self._release(row)

    def _time_out(self, row: int) -> None:
        request = self._at(row)
        self._late = {entry: (request.addresses[entry], request.whose) for entry in request.coming}
        if Defence.RETIRE in self._on:
            self._rows[row] = None  # RETIRE: SGLang's free is withheld from all pages of the row, which keep their tags
        else:
            self._release(row)

    def _release(self, row: int) -> None:
        """WITHHOLD: stands in for the hook on SGLang's release, with the tag table's own answers."""
        request = self._at(row)
        pages = _array([page for page in request.pages if page != _DUMMY])
        if Defence.WITHHOLD in self._on:
            pages = self._tags.all_held(request.generation).nonzero()[0]
        pages = pages[[int(page) not in self._free for page in pages]]
        self._free.update(int(page) for page in pages)
        if Defence.CLEAR in self._on:
            self._tags.release(pages)
        self._rows[row] = None

    def _at(self, row: int) -> Request:
        request = self._rows[row]
        assert request is not None
        return request


def _array(pages: list[int]) -> Numbers:
    return np.array(pages, np.int64)
