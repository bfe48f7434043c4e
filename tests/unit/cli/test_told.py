"""A server, its log and its pod together: the server wins, the others fill in, and nothing is guessed."""

from __future__ import annotations

from kvfence.api.v1alpha1.pool import RoleType
from kvfence.cli.pods import Container
from kvfence.cli.told import complete, joined, of_container
from kvfence.domain.diagnosis.seen import EngineSeen, Product, RouterSeen, Unreadable

SOURCE = "pod/a"


def test_what_the_server_says_wins_and_its_log_fills_in() -> None:
    answer = EngineSeen(SOURCE, version="0.5.23", context_length=4096, settings={"tp": 2})
    log = EngineSeen(
        SOURCE,
        version="0.5.19",
        product=Product.SGLANG,
        started=True,
        role=RoleType.PREFILL,
        kv_pool_tokens=1024,
        context_length=9,
        settings={"tp": 1, "page": 1},
        notes=("of the log",),
    )
    (engine,) = joined([answer], [log])
    assert isinstance(engine, EngineSeen)
    assert (engine.version, engine.context_length, engine.kv_pool_tokens) == ("0.5.23", 4096, 1024)
    assert (engine.role, engine.started, engine.product) == (RoleType.PREFILL, True, Product.SGLANG)
    assert engine.settings == {"tp": 2, "page": 1}
    assert engine.notes == ("of the log",)


def test_ranks_are_matched_and_one_that_could_be_any_is_left_alone() -> None:
    answers = [EngineSeen(SOURCE, rank=0), EngineSeen(SOURCE, rank=1)]
    log = [EngineSeen(SOURCE, rank=1, kv_pool_tokens=11), EngineSeen(SOURCE, rank=0, kv_pool_tokens=10)]
    assert [one.kv_pool_tokens for one in joined(answers, log) if isinstance(one, EngineSeen)] == [10, 11]
    untold = [EngineSeen(SOURCE), EngineSeen(SOURCE)]
    assert joined(untold, log) == tuple(untold)
    assert joined([EngineSeen(SOURCE)], log) == (EngineSeen(SOURCE),)


def test_the_log_speaks_for_a_server_that_does_not_answer() -> None:
    gone, failed = Unreadable(SOURCE, "no answer"), EngineSeen(SOURCE, started=False)
    assert joined([gone], [failed]) == (failed,)
    assert joined([], [failed]) == (failed,)
    assert joined([gone], [Unreadable(SOURCE, "empty")]) == (gone, Unreadable(SOURCE, "empty"))


def test_a_log_is_fetched_when_something_is_missing_in_the_answer() -> None:
    whole = EngineSeen(SOURCE, version="0.5.23", kv_pool_tokens=1, context_length=1)
    assert complete([whole])
    assert complete([RouterSeen(SOURCE)])
    assert not complete([])
    assert not complete([Unreadable(SOURCE, "no answer")])
    assert not complete([whole, EngineSeen(SOURCE, version="0.5.23")])


def test_the_pod_adds_settings_variables_and_keys_that_stand_in_it() -> None:
    container = Container("engine", (), {"tp": 4, "port": 1}, {"A": "1"}, ("api_key",), ("not known",))
    engine, router, gone = of_container(
        [EngineSeen(SOURCE, settings={"tp": 2}), RouterSeen(SOURCE), Unreadable(SOURCE, "no")], container
    )
    assert isinstance(engine, EngineSeen)
    assert engine.settings == {"tp": 2, "port": 1}
    assert (engine.environment, engine.keys_shown, engine.notes) == ({"A": "1"}, ("api_key",), ("not known",))
    assert isinstance(router, RouterSeen)
    assert router.keys_shown == ("api_key",)
    assert gone == Unreadable(SOURCE, "no")
