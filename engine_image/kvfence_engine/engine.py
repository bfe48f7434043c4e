"""The engine's first process: SGLang's `launch_server`, begun only when the door is in it.

usage: python -m kvfence_engine.engine ARGUMENTS OF sglang.launch_server
       (by the launcher; it does not start without one)
"""

from __future__ import annotations

import ctypes
import os
import secrets
import signal
import sys
from importlib import import_module
from itertools import pairwise
from pathlib import Path

from kvfence_engine import plugin, settings, versions
from kvfence_engine.faults import give_up
from kvfence_engine.integrity import refusals
from kvfence_engine.integrity.modes import decode
from kvfence_engine.state import Server, SharedState, stored_at

WHO = "main"
NO_WARMUP = "--skip-server-warmup"
"""SGLang's warm-up sends itself a request, which a closed door refuses, and then takes itself for broken."""

MODEL_PATH = "--model-path"

_PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    """Run SGLang until it ends."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # the launcher has some blocked, and that is handed down
    state = _state()
    _die_with_the_launcher(state)
    _look_for_sglang(state)
    _look_for_the_model(state, arguments)
    import_module("sglang.srt.plugins").load_plugins()  # among them ours
    if not plugin.is_installed():
        give_up(
            state, WHO, f"SGLang did not load the plugin {settings.PLUGIN}: is it on PYTHONPATH with its dist-info?"
        )
    server = import_module("sglang.launch_server")
    if NO_WARMUP not in arguments:
        arguments = [*arguments, NO_WARMUP]
    server_args = import_module("sglang.srt.server_args").prepare_server_args(arguments)
    server_args.resolve_once()
    flags = server_args.resolved_dict()
    refused = versions.refuse_flags(flags)
    if refused is None and decode(os.environ[settings.INTEGRITY]).any_on:
        refused = refusals.refuse(flags, os.environ)
    if refused is not None:
        give_up(state, WHO, refused)
    version = str(import_module("sglang").__version__)
    state.set_server(Server(os.getpid(), secrets.token_hex(16), version, versions.ranks(flags)))
    try:
        server.run_server(server_args)
    finally:
        import_module("sglang.srt.utils").kill_process_tree(os.getpid(), include_parent=False)


def _look_for_sglang(state: SharedState) -> None:
    """Refuse an image without SGLang, or with a release that the door was not proven with."""
    try:
        version = getattr(import_module("sglang"), "__version__", None)
    except ModuleNotFoundError as error:
        if error.name != "sglang":
            give_up(state, WHO, f"SGLang cannot be imported in this image: {error}")
        version = None
    if version is None:  # a folder that happens to be called sglang is none either
        give_up(
            state,
            WHO,
            f"there is no SGLang in this image: {sys.executable} does not find it. Use an image that has sglang as a "
            "Python package for python3",
        )
    refused = versions.refuse_version(str(version))
    if refused is not None:
        give_up(state, WHO, refused)


def _look_for_the_model(state: SharedState, arguments: list[str]) -> None:
    """Refuse a path at which there is nothing: SGLang loads for a while, then takes it for a name on a hub."""
    paths = [path for flag, path in pairwise(arguments) if flag == MODEL_PATH]  # of two, SGLang takes the last
    path = paths[-1] if paths else ""
    if path.startswith("/") and not Path(path).exists():
        give_up(state, WHO, f"there is no model at {path} in this container: correct model.uri, or mount what it names")


def _state() -> SharedState:
    try:
        return SharedState.open(os.environ[settings.STATE])
    except (KeyError, OSError) as error:
        give_up(None, WHO, f"no launcher: start `python -m kvfence_engine.launcher` ({type(error).__name__})")


def _die_with_the_launcher(state: SharedState) -> None:
    """Have the kernel kill this process when the launcher dies, and SGLang's others with it, as SGLang asks for them.

    Without its launcher an engine could be neither closed nor asked how its door stands. Where the launcher is the
    first process of a container, the container ends with it anyway.
    """
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0):
        give_up(state, WHO, f"the kernel does not promise to end this process: errno {ctypes.get_errno()}")
    if os.getppid() != stored_at(state.path):  # it died before the kernel promised
        give_up(state, WHO, "the launcher is gone")


if __name__ == "__main__":
    main(sys.argv[1:])
