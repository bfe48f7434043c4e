"""How a process of the engine gives up: one line that says why, left for the launcher too, and then it is gone."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from kvfence_engine.state import SharedState

STATUS = 78
"""EX_CONFIG: what is wrong does not go away by trying again."""


def give_up(state: SharedState | None, who: str, why: str) -> NoReturn:
    """End this process now. SGLang's plugin framework catches exceptions and serves on, so none is raised.

    What ends with the HTTP process are its children: SGLang has the kernel kill them with it.

    Args:
        state: where the launcher looks for the reason; none when there is no launcher.
        who: the process, as a person would call it.
        why: one sentence, with what to do if anything can be done; nothing of a user in it.
    """
    line = f"{who}: {' '.join(why.split())}"
    if state is not None:
        state.set_fault(line)  # the launcher says it last of all, below whatever SGLang still says
    else:
        print(f"kvfence-engine: {line}", file=sys.stderr, flush=True)  # noqa: T201 - nobody configured a logger yet
    os._exit(STATUS)
