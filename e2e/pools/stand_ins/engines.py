"""An engine without SGLang: the real door in front of a few lines that answer as SGLang with the stage's model does.

Real are the launcher's own port, the doorkeeper, the state that both share, the gate and the middleware. Stood in for
are SGLang's two processes that say who they are, measure and apply caps, and the model: it repeats what followed the
end of the prompt where that stood before.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import socket
import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from e2e.pools.stand_ins import asgi
from e2e.pools.stand_ins.moments import Moment
from kvfence_engine import __version__, canaries, limits, requests
from kvfence_engine.control import Control
from kvfence_engine.cutting import Cutter
from kvfence_engine.doorkeeper import Doorkeeper, Identity, Reply
from kvfence_engine.gate import PASSED, Gate
from kvfence_engine.integrity.modes import Mode
from kvfence_engine.integrity.receipts import Receipt, Receipts
from kvfence_engine.integrity.tally import Tally
from kvfence_engine.launcher import PORT
from kvfence_engine.middleware import DoorMiddleware
from kvfence_engine.state import Door, Grant, Rank, Server, SharedState
from kvfence_engine.streams import send_json

if TYPE_CHECKING:
    from pathlib import Path

    from e2e.pools.stand_ins.moments import Moments
    from e2e.pools.stand_ins.network import PodNetwork
    from kvfence_engine.requests import Refused

HTTP_PORT = 30000
SERVED_NAME = "tiny"
CONTEXT = 4096
"""Tokens, that the engine is started with."""
VERSION = "0.5.23"
LEAD = 8
"""Characters at the end of a prompt that the model looks for; the markers' lead has as many."""


@dataclass(frozen=True)
class Pod:
    """What an engine knows of the pod that it is in."""

    pool: str
    """UID of the InferencePool."""
    uid: str
    ip: str
    prefill: bool
    pool_tokens: int
    """That its KV pool holds."""
    keys: Path


class WatchedDoorkeeper(Doorkeeper):
    """The real one. Admissions come one at a time, over all engines, so that a test can stop between two of them."""

    _one_at_a_time = threading.Lock()

    def __init__(self, state: SharedState, pod: Pod, moments: Moments) -> None:
        super().__init__(state, Identity(pod.pool, pod.uid, pod.keys), lambda: None)
        self._pod = pod
        self._moments = moments

    def admit(self, body: bytes) -> Reply:
        """Judge and apply an admission; what an operator had sent that is dead by now is lost."""
        with self._one_at_a_time:
            if self._moments.is_over():
                return Reply(503, {"message": "nobody is there to read this"})
            reply = super().admit(body)
            if reply.status == 200 and reply.body["door"] == Door.OPEN.value:
                self._moments.opened(self._pod.pool)
            return reply

    def status(self) -> dict[str, Any]:
        """Return how things stand."""
        said = super().status()
        if said["started"]:
            self._moments.seen(Moment.MEASURED, self._pod.pool)
        return said


def _attested() -> dict[str, Any]:
    """What a rank says whose defences are all enforced, and found nothing."""
    modes = dict.fromkeys(("pageTagging", "pageScrubbing", "coverage"), Mode.ENFORCE.value)
    return {"version": __version__, "selfTest": "passed", **modes, "pages": 0, **Tally().as_dict()}


