"""How a check asks: one session per target, which counts every request and every token against a budget."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from kvfence.domain.asking import ROOMS, Call, Heard, Reply
from kvfence.verify.overlong import ids

if TYPE_CHECKING:
    import random
    from collections.abc import Coroutine, Mapping

    from kvfence.domain.asking import Pair

COMPLETIONS = "/v1/completions"

Prompt = str | tuple[int, ...]
"""Text, or ids of tokens."""


class Caller(Protocol):
    """Sends one request, as `kvfence.engine.caller.Caller` does; raises only when it is cancelled."""

    async def send(self, call: Call, seconds: float) -> Heard:
        """Return what came of a POST within so many seconds, as a value whatever went wrong."""
        ...

    async def read(self, url: str, seconds: float) -> Reply:
        """Return what came of a GET within so many seconds: counters and the like, not a completion."""
        ...


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of one leg, in tokens; none for what it does not tell."""

    name: str
    """`prefill`, `decode`, `server` or `router`."""
    url: str
    """Without a slash at its end."""
    kv_pool_tokens: int | None = None
    context_length: int | None = None
    max_input_tokens: int | None = None
    """Prompts must be shorter."""
    page_size: int | None = None
    version: str | None = None
    ranks: tuple[Known, ...] = ()
    """What each rank has, where they differ. The figures above then hold for every one of them: they are the least."""


@dataclass(frozen=True, slots=True)
class Target:
    """What is examined: a server or router, which gets requests as users send them, or a pair, which gets both legs."""

    name: str
    model: str
    legs: tuple[Known, ...]
    """One, or prefill and decode in this order."""
    pair: Pair | None = None
    """None for a server or a router."""
    is_router: bool = False
    engines: tuple[Known, ...] = ()
    """Behind a router, as far as they can be reached for their counters."""
    has_more_engines: bool = False
    """Whether the router has others as well, of which nothing is known."""
    reference: Known | None = None
    """A server of the same weights without PD, if one is given."""
    takes_token_ids: bool = True
    """Whether prompts may be ids of tokens; smg refuses them."""
    may_be_attacked: bool = False
    """Whether hostile checks may run: a local address, or the user said `--i-own-this`."""


BURST = 16
"""Questions that may go out at once after a pause: those of one round are to meet in the engine. AbortReuse has the
largest: 12 that are left, and 3 that follow."""

READS_AT_LEAST = 40
"""GETs that a run may send however few its requests: what it takes to find out what two servers and a reference are."""


class BudgetSpentError(Exception):
    """The next question would cost more than is allowed; the check then could not be judged."""


@dataclass
class Budget:
    """What a run may cost, and how fast."""

    requests: int
    tokens: int
    """Of prompts and answers, on each leg."""
    per_second: float
    """Questions a second over a while; 0 for no limit."""
    asked: int = 0
    spent: int = 0
    reads: int = 0
    """GETs: of counters, and of what a server is. They cost an engine nothing and are counted apart."""
    _next: float = field(default=0.0, repr=False)

    @property
    def tokens_left(self) -> int:
        """How many tokens may still be spent."""
        return max(0, self.tokens - self.spent)

    @property
    def reads_left(self) -> int:
        """How many GETs may still be sent: as many as questions in all, and a few at least."""
        return max(0, max(self.requests, READS_AT_LEAST) - self.reads)

    def room_for(self, tokens: int) -> None:
        """See that a question can be paid for, before it is written.

        Raises:
            BudgetSpentError: when it cannot.
        """
        if self.asked + 1 > self.requests or self.spent + tokens > self.tokens:
            raise BudgetSpentError(f"the budget of {self.requests} requests and {self.tokens} tokens is spent")

    async def take(self, tokens: int) -> None:
        """Wait for this question's turn and count it.

        Raises:
            BudgetSpentError: when requests or tokens would go over their limit.
        """
        self.room_for(tokens)
        self.asked += 1
        self.spent += tokens
        await self._turn()

    async def take_read(self) -> None:
        """Wait for the turn of a GET and count it.

        Raises:
            BudgetSpentError: when there would be too many of them.
        """
        if not self.reads_left:
            raise BudgetSpentError(f"the budget of {self.reads} GETs beside {self.requests} requests is spent")
        self.reads += 1
        await self._turn()

    async def ready(self, questions: int) -> None:
        """Wait until so many questions, `BURST` at most, may go out at the same time."""
        if self.per_second > 0:
            due = self._next + min(questions, BURST) / self.per_second
            await asyncio.sleep(max(0.0, due - asyncio.get_running_loop().time()))

    async def _turn(self) -> None:
        if self.per_second > 0:
            now = asyncio.get_running_loop().time()
            self._next = max(self._next, now - BURST / self.per_second) + 1 / self.per_second
            await asyncio.sleep(max(0.0, self._next - now))


