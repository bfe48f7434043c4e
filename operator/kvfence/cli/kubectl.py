"""The user's own kubectl: with the rights and the cluster that they have anyway, and nothing else to set up."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, TypeVar, cast

from kvfence.cli.threads import in_thread
from kvfence.engine.text import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kvfence.domain.diagnosis.seen import Seen

    Reader = Callable[[BinaryIO], tuple[Seen, ...]]

T = TypeVar("T")

SECONDS = 30.0
"""Until kubectl must have answered; an exec plug-in for credentials may take a while."""
LIMIT = 64_000_000
"""Bytes of an answer that are read; a pod with a long status has some 50,000."""
ERRORS = 100_000
"""Bytes of what it complains of that are kept."""
PIECE = 1 << 16
WORDS = 300
"""Characters of kubectl's own words that are passed on."""


@dataclass(frozen=True, slots=True)
class Said:
    """What kubectl printed."""

    out: bytes
    error: str = ""
    """Why there is none: one sentence for people; empty when there is one."""


@dataclass(frozen=True, slots=True)
class Kubectl:
    """Runs kubectl for one namespace of one context."""

    namespace: str | None = None
    """None for the one that the context has."""
    context: str | None = None
    program: str = "kubectl"

    def arguments(self, *arguments: str) -> list[str]:
        """Return the command line. Each value stands in one word with its flag: none can become a flag of its own."""
        chosen = [] if self.context is None else [f"--context={self.context}"]
        chosen += [] if self.namespace is None else [f"--namespace={self.namespace}"]
        return [self.program, *chosen, *arguments]

    async def say(self, *arguments: str, seconds: float = SECONDS) -> Said:
        """Run it and return what it prints; nothing is raised but when this is cancelled."""
        try:
            async with asyncio.timeout(seconds):
                found = await self._run(lambda out: _bounded(out, LIMIT), arguments, seconds)
        except TimeoutError:
            return Said(b"", f"kubectl did not answer within {seconds:.0f} s.")
        except _TooMuchError:
            return Said(b"", f"kubectl printed more than {LIMIT:,} bytes.")
        return Said(b"", found) if isinstance(found, str) else Said(found)

    async def stream(self, read: Reader, *arguments: str, idle: float = SECONDS) -> tuple[Seen, ...] | str:
        """Run it, and hand what it prints to a reader in a thread as it comes, however much it is.

        Args:
            read: gets what it prints; what it leaves is thrown away.
            arguments: of kubectl.
            idle: seconds for which it may print nothing while somebody waits for it.

        Returns:
            What the reader returned, or why kubectl failed.
        """
        try:
            return await self._run(lambda out: _whole(read, out), arguments, idle)
        except TimeoutError:
            return f"kubectl sent nothing for {idle:.0f} s."

    async def _run(self, read: Callable[[Watched], T], arguments: Sequence[str], idle: float) -> T | str:
        """Run it, and return what a reader in a thread makes of what it prints, or why it failed.

        Raises:
            TimeoutError: it printed nothing for so long.
        """
        try:
            process = subprocess.Popen(  # noqa: ASYNC220 - a pipe that blocks, as readers of files want it
                self.arguments(*arguments),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,  # a wrapper's own children hold the pipes too, and go with it
            )
        except OSError as error:
            return _not_started(error)
        assert process.stdout is not None
        assert process.stderr is not None
        out, errors = Watched(cast("io.RawIOBase", process.stdout)), cast("BinaryIO", process.stderr)
        try:
            reading = asyncio.gather(
                in_thread(lambda: read(out)), in_thread(lambda: end_of(errors, ERRORS)), in_thread(process.wait)
            )
            reading.add_done_callback(_retrieved)  # when it is given up nobody asks how it ended
            found, words, status = await _unless_idle(reading, out, idle)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # then the threads that read from it end, too
            await in_thread(process.wait)
        return found if status == 0 else last_words(words, status)


class Watched(io.RawIOBase):
    """A pipe of which it is known for how long somebody has been waiting for it."""

    def __init__(self, pipe: io.RawIOBase) -> None:
        super().__init__()
        self._pipe = pipe
        self._since: float | None = None

    @property
    def waited(self) -> float:
        """Seconds since a read began that has not come back, or since the end was read; 0 between reads."""
        since = self._since
        return 0.0 if since is None else time.monotonic() - since

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: memoryview) -> int | None:  # type: ignore[override] # io hands it a memoryview
        """Fill the buffer with what there is; 0 at the end."""
        self._since = time.monotonic()
        read: int | None = self._pipe.readinto(buffer)
        if read:
            self._since = None
        return read

    def close(self) -> None:
        """Close the pipe too."""
        self._pipe.close()
        super().close()


async def _unless_idle(reading: asyncio.Future[T], out: Watched, seconds: float) -> T:
    """Wait for what reads from a pipe.

    Raises:
        TimeoutError: nothing came for so long, or the program did not end for so long after its last word.
    """
    while True:
        done, _ = await asyncio.wait({reading}, timeout=min(1.0, seconds / 4))
        if done:
            return reading.result()
        if out.waited > seconds:
            reading.cancel()
            raise TimeoutError


def _retrieved(done: asyncio.Future[T]) -> None:
    if not done.cancelled():
        done.exception()


def last_words(words: bytes, status: int) -> str:
    """Return as one sentence why kubectl failed: the last line of what it said."""
    lines = [line for line in words.decode(errors="replace").splitlines() if line.strip()]
    said = printable(lines[-1].strip(), WORDS) if lines else f"it ended with status {status} and said nothing"
    return f"kubectl: {said.rstrip('.?!')}."


def _not_started(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "kubectl is not there: install it, or save the pod's log elsewhere and give the file instead of the pod."
    return f"kubectl cannot be started: {error.strerror or type(error).__name__}."


def _whole(read: Reader, out: Watched) -> tuple[Seen, ...]:
    """Let the reader read, and then whatever it left: a program whose pipe nobody empties does not end."""
    with out:
        found = read(cast("BinaryIO", out))
        while out.read(PIECE):
            pass
    return found


def end_of(errors: BinaryIO, limit: int) -> bytes:
    """Read to the end, and keep what came last up to a limit: the last line says why."""
    kept = b""
    with errors:
        while piece := errors.read(PIECE):
            kept = (kept + piece)[-limit:]
    return kept


def _bounded(out: Watched, limit: int) -> bytes:
    """Read to the end.

    Raises:
        _TooMuchError: it is more than the limit.
    """
    read = bytearray()
    with out:
        while piece := out.read(PIECE):
            read += piece
            if len(read) > limit:
                raise _TooMuchError
    return bytes(read)


class _TooMuchError(Exception):
    """It printed more than is read."""
