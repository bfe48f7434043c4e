"""Says on standard error how far a run is: a line that moves on a terminal, plain lines elsewhere."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from kvfence.cli.canary.report import VERDICTS
from kvfence.cli.canary.table import WORDS

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from kvfence.domain.verdicts import Check
    from kvfence.verify.canary.run import CheckReport
    from kvfence.verify.canary.session import Budget


class Telling:
    """Tells when checks begin and end; a context manager around the run."""

    def __init__(self, console: Console, count: int, budget: Budget, *, moves: bool) -> None:
        self._console = console
        self._count = count
        self._done = 0
        self._moving = _moving(count, budget, console) if moves else None

    def __enter__(self) -> Telling:
        """Begin to move, on a terminal."""
        self._around().__enter__()
        return self

    def __exit__(self, *raised: Any) -> None:
        """Take the moving line away."""
        self._around().__exit__(*raised)

    def began(self, check: Check) -> None:
        """Say that a check began."""
        if self._moving is not None:
            self._moving.update(self._moving.task_ids[0], description=check.value, completed=self._done)
        else:
            self._console.print(f"[{self._done + 1}/{self._count}] {check.value} ...")

    def ended(self, report: CheckReport) -> None:
        """Say what came of it."""
        self._done += 1
        word, style = WORDS[VERDICTS[report.result.outcome]]
        cost = f"{report.requests:,} requests in {report.seconds:.1f} s"
        self._console.print(f"[{self._done}/{self._count}] {report.check.value}: {word}, {cost}", style=style)

    def _around(self) -> AbstractContextManager[Any]:
        return nullcontext() if self._moving is None else self._moving


def _moving(count: int, budget: Budget, console: Console) -> Progress:
    from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn, TimeElapsedColumn  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    class Requests(ProgressColumn):
        """How much of the budget is used."""

        def render(self, task: Task) -> Text:  # noqa: ARG002 - the signature is rich's
            return Text(f"{budget.asked:,} of at most {budget.requests:,} requests")

    console.is_interactive = True
    moving = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        Requests(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )
    moving.add_task("", total=count)
    return moving
