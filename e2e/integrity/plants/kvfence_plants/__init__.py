"""FOR TESTS ONLY: faults that a scheduler of SGLang 0.5.23 can be made to have, one at a time and on one request.

A plugin of SGLang, beside that of kvfence, put on `PYTHONPATH` by the tests and never shipped. Which fault is armed,
and on which request, is read from a file each time (`arming`), so that one started pair shows them all. Each fault is
made under the functions that kvfence hooks, never in place of them: in what they call, or in the data that they read.
For that it must be loaded first, which the order of `PYTHONPATH` decides.
"""

from __future__ import annotations

import multiprocessing

from . import arming, door, dying, intake, kv_bytes, metadata, page_pool, page_table, prefix, transfer

_SCHEDULER = "run_scheduler_process"


def install() -> None:
    """Put all plants into this process, none of them armed."""
    target = getattr(multiprocessing.current_process(), "_target", None)
    if multiprocessing.parent_process() is None:
        door.plant()
    elif getattr(target, "__name__", "") == _SCHEDULER:
        for part in (intake, prefix, kv_bytes, metadata, transfer, dying, page_table, page_pool):
            part.plant()
        arming.tell("loaded")
