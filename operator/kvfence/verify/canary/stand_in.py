"""An engine, a pair or a router that is made of a few hundred lines, works as it must, and can be broken in one place.

It is there for the controls: a check that does not fail on what is broken on purpose says nothing about a real server.
It answers in SGLang's shapes and repeats what its KV pages hold as the copy model of the stage does, so that what
leaks comes out as text. What it is not: a model of speed. Time passes in its answers only, it never really waits.
"""

from __future__ import annotations

import asyncio
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from kvfence.domain.asking import Fault, Heard, Pair, Reply
from kvfence.domain.capacity import INPUT_MARGIN
from kvfence.verify.canary.copying import BEGIN, EMPTY, Characters, Tokenizer, go_on, of_ids
from kvfence.verify.canary.engines import PAGE, Engine, Handed, Work
from kvfence.verify.canary.session import COMPLETIONS, Known, Target

if TYPE_CHECKING:
    from kvfence.domain.asking import Call

MODEL = "stand-in"
CONTEXT = 4096
"""Tokens that each engine advertises."""

SMALL_POOL = 1024
"""Of prefill, and of a server alone: a quarter of what is advertised, as in the incident."""

BOOTSTRAP_HOST = "10.0.0.1"
FAKE_HOST = "2.2.2.2"
"""By which SGLang knows a transfer that is none (`FAKE_BOOTSTRAP_HOST`)."""

HEALTH_CHECK = "HEALTH_CHECK"
"""With which the names of SGLang's own health checks begin."""

_TURNS = 8
"""Of the event loop that a request takes, so that those asked at the same time meet."""

_PATIENCE = 64
"""Turns after which a leg gives up waiting for its partner."""


class Shape(StrEnum):
    """What a stand-in stands for."""

    SERVER = "server"
    """One engine that computes prompt and answer itself."""
    PAIR = "pair"
    """Prefill and decode, both asked by us."""
    ROUTER = "router"
    """A router before two prefill and two decode engines; like smg it takes no ids of tokens."""


class Flaw(StrEnum):
    """One thing that is broken on purpose; without one, a stand-in works as it must."""

    STALE_PAGES = "StalePages"
    """Over-long prompt: prefill hands one token over, and decode answers 200 out of what its pages held before. The
    fault of SGLang 0.5.19."""
    CUT_PROMPT = "CutPrompt"
    """An engine cuts a prompt to what it takes, so that decode has pages that prefill never fills: SGLang's
    --allow-auto-truncate with pools apart."""
    CROSSED_ANSWERS = "CrossedAnswers"
    """Of requests at the same time, each gets another's answer."""
    WRONG_COUNT = "WrongCount"
    """Counts only the whole pages of a prompt."""
    HANGS_ON_OVERLONG = "HangsOnOverlong"
    """Prefill refuses, decode waits: SGLang 0.5.21 to 0.5.23 with pools apart."""
    STREAM_ERROR_AS_SUCCESS = "StreamErrorAsSuccess"
    """A refused stream ends with status 200, `finish_reason` stop and `[DONE]`."""
    FAKE_TRANSFER_ACCEPTED = "FakeTransferAccepted"
    """Decode answers to `bootstrap_host` 2.2.2.2 out of what its pages held before; a router passes the field on."""
    HEALTH_RID_ACCEPTED = "HealthRidAccepted"
    """A `rid` that begins with HEALTH_CHECK is taken from a client."""
    ABORT_LEAKS = "AbortLeaks"
    """What an aborted request still had in transfer is written into pages that are another's by then."""
    SALT_IGNORED = "SaltIgnored"
    """The prefix cache does not look at `cache_salt` or `extra_key`."""
    PAIR_DIFFERS = "PairDiffers"
    """Decode does not get the last page of a prompt."""
    LOCKSTEP_PAIRING = "LockstepPairing"
    """The router goes round both roles in step, so that prefill 1 never meets decode 2."""


