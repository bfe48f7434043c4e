from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

import pytest

from kvfence.cli.canary import here
from kvfence.cli.canary.asked import Asked, Pace, WrongUsageError
from kvfence.cli.canary.callers import ByName
from kvfence.cli.canary.counted import CountedWeb
from kvfence.cli.canary.discovery import GETS, Found, NotToldError, Ways, discover
from kvfence.engine.caller import Caller
from kvfence.verify.canary.session import Budget, Session
from tests.unit.cli.canary.servers import Server, at, info

KEY = "key-of-a-test"
PACE = Pace(100, 100_000, 0)

Change = Callable[[Asked], Asked]


def found(*servers: Server, change: Change = lambda asked: asked, reference: Server | None = None) -> Found:
    """Discover what one or two servers are."""

    async def run() -> Found:
        async with AsyncExitStack() as opened:
            urls = tuple([await opened.enter_async_context(at(server)) for server in servers])
            other = None if reference is None else await opened.enter_async_context(at(reference))
            asked = change(Asked(urls, (), PACE, other, api_key=KEY))
            caller = ByName(
                await opened.enter_async_context(Caller(api_key=KEY)),
                await opened.enter_async_context(Caller()),
                asked.urls,
            )
            budget = Budget(100, 100_000, 0)
            web, strangers = CountedWeb(budget, KEY), CountedWeb(budget)
            await opened.enter_async_context(web)
            await opened.enter_async_context(strangers)
            ways = Ways(web, strangers, lambda target: Session(caller, target, budget, random.Random(1), 5.0), budget)
            return await discover(asked, ways)

    return asyncio.run(run())


def test_a_server_is_known_by_what_it_says() -> None:
    target = found(Server(info())).target
    (leg,) = target.legs
    assert (leg.name, leg.kv_pool_tokens, leg.context_length) == ("server", 1024, 4096)
    assert (leg.max_input_tokens, leg.page_size, leg.version) == (1018, 16, "0.5.23")
    assert (target.model, target.pair, target.is_router, target.takes_token_ids) == ("copy", None, False, True)


def test_a_pair_meets_where_prefill_says() -> None:
    prefill, decode = Server(info("prefill")), Server(info("decode"))
    target = found(prefill, decode).target
    assert [leg.name for leg in target.legs] == ["prefill", "decode"]
    assert target.pair is not None
    assert (target.pair.bootstrap_host, target.pair.bootstrap_port) == ("127.0.0.1", 9001)
    (asked,) = decode.bodies
    assert (asked["bootstrap_host"], asked["bootstrap_port"]) == ("127.0.0.1", 9001)
    assert asked["bootstrap_room"] == prefill.bodies[0]["bootstrap_room"]


def test_the_user_may_say_where_a_pair_meets() -> None:
    where = found(
        Server(info("prefill")),
        Server(info("decode")),
        change=lambda asked: replace(asked, bootstrap_host="10.9.9.9", bootstrap_port=7),
    ).target.pair
    assert where is not None
    assert (where.bootstrap_host, where.bootstrap_port) == ("10.9.9.9", 7)


def test_a_bootstrap_port_that_is_not_told_is_not_guessed() -> None:
    with pytest.raises(NotToldError, match="--bootstrap-port"):
        found(Server(info("prefill", disaggregation_bootstrap_port=None)), Server(info("decode")))


def test_loopback_is_no_place_to_meet_for_a_decode_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(here, "is_here", lambda host: host == "127.0.0.1")

    def elsewhere(asked: Asked) -> Asked:
        return replace(asked, urls=(asked.urls[0], asked.urls[1].replace("127.0.0.1", "localhost")))

    with pytest.raises(WrongUsageError, match="--bootstrap-host"):
        found(Server(info("prefill")), Server(info("decode")), change=elsewhere)


@pytest.mark.parametrize(
    ("servers", "words"),
    [
        pytest.param(
            (Server(info("decode")), Server(info("prefill"))), "says that it is decode", id="the wrong way round"
        ),
        pytest.param((Server(info("prefill")), Server(info())), "no half of a pair", id="a server that is no half"),
        pytest.param((Server(info("prefill")),), "the prefill half of a pair", id="half a pair"),
        pytest.param((Server(workers=()), Server(info("decode"))), "is a router", id="a router as a half"),
    ],
)
def test_what_is_named_as_something_else_is_wrong_usage(servers: tuple[Server, ...], words: str) -> None:
    with pytest.raises(WrongUsageError, match=words):
        found(*servers)


