"""The first process of an engine's container: starts SGLang behind a closed door and stays its only parent.

usage: python -m kvfence_engine.launcher --pool UID --pod UID --keys FOLDER [--listen HOST] [--port PORT]
       [--drain-seconds S] [--termination-log PATH] [--page-tagging MODE] [--page-scrubbing MODE] [--coverage MODE]
       [--contained-limit N] [--contained-seconds S] -- ARGUMENTS OF sglang.launch_server
       (or `python FOLDER/kvfence_engine`, which finds itself)

It ends when SGLang ends, with SGLang's status; with 78 and one line on standard error when a process of the engine
refused to run. On SIGTERM the door shuts at once, SGLang finishes what is in flight, and what is left after the time to
drain is killed. It also waits for the orphans that SGLang leaves, as the first process of a container has to.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import signal
import subprocess
import sys
import time
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from kvfence_engine import faults, settings, telling
from kvfence_engine.control import Control
from kvfence_engine.doorkeeper import Doorkeeper, Identity
from kvfence_engine.fuse import CONTAINED_LIMIT, CONTAINED_SECONDS, Fuse
from kvfence_engine.integrity.modes import Mode, Modes, encode
from kvfence_engine.state import Door, SharedState
from kvfence_engine.termination import TerminationLog, not_run
from kvfence_engine.watch import Watch

if TYPE_CHECKING:
    import threading
    from collections.abc import Mapping

    from kvfence_engine.fuse import Trip

PORT = 8901
DRAIN_SECONDS = 600.0
"""Longer than SGLang waits for a transfer (300 s) and then to release its pages (30 s)."""

_ORPHAN_SECONDS = 5.0
"""How long what SGLang left may take to end, once SGLang itself has: its resource tracker still tidies up."""

SIGNALS = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGCHLD})
"""What the launcher waits for."""

_PR_SET_CHILD_SUBREAPER = 36

PLUGINS_SETTING = "SGLANG_PLUGINS"
"""Of SGLang: when it is set, plugins that it does not name are left out without a word."""


def main(arguments: list[str]) -> int:
    """Run one engine to its end; return the status to exit with, 128 + N when signal N ended SGLang."""
    options = _options(arguments)
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # in the threads to come too; the engine unblocks them for itself
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # the first process of a container needs no such wish
    state = SharedState.create()
    log = TerminationLog(options.termination_log)
    keeper = Doorkeeper(state, Identity(options.pool, options.pod, options.keys), log.admitted)
    try:
        Control((options.listen, options.port), keeper)
    except OSError as error:
        print(f"kvfence-engine: cannot listen on {options.listen}:{options.port}: {error}", file=sys.stderr)  # noqa: T201
        return faults.STATUS
    engine = subprocess.Popen(
        [sys.executable, "-m", "kvfence_engine.engine", *options.arguments],
        env=environment(os.environ, state.path, options.pool, _modes(options)),
    )
    watch = Watch(state, options.fuse, keeper, lambda trip: _tell(state, keeper, trip))
    watch.start()
    status = wait(engine, keeper, options.drain_seconds)
    keeper.shut(Door.CLOSED)
    watch.end()
    _wait_for_orphans()
    return _report(state, status, log)


def environment(given: Mapping[str, str], state: str, pool: str, modes: Modes) -> dict[str, str]:
    """Return the environment of the engine: what its processes need, and the plugin among those that SGLang may load.

    Args:
        given: the launcher's own.
        state: where the door's state is.
        pool: UID of the InferencePool.
        modes: which defences of the KV are on.
    """
    named = [name.strip() for name in given.get(PLUGINS_SETTING, "").split(",") if name.strip()]
    changed = {settings.STATE: state, settings.POOL: pool, settings.INTEGRITY: encode(modes)}
    if named and settings.PLUGIN not in named:
        changed[PLUGINS_SETTING] = ",".join([*named, settings.PLUGIN])
    return {**given, **changed}


def wait(engine: subprocess.Popen[bytes], keeper: Doorkeeper, drain_seconds: float) -> int:
    """Wait until the engine ends, let it leave when a signal says so, and return its status.

    Signals are waited for, not handled: a handler runs after the call that the signal interrupts, and a signal that
    comes just before such a call interrupts nothing.

    Args:
        engine: a child of the main thread; `SIGNALS` are blocked in all threads since before it was started.
        keeper: shuts the door.
        drain_seconds: from the first signal until the engine is killed.
    """
    killed_at: float | None = None
    while (status := _reap(engine.pid)) is None:
        left = 3600.0 if killed_at is None else max(0.0, killed_at - time.monotonic())
        received = signal.sigtimedwait(SIGNALS, left)
        if received is not None and received.si_signo != signal.SIGCHLD and killed_at is None:
            keeper.shut(Door.DRAINING)
            os.kill(engine.pid, signal.SIGTERM)
            killed_at = time.monotonic() + drain_seconds
        elif killed_at is not None and time.monotonic() >= killed_at:
            os.kill(engine.pid, signal.SIGKILL)
            killed_at += 3600.0  # once is enough
    engine.returncode = status  # else its destructor would wait for it again
    return status


def _reap(engine: int) -> int | None:
    """Wait for every child that has ended; return the engine's status when it is among them."""
    status = None
    while True:
        try:
            pid, ended = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return status
        if not pid:
            return status
        if pid == engine:
            status = os.waitstatus_to_exitcode(ended)