class StandInEngine:
    """One boot of an engine. It has started when it is made.

    Args:
        pod: where it is.
        network: that has the pod's address.
        moments: is told what happens.
    """

    def __init__(self, pod: Pod, network: PodNetwork, moments: Moments) -> None:
        self.pod = pod
        self.prompts = 0
        """That were answered."""
        self._moments = moments
        self._cap = CONTEXT
        self._receipts = Receipts()
        self._state = SharedState.create()
        del self._state._ranks[1:]  # to look for 255 more at each question takes most of the test's time
        limit = min(CONTEXT - 1, pod.pool_tokens - 1) - 5
        self._rank = Rank(0, 2, secrets.token_hex(16), pod.pool_tokens, 1, limit, limit, integrity=_attested())
        self._keeper = WatchedDoorkeeper(self._state, pod, moments)
        self._state.set_server(Server(1, secrets.token_hex(16), VERSION, ranks=1))
        self._state.set_rank(self._rank)
        self._gate = Gate(self._state, disaggregated=True)
        self._door = DoorMiddleware(self._sglang, self._gate, Cutter(), self._serving, self._asked)
        self._http = asgi.Server(lambda method, path, headers, body: asgi.ask(self._door, method, path, body, headers))
        with network.inside():
            Control((pod.ip, PORT), self._keeper)
            self._listening = socket.create_server((pod.ip, HTTP_PORT), backlog=64)

    @property
    def url(self) -> str:
        """Of its server."""
        return f"http://{self.pod.ip}:{HTTP_PORT}"

    @property
    def grant(self) -> Grant:
        """How its door stands."""
        return self._state.grant()

    @property
    def nonces(self) -> tuple[str, ...]:
        """What tells this boot from another."""
        server = self._state.server()
        assert server is not None
        return (server.nonce, *(rank.nonce for rank in self._state.ranks()))

    async def run(self, until: asyncio.Event) -> None:
        """Serve and apply caps until told to stop."""
        await self._door({"type": "lifespan"}, _receive, _send)
        await self._http.start(self._listening)
        while not until.is_set():
            self._apply_cap()
            await asyncio.sleep(0.02)
        await self._http.close()

    async def is_healthy(self) -> bool:
        """Whether a router would take it up."""
        status, _ = await self.ask("GET", "/health", b"")
        return status == 200

    async def ask(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        """Ask its server, without a network between."""
        return await asgi.ask(self._door, method, path, body, {"content-type": "application/json"})

    def _serving(self) -> None:
        server = self._state.server()
        assert server is not None
        self._state.set_server(replace(server, serving=True))

    def _asked(self, nonce: str) -> None:
        """Do what SGLang's ranks do when the server asks them: repeat what an asker drew."""
        self._rank = replace(self._state.ranks()[0], attested=(nonce,))
        self._state.set_rank(self._rank)

    def _apply_cap(self) -> None:
        """Do what SGLang's processes do with an admission: the ranks first, then the server says so."""
        grant, server = self._state.grant(), self._state.server()
        assert server is not None
        if grant.epoch <= server.epoch:
            return
        self._cap = grant.cap
        input_limit = limits.input_limit(grant.cap, self._rank.boot_input_limit)
        self._rank = replace(self._rank, epoch=grant.epoch, input_limit=input_limit)
        self._state.set_rank(self._rank)
        self._state.set_server(replace(server, epoch=grant.epoch))

    async def _sglang(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            return
        message = await receive()
        match scope["path"]:
            case "/v1/completions":
                status, said = self._complete(json.loads(message["body"]))
            case "/server_info":
                status, said = 200, self._info()
            case "/v1/models":
                status, said = 200, {"data": [{"id": SERVED_NAME, "max_model_len": self._cap}]}
            case "/health":
                status, said = 200, {}
            case _:
                status, said = 404, {}
        await send_json(send, status, json.dumps(said).encode())

    def _info(self) -> dict[str, Any]:
        return {
            "version": VERSION,
            "disaggregation_enable_kv_checksum": True,
            "disaggregation_mode": "prefill" if self.pod.prefill else "decode",
            "num_reserved_decode_tokens": 512,
            "allow_auto_truncate": False,
        }

    def _complete(self, fields: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Judge once more, as the door does with what SGLang made of a request; then answer as the model would."""
        prompt = fields["prompt"]
        tokens = len(prompt) if isinstance(prompt, list) else len(prompt) + 1
        longest = limits.longest_prompt(self._cap, self._rank.boot_input_limit)
        refused = self._gate.confirm(PASSED.get(), fields)
        if refused is None and tokens > longest:
            refused = requests.over_the_cap(tokens, longest)
        if refused is not None:
            return refused.status, _error(refused)
        if self._found(fields, tokens):
            return 500, {"object": "error", "message": "the KV cache of this request could not be verified"}
        self.prompts += 1
        if self.prompts == 3:
            self._moments.seen(Moment.PROVING_PAIRS, self.pod.pool)
        text = "" if isinstance(prompt, list) else _continued(prompt, fields["max_tokens"])
        return 200, {"choices": [{"text": text}], "usage": {"prompt_tokens": tokens}}

    def _found(self, fields: dict[str, Any], tokens: int) -> bool:
        """Keep a canary's receipt, as a rank does; return whether it asked for a fault, which every defence finds."""
        rid = fields.get("rid")
        if not canaries.wants_receipt(rid):
            return False
        kind, leg = canaries.drilled(rid), "prefill" if self.pod.prefill else "decode"
        found = {kind: 1} if kind else {}
        room, over = fields["bootstrap_room"], (0, tokens, tokens)
        kept = Receipt(str(rid), room, leg, 0, tokens, 1, 1 - len(found), over, tokens, not found, found)
        self._state.set_receipts(0, self._receipts.add(kept))
        return bool(found)


def _continued(prompt: str, length: int) -> str:
    end = prompt[-LEAD:]
    before = prompt.find(end)
    return prompt[before + LEAD :][:length] if before < len(prompt) - LEAD else "the quick river"[:length]


def _error(refused: Refused) -> dict[str, Any]:
    return {"object": "error", "message": refused.sentence, "type": refused.why.value, "code": refused.status}


async def _receive() -> dict[str, Any]:
    """Of a lifespan that nobody follows."""
    return {}


async def _send(_: Any) -> None:
    """Of a lifespan that nobody follows."""