def test_a_pair_that_does_not_tell_its_roles_is_taken_at_the_users_word() -> None:
    silent = info("prefill")
    del silent["disaggregation_mode"]
    assert found(Server(silent), Server(info("decode"))).target.pair is not None


def test_a_server_that_takes_no_ids_is_asked_with_text() -> None:
    server = Server(info(), takes_ids=False)
    assert not found(server).target.takes_token_ids
    assert [type(body["prompt"]) for body in server.bodies] == [list, str]


@pytest.mark.parametrize(
    ("status", "cure"), [(401, "KVFENCE_API_KEY"), (404, "--model"), (503, "not closed to users"), (500, "See its log")]
)
def test_a_server_that_completes_nothing_cannot_be_examined(status: int, cure: str) -> None:
    with pytest.raises(NotToldError, match=f"answered {status}.*{cure}"):
        found(Server(info(), completes=status))


def test_the_model_is_one_that_both_halves_serve() -> None:
    prefill, decode = Server(info("prefill"), ("a", "b")), Server(info("decode"), ("c", "b"))
    assert found(prefill, decode).target.model == "b"


@pytest.mark.parametrize(("models", "words"), [(((), ("a",)), "names no model"), ((("a",), ("b",)), "different names")])
def test_a_model_that_is_not_told_is_not_guessed(models: tuple[tuple[str, ...], ...], words: str) -> None:
    with pytest.raises(NotToldError, match=words):
        found(Server(info("prefill"), models[0]), Server(info("decode"), models[1]))


def test_the_user_may_name_the_model() -> None:
    server = Server(info(), ())
    assert found(server, change=lambda asked: replace(asked, model="mine")).target.model == "mine"
    assert server.bodies[0]["model"] == "mine"


async def behind(router: Server, *engines: Server, change: Change = lambda asked: asked) -> Found:
    async with AsyncExitStack() as opened:
        urls = [await opened.enter_async_context(at(engine)) for engine in engines]
        router.workers = (*urls, *(router.workers or ()))
        url = await opened.enter_async_context(at(router))
        return await asyncio.to_thread(lambda: found_at(url, change))


def found_at(url: str, change: Change, budget: Budget | None = None) -> Found:
    async def run(budget: Budget) -> Found:
        async with (
            CountedWeb(budget, KEY) as web,
            CountedWeb(budget) as strangers,
            Caller(api_key=KEY) as caller,
        ):
            ways = Ways(web, strangers, lambda target: Session(caller, target, budget, random.Random(1), 5.0), budget)
            return await discover(change(Asked((url,), (), PACE, api_key=KEY)), ways)

    return asyncio.run(run(budget or Budget(100, 100_000, 0)))


def test_engines_behind_a_router_are_asked_what_they_are_without_the_users_key() -> None:
    prefill, decode = Server(info("prefill")), Server(info("decode", max_req_input_len=4090))
    router = Server(takes_ids=False)
    target = asyncio.run(behind(router, prefill, decode)).target
    assert target.is_router
    assert [leg.name for leg in target.legs] == ["router"]
    assert [engine.name for engine in target.engines] == ["prefill", "decode"]
    assert target.engines[0].max_input_tokens == 1018
    assert {key for _, key in prefill.seen + decode.seen} == {None}
    assert f"Bearer {KEY}" in {key for _, key in router.seen}


def test_engines_that_cannot_be_reached_are_said() -> None:
    given = asyncio.run(behind(Server(workers=("http://127.0.0.1:9", "ftp://127.0.0.1/x")), Server(info("prefill"))))
    assert len(given.target.engines) == 1
    assert any(note.startswith("1 of the router's ") for note in given.notes)


async def many(engine: Server, budget: Budget) -> Found:
    async with at(engine) as url, at(Server(workers=tuple(f"{url}/{n}" for n in range(64)))) as router:
        return await asyncio.to_thread(lambda: found_at(router, lambda asked: asked, budget))


def test_a_router_that_lists_many_addresses_has_few_of_them_contacted_and_says_which_were_not() -> None:
    engine, budget = Server(info("prefill")), Budget(500, 100_000, 0)
    given = asyncio.run(many(engine, budget))
    contacted = {path.split("/")[1] for path, _ in engine.seen}
    assert len(contacted) == 16
    assert len(engine.seen) <= budget.reads <= 17 * GETS, "all of them were counted"
    assert given.target.has_more_engines
    assert any("/16, " in note and "and 45 more" in note for note in given.notes), given.notes


