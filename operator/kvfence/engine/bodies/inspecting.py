"""Asks a live server what it is and what it has. Only GET, and nothing that makes an engine compute or changes it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from yarl import URL

from kvfence.domain.asking import Fault
from kvfence.domain.diagnosis.seen import Product, RouterSeen, Unreadable
from kvfence.engine import fields
from kvfence.engine.bodies import metrics, routers, sglang
from kvfence.engine.bodies.merging import rows
from kvfence.engine.bodies.reading import BODY_LIMIT
from kvfence.engine.bodies.said import Said
from kvfence.engine.web import Web, unanswered

if TYPE_CHECKING:
    from kvfence.domain.asking import Reply
    from kvfence.domain.diagnosis.seen import Seen

SECONDS = 15.0
"""For each answer. `/server_info` asks all schedulers, which answer between two batches."""

_PATHS = ("/v1/models", "/models", "/server_info", "/get_server_info", "/model_info", "/v1/loads", "/metrics", "/v1")
"""What people copy together with the address of a server."""

OLD_SERVER_INFO = "/get_server_info"
WORKERS = "/workers"
VERSION = "/version"


async def inspect(web: Web, url: str, source: str, stranger: Web | None = None) -> tuple[Seen, ...]:
    """Ask the server at an address: an engine of SGLang or vLLM, or a router.

    Args:
        web: an open session, with the user's API key if there is one. Answers above its limit are not read:
            `BODY_LIMIT` is one that is enough.
        url: of the server; a path that was copied along with it is left out.
        source: how the report names it.
        stranger: asks as anybody would, without a key; one of our own unless given. Both ways lead to the same server.

    Returns:
        A row for each rank of an engine that is told, or a router; or why nothing is told. Never empty.
    """
    base = _base(url)
    if base is None:
        return (Unreadable(source, "This is no address: one such as http://127.0.0.1:30000 is."),)
    async with stranger or Web(SECONDS, BODY_LIMIT) as nobody:
        asking = _Asking(web, nobody, base)
        first = await asyncio.gather(
            asking.get(sglang.SERVER_INFO), asking.get(sglang.MODELS), asking.get(WORKERS, anybody=True)
        )
        info, models, workers = first
        if workers.body is not None and routers.is_workers(workers.body):
            return (await _router(asking, source, workers, models),)
        if models.body is not None and routers.made_models(models.body) is not None:
            return (await _router(asking, source, workers, models),)
        if not info.usable and workers.status in (401, 403) and (await asking.get("/liveness", anybody=True)).usable:
            return (await _router(asking, source, workers, models),)
        return await _engine(asking, source, info, models)


@dataclass(frozen=True)
class _Answer:
    """What came of asking for one path."""

    path: str
    reply: Reply
    body: dict[str, Any] | None
    """The JSON object that it is, when it is one with status 200."""

    @property
    def status(self) -> int | None:
        return None if self.reply.fault is not None else self.reply.status

    @property
    def usable(self) -> bool:
        return self.status == 200

    @property
    def why(self) -> str:
        """Why there is none, as a sentence."""
        if self.usable:
            return f"GET {self.path}: the answer is not what such a server says."
        return f"{unanswered(f'GET {self.path}', self.reply).why}."


@dataclass(frozen=True)
class _Asking:
    web: Web
    nobody: Web
    """Without the key, to see what anybody sees."""
    base: str

    async def get(self, path: str, *, anybody: bool = False) -> _Answer:
        web = self.nobody if anybody else self.web
        reply = await web.fetch("GET", f"{self.base}{path}", None, SECONDS)
        answer = _Answer(path, reply, None)
        if not answer.usable or path == metrics.METRICS:
            return answer
        try:
            body = await asyncio.to_thread(json.loads, reply.body)  # some hundred ms where many ranks are told
        except (ValueError, RecursionError):
            return answer
        return _Answer(path, reply, body if isinstance(body, dict) else None)


async def _router(asking: _Asking, source: str, workers: _Answer, models: _Answer) -> RouterSeen:
    is_list = workers.body is not None and routers.is_workers(workers.body)
    listed, unread = routers.addresses(workers.body) if is_list and workers.body is not None else ((), 0)
    info = await asking.get(OLD_SERVER_INFO, anybody=True)
    handed = sglang.server_info(info.body) if info.body is not None and sglang.is_server_info(info.body) else None
    notes = []
    if not is_list and workers.status not in (401, 403, 404, 405):
        notes.append(f"Whether its control plane is open is not known. {workers.why}")
    # A router without an engine answers 503 to it: then it is not known, since it may hand out that of the first.
    closed = info.status in (200, 401, 403, 404, 405)
    return RouterSeen(
        source=source,
        product=_product(workers, models),
        control_plane_open=True if is_list else (False if workers.status in (401, 403, 404, 405) else None),
        server_info_open=True if handed is not None else (False if closed else None),
        workers=listed,
        workers_unread=unread,
        keys_shown=handed.keys_shown if handed is not None else (),
        notes=tuple(notes),
    )


def _product(workers: _Answer, models: _Answer) -> Product | None:
    if workers.body is not None and (product := routers.made_workers(workers.body)) is not None:
        return product
    return None if models.body is None else routers.made_models(models.body)


async def _engine(asking: _Asking, source: str, info: _Answer, models: _Answer) -> tuple[Seen, ...]:
    if info.status in (404, 405):  # an older release
        info = await asking.get(OLD_SERVER_INFO)
    said: list[Said] = []
    notes: list[str] = []
    if info.body is not None and sglang.is_server_info(info.body):
        said.append(sglang.server_info(info.body, info.path))
    elif info.status not in (404, 405):
        notes.append(info.why)
    if models.body is not None and sglang.is_models(models.body):
        said.append(sglang.models(models.body))
    else:
        notes.append(models.why)
    if not said:
        return (Unreadable(source, _nothing(info, models)),)
    more = [asking.get(metrics.METRICS)]
    more.append(asking.get(f"{sglang.LOADS}?include=core") if _is_sglang(said) else asking.get(VERSION))
    for answer in await asyncio.gather(*more):
        said += _more(answer)
    if notes:
        said.append(Said("", notes=tuple(notes)))
    return rows(source, said)


def _is_sglang(said: list[Said]) -> bool:
    return any(one.product is Product.SGLANG for one in said)


def _more(answer: _Answer) -> tuple[Said, ...]:
    """Metrics are off unless they are wanted, and older releases have no `/v1/loads`: it is no fault that none come."""
    if answer.path == metrics.METRICS:
        told = metrics.metrics(answer.reply.body) if answer.usable else None
        return () if told is None else (told,)
    if answer.body is None:
        return ()
    if answer.path == VERSION:
        return (Said(VERSION, version=fields.text(answer.body.get("version"))),)
    return (sglang.loads(answer.body),) if sglang.is_loads(answer.body) else ()


def _nothing(info: _Answer, models: _Answer) -> str:
    """Say in a sentence or two why nothing is told, with what to do."""
    statuses = {info.status, models.status}
    if statuses & {401, 403}:
        return "The server wants a key: put one that it takes into the variable KVFENCE_API_KEY."
    if info.reply.fault is Fault.UNREACHABLE and models.reply.fault is Fault.UNREACHABLE:
        return f"Nothing answers at this address. {info.why} Look whether the server runs, and at host and port."
    return f"This does not answer as SGLang, vLLM or one of their routers do. {info.why} {models.why}"


def _base(url: str) -> str | None:
    """Return the address without the path that was copied along; none when it is no address of HTTP."""
    try:
        parsed = URL(url.strip())
        fits = parsed.scheme in ("http", "https") and bool(parsed.host) and parsed.port is not None
    except ValueError:
        return None
    if not fits:
        return None
    base = str(parsed.with_query(None).with_fragment(None)).rstrip("/")
    for path in _PATHS:
        base = base.removesuffix(path)
    return base.rstrip("/")
