"""The door's part in SGLang's own processes, without SGLang: what each refuses, and when it gives up."""

from __future__ import annotations

import asyncio
import base64
import sys
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, NoReturn

import pytest

from kvfence_engine import doorkeeper, ranks, serving, settings
from kvfence_engine.admission import Admission
from kvfence_engine.doorkeeper import Doorkeeper, Identity
from kvfence_engine.gate import PASSED, Passed
from kvfence_engine.hooks import HookError
from kvfence_engine.integrity.modes import Modes, encode
from kvfence_engine.ranks import Ranked
from kvfence_engine.serving import Serving
from kvfence_engine.state import Alarm, Door, Grant, Rank, Server, SharedState
from tests.unit.engine_image.conftest import BOOT, Operator


class GivenUp(BaseException):
    """In the place of the end of the process."""


class InPlace:
    """Hooks that are in place, until they are not."""

    broken = False

    def __init__(self, _hooks: object, _known: object) -> None:
        """Nothing is hooked."""

    def check(self, *_used: object) -> None:
        if InPlace.broken:
            raise HookError("the hook at x was replaced")


@pytest.fixture(autouse=True)
def without_sglang(monkeypatch: pytest.MonkeyPatch) -> None:
    def give_up(_state: object, who: str, why: str) -> NoReturn:
        raise GivenUp(f"{who}: {why}")

    for module in (serving, ranks):
        monkeypatch.setattr(module, "Hooks", InPlace)
        monkeypatch.setattr(module, "give_up", give_up)
    monkeypatch.setattr(InPlace, "broken", False)
    monkeypatch.setenv(settings.INTEGRITY, encode(Modes()))
    monkeypatch.setenv(settings.POOL, "pool")
    names = ("fastapi", "sglang", "sglang.srt", "sglang.srt.entrypoints", "sglang.srt.entrypoints.http_server")
    for name in (*names, "sglang.srt.runtime_context", "sglang.srt.managers", "sglang.srt.managers.io_struct"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    made: Any = sys.modules
    made["fastapi"].HTTPException = RuntimeError
    made["sglang.srt.entrypoints.http_server"].app = SimpleNamespace(add_middleware=lambda *_, **__: None)
    parallel = SimpleNamespace(attn_dp_enabled=False, dp_rank=0, pp_size=1, pp_rank=0, tp_size=1, tp_rank=0)
    made["sglang.srt.runtime_context"].get_parallel = lambda: parallel
    made["sglang.srt.managers.io_struct"].SetInternalStateReqOutput = SimpleNamespace


def http_process(state: SharedState, *, cap: int = 1000, server_ranks: int = 1) -> Serving:
    state.set_server(Server(1, "n-http", "0.5.23", ranks=server_ranks))
    state.set_rank(Rank(0, 2, "n-rank", 1024, 1, 1018, 1018))
    made = Serving(state)
    model = SimpleNamespace(context_len=cap)
    manager = SimpleNamespace(context_len=cap, max_req_input_len=cap - 6, num_reserved_tokens=0, model_config=model)
    arguments = SimpleNamespace(resolved_dict=lambda: {"disaggregation_mode": "null"})
    made._set_up(arguments, manager, None, None, [{}])
    return made


def rank_process(state: SharedState) -> tuple[Ranked, Any]:
    made = Ranked(state)
    runner = SimpleNamespace(effective_logical_max_total_num_tokens=1024)
    scheduler = SimpleNamespace(
        max_req_len=1023,
        max_req_input_len=1018,
        page_size=1,
        tp_worker=SimpleNamespace(model_runner=runner),
        beam_coordinator=SimpleNamespace(max_req_len=1023),
    )
    made._made(None, scheduler)
    return made, scheduler


def test_an_http_process_with_fewer_ranks_than_the_engine_has_gives_up() -> None:
    with pytest.raises(GivenUp, match="1 of 2 ranks have the door"):
        http_process(SharedState.create(), server_ranks=2)


def test_an_http_process_whose_hook_was_replaced_gives_up_before_it_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(InPlace, "broken", True)
    with pytest.raises(GivenUp, match="http: the hook at x was replaced"):
        http_process(SharedState.create())


def test_a_rank_whose_hook_was_replaced_gives_up_before_it_is_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(InPlace, "broken", True)
    with pytest.raises(GivenUp, match="scheduler: the hook at x was replaced"):
        rank_process(SharedState.create())


def test_a_pool_with_retired_pages_is_told_as_the_smaller_pool_that_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    state = SharedState.create()
    made, _ = rank_process(state)
    assert [(rank.pool_tokens, rank.boot_input_limit) for rank in state.ranks()] == [(1024, 1018)]
    monkeypatch.setattr(made._integrity, "retired_tokens", lambda: 24)
    made._changed()
    assert [(rank.pool_tokens, rank.boot_input_limit) for rank in state.ranks()] == [(1000, 994)]


def test_a_rank_whose_hook_was_replaced_later_taints_its_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    state = SharedState.create()
    made, scheduler = rank_process(state)
    state.set_server(Server(1, "n-http", "0.5.23", ranks=1, asked=("ab" * 16,)))
    answer = SimpleNamespace(internal_state={})
    made._tell(answer, scheduler)
    assert state.alarm(0) == Alarm()
    assert answer.internal_state["kvfence"]["attested"] == ["ab" * 16]
    assert [rank.attested for rank in state.ranks()] == [("ab" * 16,)]
    monkeypatch.setattr(InPlace, "broken", True)
    made._tell(answer, scheduler)
    assert state.alarm(0).escaped == "HookMissing"


def test_a_prompt_over_the_cap_is_refused_where_its_tokens_are_counted() -> None:
    made = http_process(SharedState.create())
    made._validate(None, None, [1] * 993)
    with pytest.raises(ValueError, match="994 tokens"):
        made._validate(None, None, [1] * 994)


@pytest.mark.parametrize(
    ("passed", "door"), [(None, Door.OPEN), (Passed.USER, Door.CANARY), (Passed.USER, Door.CLOSED)]
)
def test_sglang_is_not_asked_for_what_did_not_come_through_an_open_door(passed: Passed | None, door: Door) -> None:
    state = SharedState.create()
    made = http_process(state)
    state.set_grant(Grant(door, epoch=1, cap=1000))
    asked: list[object] = []

    async def first() -> None:
        PASSED.set(passed)
        await anext(made._generate(lambda *_: asked.append(1), None, SimpleNamespace(rid="a", text="b")))

    with pytest.raises(RuntimeError):
        asyncio.run(first())
    assert asked == []


def test_an_http_process_that_loses_sight_of_the_launcher_gives_up() -> None:
    made = http_process(SharedState.create())

    async def breaks() -> None:
        raise ValueError("torn")

    async def go() -> None:
        task = asyncio.ensure_future(breaks())
        await asyncio.wait([task])
        made._stopped(task)

    with pytest.raises(GivenUp, match="the door lost sight of the launcher: ValueError: torn"):
        asyncio.run(go())


def test_a_rank_takes_no_cap_of_an_epoch_that_was_overtaken() -> None:
    made, scheduler = rank_process(SharedState.create())

    def told(epoch: int, cap: int) -> bool:
        message = SimpleNamespace(server_args={"kvfence_epoch": epoch, "kvfence_cap": cap})
        return bool(made._set(lambda *_: None, scheduler, message).updated)

    assert told(2, 500)
    assert not told(1, 1000)
    assert not told(2, 1000)
    assert scheduler.max_req_input_len == 494


class Forgetful(SharedState):
    """Every process says at once that it applied a cap, and the rank goes on checking what it checked before."""

    def set_grant(self, grant: Grant) -> None:
        super().set_grant(grant)
        if grant.epoch:
            self.set_rank(Rank(0, 2, "n-rank", 1024, 1, 1018, 1018, epoch=grant.epoch))
            self.set_server(Server(1, "n-http", "0.5.23", ranks=1, serving=True, epoch=grant.epoch))


def test_a_rank_that_says_it_applied_a_cap_and_checks_another_limit_opens_no_door(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    operator, expires = Operator(), int(time.time()) + 60
    monkeypatch.setattr(doorkeeper, "APPLY_SECONDS", 0.05)
    (tmp_path / "current").write_text(base64.b64encode(operator.public).decode())
    state = Forgetful.create()
    state.set_rank(Rank(0, 2, "n-rank", 1024, 1, 1018, 1018))
    state.set_server(Server(1, "n-http", "0.5.23", ranks=1, serving=True))
    keeper = Doorkeeper(state, Identity(BOOT.pool, BOOT.pod, tmp_path), lambda: None)
    admitted = Admission(BOOT.pool, BOOT.pod, ("n-http", "n-rank"), 1, Door.OPEN, 1000, (), (), expires)
    reply = keeper.admit(operator.body(admitted))
    assert (reply.status, reply.body["reason"]) == (504, "NotApplied")
    assert not keeper.is_open()