def test_no_more_engines_are_contacted_than_the_budget_pays_for() -> None:
    engine, budget = Server(info("prefill")), Budget(60, 100_000, 0)
    asyncio.run(many(engine, budget))
    assert 0 < len(engine.seen) <= budget.reads <= 60


def test_a_budget_that_is_spent_before_anything_is_known_is_said() -> None:
    with pytest.raises(NotToldError, match="--max-requests"):
        found_at("http://127.0.0.1:9", lambda asked: asked, Budget(500, 100_000, 0, reads=500))


def test_a_local_target_may_be_attacked() -> None:
    assert found(Server(info())).target.may_be_attacked
    assert found(Server(info("prefill")), Server(info("decode"))).target.may_be_attacked


@pytest.mark.parametrize("owned", [False, True])
def test_a_target_elsewhere_may_be_attacked_by_its_owner_alone(owned: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(here, "is_here", lambda host: False)
    given = found(Server(info()), change=lambda asked: replace(asked, owned=owned))
    assert given.target.may_be_attacked is owned


@pytest.mark.parametrize("elsewhere", ["prefill", "decode"])
def test_one_leg_elsewhere_is_enough_to_attack_none(elsewhere: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(here, "is_here", lambda host: host == "127.0.0.1")

    def move(asked: Asked) -> Asked:
        moved = ["prefill", "decode"].index(elsewhere)
        urls = tuple(url.replace("127.0.0.1", "localhost") if i == moved else url for i, url in enumerate(asked.urls))
        return replace(asked, urls=urls, bootstrap_host="127.0.0.1")

    assert not found(Server(info("prefill")), Server(info("decode")), change=move).target.may_be_attacked


def test_a_router_with_an_engine_elsewhere_is_not_attacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(here, "is_here", lambda host: host == "127.0.0.1")
    local = asyncio.run(behind(Server(), Server(info("prefill"))))
    assert local.target.may_be_attacked
    remote = asyncio.run(behind(Server(workers=("http://192.0.2.9:30000",)), Server(info("prefill"))))
    assert not remote.target.may_be_attacked


def test_a_router_with_an_engine_whose_address_cannot_be_read_is_not_attacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(here, "is_here", lambda host: host == "127.0.0.1")
    odd = ("http://127.0.0.1:1", "http://10.0.0.8:30000?a=1")
    assert not asyncio.run(behind(Server(workers=odd), Server(info("prefill")))).target.may_be_attacked


def test_a_router_that_names_no_engine_may_have_any_and_is_not_attacked() -> None:
    assert not asyncio.run(behind(Server(workers=()))).target.may_be_attacked


def test_a_reference_is_known_and_must_serve_the_model() -> None:
    prefill, decode = Server(info("prefill")), Server(info("decode"))
    reference = found(prefill, decode, reference=Server(info())).target.reference
    assert reference is not None
    assert (reference.name, reference.max_input_tokens) == ("reference", 1018)
    with pytest.raises(WrongUsageError, match="serves other and not copy"):
        found(prefill, decode, reference=Server(info(), ("other",)))
    with pytest.raises(WrongUsageError, match="half of a pair"):
        found(prefill, decode, reference=Server(info("decode")))


@pytest.mark.parametrize(
    "hostile",
    [
        pytest.param({"disaggregation_bootstrap_port": 10**30}, id="a port that is none"),
        pytest.param({"disaggregation_bootstrap_port": "9001"}, id="a port in words"),
        pytest.param({"disaggregation_bootstrap_port": True}, id="a port that is true"),
        pytest.param({"disaggregation_bootstrap_port": [9001]}, id="a list of ports"),
        pytest.param({"disaggregation_bootstrap_port": {"a": 1}}, id="an object for a port"),
    ],
)
def test_a_port_that_is_none_is_not_told(hostile: dict[str, Any]) -> None:
    with pytest.raises(NotToldError, match="--bootstrap-port"):
        found(Server(info("prefill", **hostile)), Server(info("decode")))


def test_a_server_that_nobody_reaches_is_said_to_be_none_and_not_to_have_no_model() -> None:
    with pytest.raises(NotToldError, match="Nothing answers at this address"):
        found_at("http://127.0.0.1:9", lambda asked: asked)