@dataclass(frozen=True)
class Session:
    """One run's way to its target."""

    caller: Caller
    target: Target
    budget: Budget
    chance: random.Random
    """Seeded only when the user asks for it; else a `random.SystemRandom()`, see `kvfence.verify.markers`."""
    seconds: float = 60.0
    """Until an answer must be complete."""

    async def ask(
        self,
        prompt: Prompt,
        max_tokens: int,
        /,
        *,
        seconds: float | None = None,
        hang_up_after: float | None = None,
        **more: Any,
    ) -> tuple[Heard, ...]:
        """Ask every leg at once for a greedy completion, with a room of its own for a pair.

        The prompt counts against the budget by its ids, or by its characters: no tokenizer makes more of them.

        Args:
            prompt: text, or ids of tokens.
            max_tokens: of the answer, which has exactly so many.
            seconds: until the answers must be complete.
            hang_up_after: seconds after which we close the connections.
            more: further fields of the body; they win over ours, prompt and max_tokens as well.

        Returns:
            One answer per leg, in the order of `target.legs`.

        Raises:
            BudgetSpentError: when it would cost more than is left.
        """
        await self.budget.take(len(prompt) + max_tokens)
        body = self._body(prompt, max_tokens) | self.rendezvous() | more
        calls = [Call(f"{leg.url}{COMPLETIONS}", body, hang_up_after) for leg in self.target.legs]
        heard = await asyncio.gather(*(self.caller.send(call, seconds or self.seconds) for call in calls))
        return tuple(heard)

    async def ask_apart(
        self, prompt: Prompt, max_tokens: int, /, *, hang_up_after: Mapping[str, float]
    ) -> tuple[tuple[Known, Coroutine[Any, Any, Heard]], ...]:
        """Ask every leg as `ask` does, and hang up on some of them; return each leg with what it will have answered.

        Args:
            prompt: text, or ids of tokens.
            max_tokens: of the answer.
            hang_up_after: for legs by name, seconds after which we close the connection.

        Raises:
            BudgetSpentError: when it would cost more than is left.
        """
        await self.budget.take(len(prompt) + max_tokens)
        body = self._body(prompt, max_tokens) | self.rendezvous()
        legs = self.target.legs
        calls = [Call(f"{leg.url}{COMPLETIONS}", body, hang_up_after.get(leg.name)) for leg in legs]
        return tuple((leg, self.caller.send(call, self.seconds)) for leg, call in zip(legs, calls, strict=True))

    async def read(self, url: str, seconds: float) -> Reply:
        """Return what came of a GET.

        Raises:
            BudgetSpentError: when there would be too many of them.
        """
        await self.budget.take_read()
        return await self.caller.read(url, seconds)

    async def ask_only(
        self,
        leg: Known,
        prompt: Prompt,
        max_tokens: int,
        /,
        *,
        seconds: float | None = None,
        hang_up_after: float | None = None,
        **more: Any,
    ) -> Heard:
        """Ask one server alone, without a rendezvous: a reference, an engine, or one leg that is to be fooled.

        Raises:
            BudgetSpentError: when it would cost more than is left.
        """
        await self.budget.take(len(prompt) + max_tokens)
        call = Call(f"{leg.url}{COMPLETIONS}", self._body(prompt, max_tokens) | more, hang_up_after)
        return await self.caller.send(call, seconds or self.seconds)

    def ids(self, length: int) -> tuple[int, ...]:
        """Return a prompt of so many tokens that nobody asked before.

        Raises:
            BudgetSpentError: when it could not be asked.
        """
        self.budget.room_for(length)
        return ids(length, self.chance)

    def rendezvous(self) -> dict[str, Any]:
        """Return the fields by which the legs of a pair find each other; none for a server or a router."""
        pair = self.target.pair
        if pair is None:
            return {}
        return {
            "bootstrap_host": pair.bootstrap_host,
            "bootstrap_port": pair.bootstrap_port,
            "bootstrap_room": self.chance.randrange(ROOMS),
        }

    def _body(self, prompt: Prompt, max_tokens: int) -> dict[str, Any]:
        return {
            "model": self.target.model,
            "prompt": prompt if isinstance(prompt, str) else list(prompt),
            "max_tokens": max_tokens,
            "temperature": 0,
            "ignore_eos": True,
        }
