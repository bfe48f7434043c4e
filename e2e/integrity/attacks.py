"""The attacks: what goes wrong in SGLang, how it is played, and what user B gets where nothing stands against it."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from e2e.integrity import prompts
from e2e.integrity.outcome import Outcome, Verdict
from e2e.integrity.prompts import PAGE

if TYPE_CHECKING:
    import random
    from collections.abc import Awaitable, Callable, Mapping

    from e2e.integrity.prompts import Prompt
    from e2e.integrity.scene import Scene

    Asking = Callable[[str, random.Random], Prompt]

TOKENS = 21 * PAGE
"""Of B's prompts, unless they are long."""
LONG_TOKENS = 50 * PAGE
"""Of a prompt that fills most of decode's pool, which has 64 pages."""
LATE_TOKENS = 30 * PAGE
"""Of B's prompt where it gets A's pages: more than are left when two users A have been there, and no more than those
that a defence leaves when it keeps the pages of one of them back. What B is to go on with lies behind A's 21 pages.
"""
ANSWER_TOKENS = 24
"""Of B's answers: a lead and a marker, wherever in them a leak begins."""
LONG_ANSWER_TOKENS = 100
"""Of an answer during which someone else asks."""
FAKE_HOST = "2.2.2.2"
VOCABULARY = 320
DASH = 15
"""Of the copy model: how many tokens it knows, and which of them is `-`."""


@dataclass(frozen=True)
class Attack:
    """One of them."""

    name: str
    """Of its plant too."""
    what: str
    """What goes wrong, for people."""
    undefended: Verdict
    """What B gets when no defence is on."""
    play: Callable[[Scene, Attack], Awaitable[Outcome]]
    arming: Mapping[str, int] = field(default_factory=dict)
    """What the plant needs to know; see its module."""
    prompt: Asking = field(default=lambda own, chance: prompts.asking(own, TOKENS, chance))


async def after_a(scene: Scene, attack: Attack) -> Outcome:
    """Users A have come and gone and their markers are in all of decode's pool; then B asks."""
    other, room = await scene.fill(), scene.room()
    prompt = attack.prompt(scene.draw(), scene.chance)
    with scene.plants.armed(attack.name, room, other=other, **attack.arming):
        answer = await scene.ask(prompt, ANSWER_TOKENS, room)
    return scene.outcome(prompt, answer, room)


async def decode_alone(scene: Scene, attack: Attack) -> Outcome:
    """After users A, B asks decode alone and names the fake transfer."""
    await scene.fill()
    prompt, room = attack.prompt(scene.draw(), scene.chance), scene.room()
    where = {"bootstrap_host": FAKE_HOST, "bootstrap_port": scene.prefill.ports.bootstrap, "bootstrap_room": room}
    with scene.plants.armed(attack.name, room):
        answer = await scene.ask_decode(prompt, ANSWER_TOKENS, rid=rid_for_a_dash(scene.chance), **where)
    return scene.outcome(prompt, answer, room)


def rid_for_a_dash(chance: random.Random) -> str:
    """Return a request id of which SGLang makes a dash: it draws the first token of a fake transfer from the id."""
    while True:
        rid = f"b-{chance.getrandbits(64):x}"
        digest = hashlib.blake2b(rid.encode(), digest_size=8, person=b"fake-pd").digest()
        if int.from_bytes(digest, "little") % VOCABULARY == DASH:
            return rid


async def beside_a(scene: Scene, attack: Attack) -> Outcome:
    """B asks while one user A gets a long answer."""
    rooms = scene.room(), scene.room()
    prompt = attack.prompt(scene.draw(), scene.chance)
    running = asyncio.create_task(scene.ask(scene.user_a(), LONG_ANSWER_TOKENS, rooms[0]))
    try:
        await scene.plants.wait_for("decoding", rooms[0])
        with scene.plants.armed(attack.name, rooms[1], other=rooms[0], **attack.arming):
            answer = await scene.ask(prompt, ANSWER_TOKENS, rooms[1])
    finally:
        await running
    return scene.outcome(prompt, answer, rooms[1])


async def before_a(scene: Scene, attack: Attack) -> Outcome:
    """One user A asks while B gets a long answer, and the allocator gives A a page of B's."""
    room, users = scene.room(), scene.room()
    prompt = attack.prompt(scene.draw(), scene.chance)
    running = asyncio.create_task(scene.ask(prompt, len(prompt.expected), room))
    await scene.plants.wait_for("decoding", room)
    where = {"other_first": prompt.own_at, **attack.arming}
    with scene.plants.armed(attack.name, users, other=room, **where):
        await scene.ask(scene.user_a(), 4, users)
    return scene.outcome(prompt, await running, users)


