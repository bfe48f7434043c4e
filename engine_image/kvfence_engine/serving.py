"""The door's part in the HTTP process: hooks, and a task that follows what the launcher grants."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from kvfence_engine import requests, sources
from kvfence_engine.cap import CAP_KEY, EPOCH_KEY, TokenizerCap
from kvfence_engine.cutting import Cutter
from kvfence_engine.faults import give_up
from kvfence_engine.gate import PASSED, Gate
from kvfence_engine.hooks import Hook, HookError, Hooks, Kind
from kvfence_engine.integrity import agreement
from kvfence_engine.integrity.classes import Finding
from kvfence_engine.middleware import DoorMiddleware

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from kvfence_engine.state import Server, SharedState

WHO = "http"
KEPT_NONCES = 8
"""Of those who ask for evidence at the same time."""
LOOK_SECONDS = 0.05
"""Between looks at the grant. A look costs a microsecond; a cap is applied that much later at most."""

_FIELDS = ("rid", "text", "input_ids", "sampling_params", *requests.INTERNAL_FIELDS)
_PAIR_FIELDS = ("bootstrap_host", "bootstrap_port", "bootstrap_room")


class Serving:
    """What this process knows. Made before SGLang starts; complete once its server is set up."""

    def __init__(self, state: SharedState) -> None:
        self._state = state
        self._gate: Gate | None = None
        self._cap: TokenizerCap | None = None
        self._manager: Any = None
        self._cutter = Cutter()
        self._following: list[asyncio.Task[None]] = []
        self._hooks = Hooks(
            (
                Hook("sglang.srt.entrypoints.http_server._setup_and_run_http_server", Kind.BEFORE, self._set_up),
                Hook(f"{_MANAGER}.generate_request", Kind.AROUND, self._generate),
                Hook(f"{_MANAGER}._validate_one_request", Kind.BEFORE, self._validate),
                Hook("sglang.srt.utils.common.build_server_info", Kind.AFTER, self._tell),
            ),
            sources.OF_0_5_23,
        )

    def _server(self) -> Server:
        server = self._state.server()
        assert server is not None, "SGLang sets up its server before the engine has said what it is"
        return server

    def _set_up(
        self, server_args: Any, tokenizer_manager: Any, _templates: Any, _ports: Any, infos: Any, *_: Any, **__: Any
    ) -> None:
        """Stand in the application before it serves; all ranks have reported to SGLang by now."""
        server, ranks = self._server(), self._state.ranks()
        if len(ranks) != server.ranks:
            give_up(
                self._state, WHO, f"{len(ranks)} of {server.ranks} ranks have the door: the plugin did not load there"
            )
        if (why := agreement.disagreement(ranks)) is not None:
            give_up(self._state, WHO, why)
        try:
            self._hooks.check(tokenizer_manager)
        except HookError as error:
            give_up(self._state, WHO, str(error))
        http = import_module("sglang.srt.entrypoints.http_server")
        mode = server_args.resolved_dict()["disaggregation_mode"]
        self._gate = Gate(self._state, disaggregated=mode in ("prefill", "decode"))
        self._manager = tokenizer_manager
        self._cap = TokenizerCap(tokenizer_manager, infos[0])  # the one that it shows
        http.app.add_middleware(
            DoorMiddleware, gate=self._gate, cutter=self._cutter, on_start=self._start, on_nonce=self._asked
        )

    def _start(self) -> None:
        """The application that has the door in it begins to serve."""
        for task in (self._follow(), self._guard()):
            self._following.append(asyncio.get_running_loop().create_task(task))
            self._following[-1].add_done_callback(self._stopped)
        self._state.set_server(replace(self._server(), serving=True))

    def _asked(self, nonce: str) -> None:
        server = self._server()
        self._state.set_server(replace(server, asked=(*server.asked, nonce)[-KEPT_NONCES:]))

    def _stopped(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            why = task.exception()
            give_up(self._state, WHO, f"the door lost sight of the launcher: {type(why).__name__}: {why}")

    async def _follow(self) -> None:
        """Apply each new cap, here and then in all ranks; for a lowering that is the order that lets nothing slip."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            grant, server = self._state.grant(), self._server()
            if grant.epoch <= server.epoch:
                continue
            assert self._cap is not None
            self._cap.apply(grant.cap)
            message = import_module("sglang.srt.managers.io_struct").SetInternalStateReq(
                server_args={EPOCH_KEY: grant.epoch, CAP_KEY: grant.cap}
            )
            replies = await self._manager.set_internal_state(message)
            if not all(replies):
                raise RuntimeError(f"a rank refused the cap of epoch {grant.epoch}")
            self._state.set_server(replace(self._server(), epoch=grant.epoch))

    async def _guard(self) -> None:
        """End what runs once the engine is tainted by something that came too late for a request of its own."""
        while True:
            blown = self._state.grant().blown
            if blown is not None and blown.finding == Finding.ESCAPED.value:
                break
            await asyncio.sleep(LOOK_SECONDS)
        self._cutter.cut()
        # SGLang aborts what is cancelled; this is for what goes on all the same. Nobody will be sent any of it.
        self._manager.abort_request(abort_all=True)
        await asyncio.Event().wait()

    def _generate(self, original: Callable[..., Any], manager: Any, obj: Any, request: Any = None) -> Any:
        """Judge what SGLang made of a request, whatever way it came."""
        fields = {name: getattr(obj, name, None) for name in (*_FIELDS, *_PAIR_FIELDS)}
        refused = self._gate.confirm(PASSED.get(), fields) if self._gate else None
        if self._gate and refused is None:
            return original(manager, obj, request)
        return _refusing(refused.status if refused else 503, refused.sentence if refused else "this engine is starting")

    def _validate(self, _manager: Any, _obj: Any, input_ids: list[int] | None) -> None:
        """Refuse a prompt over the cap where its tokens are counted and nothing was sent to a scheduler.

        Raises:
            ValueError: which SGLang answers with 400.
        """
        assert self._cap is not None
        tokens, longest = self._cap.tokens(input_ids), self._cap.longest_prompt()
        if tokens > longest:
            raise ValueError(requests.over_the_cap(tokens, longest).sentence)

    def _tell(self, info: dict[str, Any], *_: Any, **__: Any) -> None:
        if self._cap is not None:
            self._cap.tell(info)


_MANAGER = "sglang.srt.managers.tokenizer_manager.TokenizerManager"


async def _refusing(status: int, sentence: str) -> AsyncIterator[Any]:
    """Raise at the first item, where SGLang expects a request to be refused."""
    if status == 400:
        raise ValueError(sentence)
    raise import_module("fastapi").HTTPException(status, sentence)
    yield  # what makes this a generator