class StandIn:
    """A `Caller` in process.

    Args:
        shape: what it stands for.
        flaws: what is broken.
        tokenizer: of its model; by default that of the copy model.
    """

    def __init__(self, shape: Shape, flaws: frozenset[Flaw] = frozenset(), tokenizer: Tokenizer | None = None) -> None:
        self.shape = shape
        self.flaws = flaws
        self._tokenizer = tokenizer or Characters()
        self._reference = Engine("reference", "http://reference.example", CONTEXT, CONTEXT)
        self._first, self._last = _engines(shape)
        self._turn = 0
        self._handed: dict[object, Handed] = {}

    @property
    def target(self) -> Target:
        """What it is, as a session needs it. May be attacked; has a reference unless it is a server."""
        engines = tuple(one.known for one in (*self._first, *self._last))
        pair = Pair(self._first[0].url, self._last[0].url, BOOTSTRAP_HOST) if self.shape is Shape.PAIR else None
        is_router = self.shape is Shape.ROUTER
        return Target(
            f"a stand-in {self.shape}",
            MODEL,
            (Known("router", ROUTER_URL, context_length=CONTEXT),) if is_router else engines,
            pair,
            is_router=is_router,
            engines=engines if is_router else (),
            reference=None if self.shape is Shape.SERVER else self._reference.known,
            takes_token_ids=not is_router,
            may_be_attacked=True,
        )

    async def send(self, call: Call, seconds: float) -> Heard:
        """Answer as SGLang would; a sane one refuses 2.2.2.2 and HEALTH_CHECK names with 400."""
        url = call.url.removesuffix(COMPLETIONS)
        if self.shape is Shape.ROUTER and url == ROUTER_URL:
            return await self._route(call, seconds)
        engine = self._engine(url)
        return Heard(None, fault=Fault.UNREACHABLE) if engine is None else await self._answer(engine, call, seconds)

    async def read(self, url: str, seconds: float) -> Reply:
        """Answer `/metrics` of an engine with SGLang's counters of requests and tokens; everything else is a 404."""
        base, _, path = url.rpartition("/")
        engine = self._engine(base)
        if engine is None:
            return Reply(None, b"", min(seconds, 0.01), Fault.UNREACHABLE)
        if path != "metrics":
            return Reply(404, b'{"detail":"Not Found"}', 0.01)
        counters = {"sglang:num_requests_total": engine.asked, "sglang:prompt_tokens_total": engine.prompt_tokens}
        page = "".join(f'{name}{{model_name="{MODEL}"}} {count}.0\n' for name, count in counters.items())
        return Reply(200, page.encode(), 0.01)

    def _engine(self, url: str) -> Engine | None:
        every = (*self._first, *self._last, self._reference)
        return next((one for one in every if one.url == url), None)

    async def _route(self, call: Call, seconds: float) -> Heard:
        if not isinstance(call.body.get("prompt"), str):
            return refused("the router takes a text", call, at_the_door=True)
        prefill, decode = self._pairing()
        self._turn += 1
        fake = call.body.get("bootstrap_host") if Flaw.FAKE_TRANSFER_ACCEPTED in self.flaws else None
        rendezvous = {"bootstrap_host": fake or BOOTSTRAP_HOST, "bootstrap_port": 8998, "bootstrap_room": self._turn}
        both = [
            self._answer(one, type(call)(one.url, {**call.body, **rendezvous}, call.hang_up_after), seconds)
            for one in (prefill, decode)
        ]
        first, last = await asyncio.gather(*both)
        said = first if last.status == 200 and first.status not in (200, None) else last
        return Heard(**{**vars(said), "worker": decode.url})

    def _pairing(self) -> tuple[Engine, Engine]:
        turn, count = self._turn, len(self._first)
        behind = turn if Flaw.LOCKSTEP_PAIRING in self.flaws else turn // count
        return self._first[turn % count], self._last[behind % len(self._last)]

    async def _answer(self, engine: Engine, call: Call, seconds: float) -> Heard:
        engine.asked += 1
        body = call.body
        wrong = self._malformed(body) or self._forbidden(body, engine)
        if wrong:
            return self._refuse(wrong, call, at_the_door=True)
        tokens = self._tokens(body["prompt"])
        late = await self._overlong(engine, tokens, call, seconds)
        if late is not None:
            return late
        engine.prompt_tokens += len(tokens)
        if Flaw.CUT_PROMPT in self.flaws:
            tokens = tokens[: engine.limit]
        work = Work(tokens, int(body.get("max_tokens", 16)), self._namespace(body))
        if engine is self._reference or engine.role == "server":
            return await self._complete(engine, work, tokens, call)
        if engine.role == "prefill":
            return await self._prefill(engine, work, call, seconds)
        return await self._decode(engine, work, call, seconds)

    def _malformed(self, body: Any) -> str:
        match body.get("prompt"):
            case str() as text if text:
                pass
            case [int(), *_] as ids if all(isinstance(one, int) and 0 <= one < 32_000 for one in ids):
                pass
            case _:
                return "the prompt is neither text nor ids of tokens"
        wanted, warmth = body.get("max_tokens", 16), body.get("temperature", 0)
        if not isinstance(wanted, int) or wanted < 0:
            return "max_tokens is not a number from 0"
        return "" if isinstance(warmth, int | float) else "temperature is not a number"

    def _forbidden(self, body: Any, engine: Engine) -> str:
        named = body.get("rid")
        names = named if isinstance(named, list) else [named]
        if any(str(one).startswith(HEALTH_CHECK) for one in names) and Flaw.HEALTH_RID_ACCEPTED not in self.flaws:
            return "rid is not a client's to choose"
        if body.get("bootstrap_host") == FAKE_HOST and Flaw.FAKE_TRANSFER_ACCEPTED not in self.flaws:
            return "bootstrap_host is not a prefill server's"
        if engine.role in ("prefill", "decode") and body.get("bootstrap_room") is None:
            return "Disaggregated request received without bootstrap room id"
        return ""

    async def _overlong(self, engine: Engine, tokens: str, call: Call, seconds: float) -> Heard | None:
        """Return what comes of a prompt that does not fit; none when it does, or the flaw lets it go on."""
        count = len(tokens)
        if count >= CONTEXT:
            words = f"The input ({count} tokens) is longer than the model's context length ({CONTEXT} tokens)."
            return self._refuse(words, call, at_the_door=True)
        everywhere = (*self._first, *self._last)
        limit = min(one.limit for one in everywhere) if engine is not self._reference else engine.limit
        goes_on = self.flaws & {Flaw.STALE_PAGES, Flaw.CUT_PROMPT}
        if count < limit or (goes_on and engine is not self._reference):
            return None
        if Flaw.HANGS_ON_OVERLONG in self.flaws and engine in self._last:
            return Heard(None, seconds=seconds, fault=Fault.TIMED_OUT)
        words = f"Input length ({count} tokens) exceeds the maximum allowed length ({limit} tokens)."
        return self._refuse(words, call, at_the_door=False)

    async def _prefill(self, engine: Engine, work: Work, call: Call, seconds: float) -> Heard:
        room = call.body["bootstrap_room"]
        stub = self._is_stub(engine, work)
        cached = 0 if stub else engine.cached(work)
        whole = EMPTY if stub else work.tokens
        kept = whole[: (len(whole) - 1) // PAGE * PAGE] if Flaw.PAIR_DIFFERS in self.flaws else whole
        handed = Handed(kept, " " if stub else go_on(work.tokens, 1), cached)
        self._handed[room] = handed
        for _ in range(_PATIENCE):
            if handed.taken:
                break
            await asyncio.sleep(0)
        self._handed.pop(room, None)
        if call.hang_up_after is not None:
            return Heard(None, hung_up=True, seconds=call.hang_up_after)
        if not handed.taken:
            return Heard(None, seconds=seconds, fault=Fault.TIMED_OUT)
        return self._said(handed.first, work, call, cached, len(work.tokens))

    async def _decode(self, engine: Engine, work: Work, call: Call, seconds: float) -> Heard:
        if call.body.get("bootstrap_host") == FAKE_HOST:
            return await self._complete(engine, work, "", call)
        for _ in range(_PATIENCE):
            handed = self._handed.get(call.body["bootstrap_room"])
            if handed is not None:
                handed.taken = True
                return await self._complete(engine, work, handed.tokens, call, handed)
            await asyncio.sleep(0)
        return Heard(None, seconds=seconds, fault=Fault.TIMED_OUT)

    async def _complete(
        self, engine: Engine, work: Work, written: str, call: Call, handed: Handed | None = None
    ) -> Heard:
        """Answer out of the pages that this request gets, of which so much is written."""
        broken = self.flaws if engine is not self._reference else frozenset()
        cached = engine.cached(work) if handed is None else handed.cached
        if self._is_stub(engine, work):
            written = EMPTY
        pages = engine.take(len(work.tokens))
        if pages is None:
            return Heard(503, error="the KV pool is full", fault=Fault.STATUS, seconds=0.01)
        engine.pages.write(pages, written)
        running = engine.running(pages, len(work.tokens))
        try:
            for _ in range(_TURNS):
                await asyncio.sleep(0)
            if call.hang_up_after is not None:
                engine.in_transfer = work.tokens if Flaw.ABORT_LEAKS in broken else ""
                return Heard(None, hung_up=True, seconds=call.hang_up_after)
            engine.pages.write(pages, engine.in_transfer)
            engine.in_transfer = ""
            own = engine.pages.read(pages, len(work.tokens))
            held = running.another() if Flaw.CROSSED_ANSWERS in broken else own
        finally:
            running.end()
            engine.pages.give_back(pages)
        first = self._first_token(written, handed)
        said = first + go_on(held + first, work.max_tokens - len(first))
        counted = len(work.tokens) // PAGE * PAGE if Flaw.WRONG_COUNT in broken else len(work.tokens)
        return self._said(said, work, call, cached, counted)

    def _first_token(self, written: str, handed: Handed | None) -> str:
        """Return what prefill generated, where decode's own pages would not tell it; empty where they do."""
        if written == EMPTY:
            return " "
        return handed.first if handed is not None and Flaw.CUT_PROMPT in self.flaws else ""

    def _is_stub(self, engine: Engine, work: Work) -> bool:
        """Whether the prompt was replaced by one token, since the engine cannot hold it."""
        return Flaw.STALE_PAGES in self.flaws and engine is not self._reference and len(work.tokens) >= engine.limit

    def _said(self, said: str, work: Work, call: Call, cached: int, counted: int) -> Heard:
        streamed = call.body.get("stream") is True
        options = call.body.get("stream_options") or {}
        counts = not streamed or bool(options.get("include_usage"))
        return Heard(
            200,
            self._tokenizer.decode(said),
            counted if counts else None,
            work.max_tokens if counts else None,
            cached if counts else None,
            finish_reason="length",
            done=streamed,
            seconds=0.01,
        )

    def _refuse(self, words: str, call: Call, *, at_the_door: bool) -> Heard:
        if Flaw.STREAM_ERROR_AS_SUCCESS in self.flaws and call.body.get("stream") is True:
            return Heard(200, finish_reason="stop", done=True, seconds=0.01)
        return refused(words, call, at_the_door=at_the_door)

    def _tokens(self, prompt: Any) -> str:
        return BEGIN + self._tokenizer.encode(prompt) if isinstance(prompt, str) else of_ids(prompt)

    def _namespace(self, body: Any) -> str:
        if Flaw.SALT_IGNORED in self.flaws:
            return ""
        return repr((body.get("cache_salt"), body.get("extra_key")))


ROUTER_URL = "http://router.example"


def refused(words: str, call: Call, *, at_the_door: bool) -> Heard:
    """Return a refusal as SGLang has it: what only its scheduler refuses has status 200 in a stream, and an error."""
    if call.body.get("stream") is True and not at_the_door:
        return Heard(200, error=words, finish_reason="abort", done=True, seconds=0.01)
    return Heard(400, error=words, seconds=0.01, fault=Fault.STATUS)


def _engines(shape: Shape) -> tuple[tuple[Engine, ...], tuple[Engine, ...]]:
    """Return the prefill engines, and those that answer."""
    if shape is Shape.SERVER:
        return (), (Engine("server", "http://server.example", SMALL_POOL, CONTEXT),)
    count = 2 if shape is Shape.ROUTER else 1
    names = [""] if count == 1 else [f"-{number}" for number in range(1, count + 1)]
    return (
        tuple(Engine("prefill", f"http://prefill{name}.example", SMALL_POOL, CONTEXT) for name in names),
        tuple(Engine("decode", f"http://decode{name}.example", CONTEXT, CONTEXT) for name in names),
    )


assert INPUT_MARGIN < SMALL_POOL  # an engine's limit is that much below its pool
