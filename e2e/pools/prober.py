"""A user who does not wait: asks the Service and each engine five times a second from the pool's first second on.

The door of each engine is looked at as often. A door that was seen shut after an answer was shut when that answer came.
"""

from __future__ import annotations

import http.client
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from e2e.cluster.waiting import wait_for
from e2e.errors import StageError
from e2e.pools.asking import Place, question
from e2e.pools.pool import BOOTSTRAP_PORT
from kvfence.engine.pair import ROOMS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from e2e.pools.pool import Pool

EVERY_SECONDS = 0.2
FIND_SECONDS = 0.5
IN_TURN = 6
"""So many ask one after the other: a request to the Service waits a second before it knows that nobody is there."""
REFUSED = (None, 503)
"""What an engine that is shut may answer: nothing, since it does not run, or this."""
ANSWER_SECONDS = 5.0
"""An engine that lets a request in too early may wait for its partner in vain; the next one is not to wait for that."""
SERVICE = "service"
PATH = "/v1/completions"
PROMPT_TOKENS = 20


@dataclass(frozen=True)
class Answer:
    """What came of one request of a user's."""

    asked: str
    """The role of the engine, or `SERVICE`."""
    status: int | None
    """None: nobody answered in time."""
    at: float
    """When it had come; UNIX time."""


@dataclass(frozen=True)
class Look:
    """How a door stood."""

    role: str
    at: float
    """When it was asked; UNIX time."""
    door: dict[str, Any]


@dataclass
class Seen:
    """All that was asked and looked at, in the order of its end."""

    answers: list[Answer] = field(default_factory=list, repr=False)
    looks: list[Look] = field(default_factory=list, repr=False)

    def answered(self, asked: str, status: int) -> list[Answer]:
        """The answers with a status."""
        return [one for one in self.answers if (one.asked, one.status) == (asked, status)]

    def wait_for_answers(self, asked: set[str], count: int, seconds: float = 120.0) -> None:
        """Wait until each was answered with 200 so often.

        Raises:
            StageError: it was not, in time.
        """

        def enough() -> bool:
            return all(len(self.answered(one, 200)) >= count for one in asked)

        wait_for(f"{count} answers each from {', '.join(sorted(asked))}", enough, seconds)

    def too_early(self) -> list[Answer]:
        """Users' requests that were let in while a door that they had to pass was shut, whatever came of them."""
        shut: dict[str, float] = {}
        for look in self.looks:
            if look.door["door"] != "open":
                shut[look.role] = max(look.at, shut.get(look.role, 0.0))
        shut[SERVICE] = max(shut.values(), default=0.0)
        early = [one for one in self.answers if one.at < shut.get(one.asked, 0.0)]
        return [one for one in early if one.status == 200 or (one.asked != SERVICE and one.status not in REFUSED)]


@contextmanager
def probing(pool: Pool) -> Iterator[Seen]:
    """Ask while the block runs; the pool was applied just now."""
    prober = _Prober(pool)
    asks = [(ask, IN_TURN * EVERY_SECONDS) for ask in (prober.ask_service, prober.ask_legs) for _ in range(IN_TURN)]
    loops = [(prober.find, FIND_SECONDS), (prober.look, EVERY_SECONDS), *asks]
    threads = [threading.Thread(target=prober.repeat, args=loop, daemon=True) for loop in loops]
    for thread in threads:
        thread.start()
        time.sleep(EVERY_SECONDS / 2)  # not all at the same moment
    try:
        yield prober.seen
    finally:
        prober.over.set()
        for thread in threads:
            thread.join()


class _Prober:
    def __init__(self, pool: Pool) -> None:
        self.seen = Seen()
        self.over = threading.Event()
        self._pool = pool
        self._service: Place | None = None
        self._pods: dict[str, dict[str, Any]] = {}

    def repeat(self, what: Callable[[], None], seconds: float) -> None:
        while not self.over.wait(seconds):
            what()

    def find(self) -> None:
        """Learn where to ask, as soon as there is something."""
        with suppress(StageError):  # the Service is not there yet, or kubectl was late: the next time
            if len(self._pods) < 2:
                there = [pod for pod in self._pool.engines() if pod["status"].get("podIP")]
                self._pods = {pod["metadata"]["labels"]["kvfence.io/role"]: pod for pod in there}
            if self._service is None:
                self._service = self._pool.service()

    def look(self) -> None:
        for role, pod in self._pods.items():
            at = time.time()
            with suppress(OSError, http.client.HTTPException):
                self.seen.looks.append(Look(role, at, self._pool.door(pod)))

    def ask_service(self) -> None:
        if self._service is not None:
            self._ask(SERVICE, self._service, question(PROMPT_TOKENS))

    def ask_legs(self) -> None:
        """Ask both engines at once, as a router would."""
        pods = dict(self._pods)
        if not pods:
            return
        host = pods.get("prefill", {}).get("status", {}).get("podIP", "10.255.255.1")
        room = random.randrange(ROOMS)  # noqa: S311 - not a secret
        body = question(PROMPT_TOKENS, bootstrap_host=host, bootstrap_port=BOOTSTRAP_PORT, bootstrap_room=room)
        with ThreadPoolExecutor(len(pods)) as threads:
            for role, pod in pods.items():
                threads.submit(self._ask, role, self._pool.leg(pod), body)

    def _ask(self, name: str, place: Place, body: dict[str, Any]) -> None:
        status = None
        with suppress(OSError, http.client.HTTPException):
            status = place.ask(PATH, body, seconds=ANSWER_SECONDS).status
        self.seen.answers.append(Answer(name, status, time.time()))