async def late(scene: Scene, attack: Attack) -> Outcome:
    """A user A's transfer hangs until decode gives it up; its bytes come when B has the pages and gets an answer.

    That B gets them, and has room even if it does not, is a matter of order. SGLang gives out pages from the front and
    puts what is freed aside, sorted in only when the front is too short. A long prompt uses the front up, so that A
    gets the first pages; another user gets those behind them; then B's prompt is too long for what is left.
    """
    await scene.ask(prompts.going_on(scene.draw(), LONG_TOKENS, scene.chance), 1, scene.room())
    users, room = scene.room(), scene.room()
    with scene.plants.armed(attack.name, users):
        await scene.ask(scene.user_a(), 4, users)
    await scene.plants.wait_for("released", users)
    await scene.plant()
    prompt = attack.prompt(scene.draw(), scene.chance)
    running = asyncio.create_task(scene.ask(prompt, len(prompt.expected), room))
    decoding = asyncio.create_task(scene.plants.wait_for("decoding", room))
    await asyncio.wait({running, decoding}, return_when=asyncio.FIRST_COMPLETED)  # decode may have closed itself
    decoding.cancel()
    scene.plants.let_go(users)
    answer = await running
    await scene.plants.wait_for("fired", users)
    return scene.outcome(prompt, answer, users)


async def nothing(scene: Scene, attack: Attack) -> Outcome:
    """No plant is armed: the control of the prompts."""
    await scene.fill()
    prompt = attack.prompt(scene.draw(), scene.chance)
    answer = await scene.ask(prompt, len(prompt.expected), scene.room())
    return scene.outcome(prompt, answer, 0)


def _going_on(own: str, chance: random.Random) -> Prompt:
    return prompts.going_on(own, TOKENS, chance)


def _after_the_release(own: str, chance: random.Random) -> Prompt:
    return prompts.going_on(own, LATE_TOKENS, chance)


def _long(own: str, chance: random.Random) -> Prompt:
    return prompts.going_on(own, LONG_TOKENS, chance)


WITHIN_A_PAGE = TOKENS - 4
"""Of a prompt whose last page may be A's: so that what B asks with is not ahead of what A said before its marker."""
KEPT = 13 * PAGE
FEWER = 3 * PAGE
OWN_PAGE = {"first": 8 * PAGE, "count": PAGE}
TWO_PAGES = {"first": 2 * PAGE, "count": 2 * PAGE}

CONTROLS = (
    Attack("clean", "nothing; B asks after users A", Verdict.RIGHT, nothing),
    Attack("clean-long", "nothing; B's answer is long", Verdict.RIGHT, nothing, prompt=_long),
)

ATTACKS = (
    Attack("stub", "prefill hands over a one-token stand-in, as 0.5.19 did", Verdict.LEAKED, after_a),
    Attack(
        "auto-truncate",
        "prefill cuts the prompt to its own limit",
        Verdict.LEAKED,
        after_a,
        {"kept": KEPT},
        lambda _own, chance: prompts.breaking_off(WITHIN_A_PAGE, KEPT, chance),
    ),
    Attack(
        "tokens-fewer",
        "prefill's template lacks three pages of tokens",
        Verdict.LEAKED,
        after_a,
        {"count": FEWER},
        lambda _own, chance: prompts.breaking_off(WITHIN_A_PAGE, WITHIN_A_PAGE, chance),
    ),
    Attack(
        "tokens-more",
        "prefill's template has three pages of tokens more",
        Verdict.WRONG,
        after_a,
        {"count": FEWER},
        lambda own, chance: prompts.asking(own, TOKENS, chance, own_at=TOKENS - 2 * PAGE),
    ),
    Attack("tokens-differ", "prefill's tokens are others, as many", Verdict.WRONG, after_a, {**OWN_PAGE, "count": 8}),
    Attack("fake-host", "decode takes a transfer for done that never was", Verdict.LEAKED, decode_alone),
    Attack("lost-page", "a page of a transfer is left out, and counted", Verdict.LEAKED, after_a, TWO_PAGES),
    Attack("stale-table", "an entry names a page that a user before had", Verdict.LEAKED, after_a, TWO_PAGES),
    Attack(
        "swap-table",
        "entries of two requests' page tables are exchanged",
        Verdict.LEAKED,
        beside_a,
        {**TWO_PAGES, "other_first": 2 * PAGE},
    ),
    Attack("foreign-prefix", "prefill's cache takes A's prefix for B's", Verdict.LEAKED, after_a, {"count": 4 * PAGE}),
    Attack("other-metadata", "another's first token and counts beside B's KV", Verdict.WRONG, after_a),
    Attack("foreign-bytes", "another's bytes in B's own pages", Verdict.LEAKED, after_a, TWO_PAGES),
    Attack("flip-arrived", "bytes are changed on decode", Verdict.WRONG, after_a, OWN_PAGE),
    Attack("flip-before-send", "bytes are changed on the way", Verdict.WRONG, after_a, OWN_PAGE),
    Attack("flip-before-proof", "bytes are changed on prefill", Verdict.WRONG, after_a, OWN_PAGE),
    Attack(
        "double-page",
        "the allocator gives out a page that B holds",
        Verdict.LEAKED,
        before_a,
        {"first": PAGE, "count": PAGE},
        _going_on,
    ),
    # The last: with scrubbing, the pages into which bytes may still come are missing from then on.
    Attack(
        "late-write", "bytes come after decode's release timed out", Verdict.LEAKED, late, prompt=_after_the_release
    ),
)
