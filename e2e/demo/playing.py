"""Plays the demo: one part after the other, each told as it happens."""

from __future__ import annotations

import random
import time
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from e2e.demo import arithmetic, questions
from e2e.demo.client import Client, Knocking
from e2e.demo.story import Story
from e2e.demo.watch import POOLS, Watch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from e2e.demo.client import Said
    from e2e.demo.ground import Ground
    from e2e.demo.scene import Scene
    from e2e.demo.telling import Teller
    from e2e.demo.view import View

ADMITTED_SECONDS = 300.0
STALLED_SECONDS = 10.0
"""How long a pool may say that it waits for a person: what passes by itself has passed by then."""
FIRST_ANSWER_SECONDS = 15.0
LOOK_SECONDS = 0.25


class NotSeenError(Exception):
    """Something of what the demo is to show was not seen; the message says what."""


@dataclass
class Play:
    """One performance."""

    teller: Teller
    ground: Ground
    scene: Scene
    view: View | None = None
    """The pool as it was seen last."""

    def coming_up(self, client: Client, *, again: bool) -> None:
        """Follow the pool until it is admitted, while the Service is asked all the time.

        Raises:
            NotSeenError: it is not admitted, or not in time, or somebody was answered too early.
            StageError: the cluster does not answer.
        """
        model = self.scene.model
        with ExitStack() as ends:
            watch = ends.enter_context(Watch(self.ground.kubectl, self.scene.namespace, self.scene.pool))
            knocking = Knocking(client, questions.completion(model, "The quick river"))
            ends.callback(knocking.stop)
            with self.teller.waiting():
                self._follow(watch, knocking)
                self._hear_the_first_answer(knocking)
        if not again:
            self._judge(knocking.said)

    def _follow(self, watch: Watch, knocking: Knocking) -> None:
        story = Story()
        stalled_since: float | None = None
        while not story.over:
            changed = watch.changed(LOOK_SECONDS)
            if changed is not None:
                self.view = changed
                for line in story.news(changed):
                    self.teller.line(line.text, line.details)
                stalled = changed.holds("Stalled")
                stalled_since = (stalled_since or time.monotonic()) if stalled else None
            if stalled_since is not None and time.monotonic() - stalled_since > STALLED_SECONDS:
                raise NotSeenError("The pool is not admitted, and says that this needs a person:")
            if self.teller.elapsed > ADMITTED_SECONDS:
                raise NotSeenError(f"The pool was not admitted within {ADMITTED_SECONDS:.0f} s:")
            self.teller.still(_waiting_for(self.view, knocking.said))

    def _hear_the_first_answer(self, knocking: Knocking) -> None:
        deadline = time.monotonic() + FIRST_ANSWER_SECONDS
        while not knocking.is_over and time.monotonic() < deadline:
            self.teller.still("waiting for the first answer through the Service")
            time.sleep(LOOK_SECONDS)
        if knocking.error:
            raise knocking.error
        if not any(said.answered for said in knocking.said):
            last = knocking.said[-1] if knocking.said else None
            words = f"{last.status or last.why}" if last else "nothing"
            raise NotSeenError(f"The pool says that it is admitted, and its Service answers nobody; the last: {words}.")

    def _judge(self, said: Sequence[Said]) -> None:
        """No answer may be older than the proof."""
        assert self.view is not None
        proven = datetime.fromisoformat(self.view.conditions["IsolationVerified"].since).timestamp()
        early = [one for one in said if one.answered and one.ended < proven]
        if early:
            raise NotSeenError(f"The Service answered {proven - early[0].ended:.1f} s before the pool was proven.")
        refused = [one for one in said if not one.answered]
        self.teller.line(
            f"Meanwhile the Service was asked {len(said)} times. Until now nobody was answered ({counted(refused)}); "
            "this request was the first.",
            style="bold",
        )

    def asking(self, client: Client) -> None:
        """Ask what can be asked now.

        Raises:
            NotSeenError: an answer is not what it has to be.
            StageError: the cluster does not answer.
        """
        assert self.view is not None
        cap = int(self.view.context.get("advertisedTokens", 0))
        by_hand = arithmetic.worked_out(self.view).tokens
        if cap != by_hand:
            raise NotSeenError(
                f"The pool offers {cap:,} tokens, and a new one would offer {by_hand:,}: it was changed since it came "
                f"up. `kubectl --namespace {self.scene.namespace} delete {POOLS} {self.scene.pool}`, then run this "
                "again."
            )
        self.teller.chapter(f"Asking it, at http://{self.scene.pool}/ from a pod of the cluster")
        asked = questions.ask_all(client.ask, self.scene.model, cap, random.SystemRandom())
        self.teller.console.print(table(asked))
        if wrong := [one for one in asked if not one.good]:
            raise NotSeenError("; ".join(f"{one.what}: {one.wanted} was to come" for one in wrong) + ".")
        slowest = max(one.said.seconds for one in asked if one.said.status != 200)
        self.teller.say(
            f"What does not fit is refused, here after {slowest:.3f} s at most. Without a cap, 1,500 tokens to such a "
            "pair got a 500 after 25 s: decode waited for KV that never came, and the router tried five times "
            "(measured with sglang-router 0.3.2 and a transfer time-out of 5 s). SGLang 0.5.19 answered 200 "
            "instead, with other users' words: `make incident` shows it."
        )


def counted(said: Sequence[Said]) -> str:
    """Return what came instead of answers, with how often."""
    whys = [str(one.status or one.why) for one in said]
    return ", ".join(f"{whys.count(why)} x {why}" for why in dict.fromkeys(whys)) or "it was not asked before"


def table(asked: Sequence[questions.Asked]) -> Table:
    """Return questions and answers."""
    made = Table()
    made.add_column("asked", no_wrap=True)
    made.add_column("answer", justify="right")
    made.add_column("after", justify="right", no_wrap=True)
    made.add_column("what it says")
    for one in asked:
        style = "green" if one.good else "bold red"
        came = one.came if one.good else f"{one.came}  <- wrong: {one.wanted} was to come"
        made.add_row(
            one.what, Text(str(one.said.status or one.said.why), style=style), f"{one.said.seconds:.3f} s", Text(came)
        )
    return made


def _waiting_for(view: View | None, said: Sequence[Said]) -> str:
    if view is None:
        what = "the operator looks at the pool"
    elif not view.holds("RolesReady"):
        what = "engines load"
    elif not view.holds("IsolationVerified"):
        what = "engines are measured and proven"
    else:
        what = "doors and router open"
    times = f"asked {len(said)} time{'' if len(said) == 1 else 's'}"
    return f"{what}; the Service was {times}: {'answered' if any(s.answered for s in said) else 'nobody answered'}"