def _wait_for_orphans() -> None:
    deadline = time.monotonic() + _ORPHAN_SECONDS
    while time.monotonic() < deadline:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            time.sleep(0.05)


def _report(state: SharedState, ended: int, log: TerminationLog) -> int:
    why = state.fault()
    status = faults.STATUS if why else ended if ended >= 0 else 128 - ended
    log.ended(status, why)
    if why:
        print(not_run(why), file=sys.stderr, flush=True)  # noqa: T201
    return status


def _tell(state: SharedState, keeper: Doorkeeper, trip: Trip) -> list[threading.Thread]:
    return telling.tell(telling.concerned(state.grant().partners, trip.peer), keeper.taint(trip.kind))


def _modes(options: argparse.Namespace) -> Modes:
    return Modes(**{field.name: getattr(options, field.name) for field in fields(Modes)})


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="kvfence_engine.launcher", allow_abbrev=False)
    parser.add_argument("--pool", required=True, help="UID of the InferencePool")
    parser.add_argument("--pod", required=True, help="UID of the pod")
    parser.add_argument("--keys", required=True, type=Path, help="folder with the operator's public keys")
    parser.add_argument("--listen", default="0.0.0.0", help="host of the launcher's own port")  # noqa: S104 - in a pod
    parser.add_argument("--port", default=PORT, type=int, help="the launcher's own port")
    parser.add_argument("--drain-seconds", default=DRAIN_SECONDS, type=float, help="from SIGTERM to SIGKILL")
    parser.add_argument("--termination-log", type=Path, help="file that the kubelet reads when the container has ended")
    for field in fields(Modes):
        flag = f"--{field.name.replace('_', '-')}"
        parser.add_argument(flag, type=Mode, default=field.default, choices=list(Mode), help="a defence of the KV")
    what = "contained findings within --contained-seconds that close the engine"
    parser.add_argument("--contained-limit", type=int, default=CONTAINED_LIMIT, help=what)
    parser.add_argument("--contained-seconds", type=float, default=CONTAINED_SECONDS, help="how long they count")
    parser.add_argument("arguments", nargs="*", help="of sglang.launch_server, after --")
    options = parser.parse_args(arguments)
    try:
        options.fuse = Fuse(options.contained_limit, options.contained_seconds)
    except ValueError as error:
        parser.error(str(error))
    return options


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
