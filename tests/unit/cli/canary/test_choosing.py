from __future__ import annotations

from dataclasses import replace

from kvfence.cli.canary.choosing import CONTEXTS, LEAST_TOKENS, SECONDS, chosen, patience, tokens_for
from kvfence.domain.verdicts import Check
from kvfence.verify.canary.session import Known, Target
from kvfence.verify.canary.stand_in import Shape, StandIn
from kvfence.verify.canary.suite import SUITE

ALL = tuple(SUITE)


def left_out(target: Target) -> set[Check]:
    return {one.check for one in chosen((), ALL, target)[1]}


def test_what_a_target_has_no_use_for_is_left_out() -> None:
    pair = StandIn(Shape.PAIR).target
    assert left_out(StandIn(Shape.SERVER).target) == {Check.ROUTER_PAIRING, Check.PAIR_IDENTITY}
    assert left_out(pair) == {Check.ROUTER_PAIRING}
    assert left_out(replace(pair, reference=None)) == {Check.ROUTER_PAIRING, Check.PAIR_IDENTITY}
    assert left_out(StandIn(Shape.ROUTER).target) == set()


def test_what_is_asked_for_by_name_runs_in_any_case() -> None:
    wanted, rest = chosen((Check.ROUTER_PAIRING,), ALL, StandIn(Shape.SERVER).target)
    assert wanted == (Check.ROUTER_PAIRING,)
    assert len(rest) == len(ALL) - 1


def test_of_a_target_that_is_not_known_nothing_is_left_out() -> None:
    assert chosen((), ALL, None) == (ALL, ())


def test_hostile_checks_are_not_left_out_silently() -> None:
    target = replace(StandIn(Shape.PAIR).target, may_be_attacked=False)
    assert Check.FAKE_TRANSFER in chosen((), ALL, target)[0]


def test_a_run_may_cost_more_on_a_longer_context_and_takes_longer() -> None:
    def of(context: int | None) -> Target:
        return Target("t", "m", (Known("server", "http://a", context_length=context),))

    assert tokens_for(of(None)) == tokens_for(of(4096)) == LEAST_TOKENS
    assert tokens_for(of(1_048_576)) == CONTEXTS * 1_048_576
    assert patience(of(None)) == SECONDS < patience(of(1_048_576)) < 3600
