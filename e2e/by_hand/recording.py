"""Records what real servers and routers say and log, for the fast tests that read such things (`tests/field/real`)."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

from e2e import cache
from e2e.by_hand.cast import KEY
from e2e.by_hand.routers import routing
from e2e.engines.servers import Role

if TYPE_CHECKING:
    from e2e.by_hand.playing import Up
    from e2e.by_hand.routers import Routing
    from e2e.engines.processes import Running

CHECKOUT = Path(__file__).resolve().parents[2]
SECONDS = 30.0

ENGINE_PATHS = {
    "server_info": "/server_info",
    "loads": "/v1/loads?include=all",
    "models": "/v1/models",
    "model_info": "/model_info",
    "metrics": "/metrics",
}
ROUTER_PATHS = {
    "workers": "/workers",
    "server_info": "/get_server_info",
    "models": "/v1/models",
    "loads": "/get_loads",
    "model_info": "/get_model_info",
    "version": "/version",
}

_REPLACED = (
    (re.compile(re.escape(str(cache.root())) + r"/copy-model/\w+"), "/models/copy-model"),
    (re.compile(re.escape(str(cache.root())) + r"/[\w.-]+/\w+"), "/usr/lib/python"),
    (re.compile(re.escape(str(CHECKOUT))), "/src"),
    (re.compile(re.escape(str(Path.home()))), "/srv/user"),
    (re.compile(r"/tmp/kvfence-\w+"), "/tmp"),  # noqa: S108 - the name as it stands in a log
)

_HISTOGRAM = re.compile(r"^\w[\w:]*_bucket\{.*\n", re.MULTILINE)
"""Of metrics: most of what there is, and nobody reads it."""


def record(up: Up, logs: Path, folder: Path) -> None:
    """Write what a group's servers, and the routers of its scenes, answer and logged."""
    for engine in up.servers.values():
        _record_engine(engine, folder)
    for scene in up.group.scenes:
        if scene.router is not None:
            with routing(scene.router, [up.servers[one.name] for one in scene.engines], logs) as routed:
                _record_router(routed, folder)


def _record_engine(engine: Running, folder: Path) -> None:
    """Write what one server answers and what it logged."""
    server = engine.server
    role = "" if server.role is Role.UNIFIED else f"-{server.role.value}"
    name = server.name.removesuffix(role)
    stem = f"sglang-{server.version}-{name}{role}"
    for what, path in ENGINE_PATHS.items():
        _record(engine.url + path, folder, f"{stem}-{what}")
    (folder / f"{stem}.log").write_text(scrubbed(engine.log.read_text(errors="replace")))


def _record_router(routed: Routing, folder: Path) -> None:
    """Write what one router answers and what it logged."""
    for what, path in ROUTER_PATHS.items():
        _record(routed.url + path, folder, f"{routed.router.value}-{routed.version}-{what}")
    log = routed.log.read_text(errors="replace")
    (folder / f"{routed.router.value}-{routed.version}.log").write_text(scrubbed(log))


def scrubbed(text: str) -> str:
    """Return the text without paths of this machine."""
    for pattern, new in _REPLACED:
        text = pattern.sub(new, text)
    return text


def _record(url: str, folder: Path, stem: str) -> None:
    status, body = _get(url)
    if status != 200:
        (folder / f"{stem}.{status}").write_text(scrubbed(body))
        return
    try:
        told: Any = json.loads(body)
    except ValueError:
        (folder / f"{stem}.txt").write_text(scrubbed(_HISTOGRAM.sub("", body)))
        return
    (folder / f"{stem}.json").write_text(scrubbed(json.dumps(told, indent=1)) + "\n")


def _get(url: str) -> tuple[int, str]:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {KEY}"})  # noqa: S310 - ours, http
    try:
        with opener.open(request, timeout=SECONDS) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(errors="replace")
