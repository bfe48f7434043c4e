"""A hostile client of a pool: through its Service there are the inference paths and the list of models, no more."""

from __future__ import annotations

import http.client
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from e2e.pools import rogue
from e2e.pools.asking import Place, question
from e2e.pools.conftest import Brought
from e2e.product.images import ProductImages
from kvfence.verify.closed_paths import CLOSED, ROUTER

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
OFFERED = {
    ("POST", "/v1/completions"),
    ("POST", "/v1/chat/completions"),
    ("GET", "/v1/models"),
    ("HEAD", "/v1/models"),
}
REFUSALS = {404: "not_found", 405: "method_not_allowed"}
"""The front's own words, by status. The router has others."""

PROMPTS = 4
TAKEN_ON_SECONDS = 3.0
"""A router takes a worker on in less, once it was told of it."""
STOLEN_SECONDS = 3.0
"""No longer than this for an answer where the attacker's server may have become an engine's partner."""


@pytest.fixture(scope="module")
def described(first: Brought) -> set[str]:
    """The paths of both running servers, as their own description has them, with something for each parameter."""
    found = set()
    for leg in first.pool.legs().values():
        paths = leg.ask("/openapi.json").json["paths"]
        assert len(paths) > 60, "the server does not say what it has"
        found |= {path.replace("{", "").replace("}", "") for path in paths}
    return found


@pytest.fixture
def attacker(first: Brought) -> Iterator[Place]:
    """A server of the attacker's that the pool's router could reach."""
    with rogue.rogue(first.pool, ProductImages().operator) as place:
        yield place


def send(place: Place, method: str, path: str) -> tuple[int, str]:
    """Ask, with an empty object for a body where the method has one; return status and error code."""
    body = b"{}" if method in ("POST", "PUT", "PATCH", "DELETE") else None
    said = place.ask(path, body, method, seconds=10.0)
    try:
        return said.status, said.json["error"]["code"]
    except (ValueError, KeyError, TypeError):
        return said.status, ""


def test_a_path_of_the_router_or_of_an_engine_is_there_for_users(first: Brought, described: set[str]) -> None:
    service = first.pool.service()
    asked = {(method, path) for path in described | set(ROUTER) for method in METHODS} - OFFERED | set(CLOSED)
    assert len(asked) > 800
    there = {}
    for method, path in sorted(asked):
        try:
            status, code = send(service, method, path)
        except http.client.HTTPException as error:
            there[method, path] = repr(error)
            continue
        of_the_front = code == REFUSALS.get(status) or (method == "HEAD" and status in REFUSALS)
        if not of_the_front:
            there[method, path] = f"{status} {code}"
    assert there == {}


def test_control_behind_the_front_the_same_paths_answer(first: Brought, described: set[str]) -> None:
    router = first.pool.behind_the_front()
    answers = {path for path in ROUTER if send(router, "GET", path)[0] == 200}
    assert answers >= {"/workers", "/health", "/liveness", "/readiness", "/get_server_info", "/get_loads"}
    assert send(router, "POST", "/generate")[0] not in (404, 405), "a path that takes prompts"
    for leg in first.pool.legs().values():
        answers = {path for path in described if send(leg, "GET", path)[0] == 200}
        assert answers >= {"/server_info", "/v1/loads", "/health", "/model_info"}


def test_an_engine_of_an_attackers_is_sent_prompts(first: Brought, attacker: Place) -> None:
    service, router = first.pool.service(), first.pool.behind_the_front()
    tried = [("POST", "/workers"), ("PUT", "/workers/1"), ("POST", "/add_worker"), ("POST", "//workers")]
    statuses = {path: service.ask(path, rogue.body(attacker), method).status for method, path in tried}
    offered = service.ask("/v1/completions?url=/workers", rogue.body(attacker)).status
    time.sleep(TAKEN_ON_SECONDS)
    answers = ask_some(service)
    assert rogue.prompts(attacker) == 0
    assert rogue.url(attacker) not in [one["url"] for one in router.ask("/workers").json["workers"]]
    assert answers == [200] * PROMPTS, "prompts went somewhere"
    assert set(statuses.values()) == {404}
    assert offered >= 400


def test_control_enrolled_behind_the_front_it_is_sent_prompts(first: Brought, attacker: Place) -> None:
    with rogue.enrolled(first.pool.behind_the_front(), attacker):
        ask_some(first.pool.service(), STOLEN_SECONDS)
        assert rogue.prompts(attacker) > 0


def ask_some(service: Place, seconds: float = 60.0) -> list[int]:
    """Send some prompts at once, as users do; return the status of each, 0 without an answer."""

    def ask(_: int) -> int:
        try:
            return service.ask("/v1/completions", question(20), seconds=seconds).status
        except (OSError, http.client.HTTPException):
            return 0

    with ThreadPoolExecutor(PROMPTS) as threads:
        return list(threads.map(ask, range(PROMPTS)))
