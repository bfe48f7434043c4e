"""What SGLang calls in each of its processes: entry point `kvfence` of the group `sglang.srt.plugins`."""

from __future__ import annotations

import multiprocessing
import os
import pkgutil
import sys
from importlib import import_module

from kvfence_engine import key_material, settings, versions
from kvfence_engine.faults import give_up
from kvfence_engine.state import SharedState

_installed: list[object] = []

_HOOKED = {"main": "kvfence_engine.serving:Serving", "run_scheduler_process": "kvfence_engine.ranks:Ranked"}
"""What has the hooks of a process; imported in that process alone, and only beside an SGLang that is known."""
_UNHOOKED = ("run_detokenizer_process", "run_data_parallel_controller_process")


def install() -> None:
    """Put this process's hooks in place, or end it: SGLang would go on without them."""
    who = _process()
    try:
        state = SharedState.open(os.environ[settings.STATE])
    except (KeyError, OSError, ValueError) as error:
        give_up(None, who, f"no launcher: start SGLang as `python -m kvfence_engine.launcher` ({type(error).__name__})")
    try:
        key_material.keep_out_of_the_log(_keys())
        version = str(import_module("sglang").__version__)
        refused = versions.refuse_version(version) or versions.refuse_settings(os.environ)
        if refused is None and who in _HOOKED:
            _installed.append(pkgutil.resolve_name(_HOOKED[who])(state))
        elif refused is None and who not in _UNHOOKED:
            refused = f"SGLang has a process that is not known: {who}"
    except Exception as error:  # noqa: BLE001 - whatever it is, the engine must not serve
        refused = f"{type(error).__name__}: {error}"
    if refused is not None:
        give_up(state, who, refused)


def is_installed() -> bool:
    """Whether the hooks of this process are in place."""
    return bool(_installed)


def _keys() -> set[str]:
    """Return the keys that this process knows."""
    handed = getattr(multiprocessing.current_process(), "_args", ())
    return key_material.on_the_command_line(sys.argv) | key_material.in_objects(handed)


def _process() -> str:
    """Return which of SGLang's processes this is: the name of the function that it was started with."""
    if multiprocessing.parent_process() is None:
        return "main"
    target = getattr(multiprocessing.current_process(), "_target", None)
    return str(getattr(target, "__name__", "unknown"))
