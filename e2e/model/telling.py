"""Counterexamples as numbered steps in plain English."""

from __future__ import annotations

from typing import TYPE_CHECKING

from e2e.model.events import request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from e2e.model.events import Event

USER_BEFORE = 255
_FAULT = "**Fault:**"
_WITH_THE_STEP_BEFORE = {"take", "publish", "restore", "not_restore", "read"}


def steps(happened: Iterable[Event]) -> list[str]:
    """Return one text for each step, of one or more sentences."""
    told: list[str] = []
    teller = Teller()
    for event in happened:
        sentence = teller.tell(event)
        if event.kind in _WITH_THE_STEP_BEFORE:
            told[-1] += f" {sentence}"
        else:
            told.append(sentence)
    return told


def content(number: int) -> str:
    """Return whose KV it is, as the end of "holds ..."."""
    if number == 0:
        return "zeros"
    return f"KV of {'X, a user before' if number == USER_BEFORE else request(number)}"


class Teller:
    """Knows who is in each row of the page table, and who was given a page last."""

    def __init__(self) -> None:
        self._lives = [0, 0]
        self._holders: dict[int, str] = {}
        self._went_wrong = False

    def tell(self, event: Event) -> str:
        """Return a sentence for what happens next."""
        sentence: Callable[..., str] = getattr(self, f"_{event.kind}")
        told = sentence(*event.numbers)
        self._went_wrong = self._went_wrong or told.startswith(_FAULT)
        return told

    def _name(self, row: int) -> str:
        return f"{'AB'[row]}{self._lives[row]}"

    def _come(self, row: int, pages: int) -> str:
        self._lives[row] += 1
        return f"{self._name(row)} comes, with a prompt of {_pages(pages)}."

    def _take(self, row: int, page: int, is_free: int) -> str:
        name, before = self._name(row), self._holders.get(page, "another request")
        self._holders[page] = name
        if is_free:
            return f"It gets page {page}."
        return f"{_FAULT} the allocator gives it page {page}, which {before} holds."

    def _publish(self, _row: int) -> str:
        return "Prefill is told where."

    def _send(self, row: int, pages: int, whose: int) -> str:
        name = self._name(row)
        if whose != 2 * (self._lives[row] - 1) + row + 1:
            return f"{_FAULT} for {name}, prefill computes the prompt of {request(whose)}, and begins to send that."
        if pages == 0:
            return f"{_FAULT} prefill sends nothing for {name}: it cut the prompt."
        return f"Prefill begins to send {_pages(pages)} for {name}."

    def _land(self, _row: int, _entry: int, page: int, whose: int) -> str:
        return f"{content(whose)} lands in page {page}."

    def _lose(self, row: int, _entry: int, page: int) -> str:
        return f"{_FAULT} what prefill sends to page {page} for {self._name(row)} never lands."

    def _complete(self, row: int) -> str:
        return f"The transfer for {self._name(row)} is complete, it is said."

    def _overwrite(self, row: int, entry: int, page: int) -> str:
        return f"{_FAULT} entry {entry + 1} of {self._name(row)}'s row comes to name page {page}."

    def _verify(self, row: int, is_fine: int) -> str:
        name = self._name(row)
        if is_fine:
            return f"{name} is verified."
        why = ", **although nothing went wrong**" if not self._went_wrong else ""
        return f"{name} is verified, and refused{why}."

    def _step(self, row: int) -> str:
        return f"{self._name(row)} takes a decode step."

    def _read(self, row: int, page: int, whose: int) -> str:
        is_own = whose == 2 * (self._lives[row] - 1) + row + 1
        return f"It reads page {page}, which holds {content(whose) if is_own else f'**{content(whose)}**'}."

    def _finish(self, row: int) -> str:
        return f"{self._name(row)} is finished, and gives its pages back; one more forward pass of it is under way."

    def _put_aside(self, row: int) -> str:
        return (
            f"{self._name(row)} is put aside (retracted): its KV goes to the host's memory, its pages are given back; "
            "one more forward pass of it is under way."
        )

    def _return(self, row: int) -> str:
        return f"{self._name(row)} comes back."

    def _restore(self, _row: int) -> str:
        return "Its KV is copied back."

    def _not_restore(self, _row: int) -> str:
        return f"{_FAULT} its KV is not copied back."

    def _abort(self, row: int) -> str:
        return f"{self._name(row)} is aborted."

    def _drained(self, row: int) -> str:
        return f"Prefill says that nothing more comes for {self._name(row)}; its pages are given back."

    def _time_out(self, row: int) -> str:
        return f"{_FAULT} nobody says in time that prefill writes no more for {self._name(row)}; it is released."

    def _land_late(self, _entry: int, page: int, whose: int) -> str:
        return f"{content(whose)} lands in page {page}, late."

    def _fly(self, page: int, whose: int) -> str:
        return f"The forward pass that was under way writes {content(whose)} into page {page}."


def _pages(count: int) -> str:
    return "1 page" if count == 1 else f"{count} pages"
