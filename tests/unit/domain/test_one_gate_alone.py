"""The safety case of the gates: each alone, failed or not known, keeps everybody out; the rest is sound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kvfence.api.v1alpha1.conditions import ConditionStatus
from kvfence.api.v1alpha1.reasons import Reason
from kvfence.domain.decisions import Admit, ProveFronts, decide
from kvfence.domain.engines import DoorState
from kvfence.domain.observed import Observed
from kvfence.domain.traffic_admitted import traffic_admitted
from tests.unit.domain.pools_of_engines import (
    CAP,
    FAILED,
    NOT_JUDGED,
    decode,
    done,
    exchanged,
    named,
    pool,
    proven,
    restarted,
    serving,
    spec,
    starting,
    told,
    with_door,
)

TRUE, FALSE = ConditionStatus.TRUE, ConditionStatus.FALSE


def _facts(**changes: object) -> Callable[[Observed], Observed]:
    def change(observed: Observed) -> Observed:
        one = observed.engines[1]
        assert one.facts is not None
        return exchanged(observed, replace(one, facts=replace(one.facts, **changes)))  # type: ignore[arg-type]

    return change


def _rank(**changes: Any) -> Callable[[Observed], Observed]:
    def change(observed: Observed) -> Observed:
        one = observed.engines[1]
        assert one.boot is not None
        rank = replace(one.boot.ranks[0], **changes)
        return exchanged(observed, replace(one, boot=replace(one.boot, ranks=(rank,))))

    return change


def _spec(**parts: object) -> Callable[[Observed], Observed]:
    return lambda observed: replace(observed, spec=spec(**parts))


def _door(door: DoorState) -> Callable[[Observed], Observed]:
    return lambda observed: exchanged(observed, with_door(observed.engines[1], door))


SGLANG = {"image": "registry.example/sglang:v0.5.23"}
ONE_GATE_FAILS: dict[str, tuple[Callable[[Observed], Observed], int, Reason]] = {
    "the declared version is too old": (
        _spec(engine={"sglang": {**SGLANG, "version": "0.5.19"}}),
        0,
        Reason.VERSION_TOO_OLD,
    ),
    "an engine runs a version that is too old": (_facts(version="0.5.20"), 0, Reason.VERSION_TOO_OLD),
    "an engine runs a development version": (_facts(version="0.5.24.dev1"), 0, Reason.DEVELOPMENT_VERSION),
    "an engine runs another version than declared": (_facts(version="0.5.24"), 0, Reason.VERSION_NOT_AS_DECLARED),
    "an engine does not say its version": (_facts(version=None), 0, Reason.VERSION_NOT_KNOWN),
    "an engine is still starting": (
        lambda it: exchanged(it, starting(it.engines[1])),
        1,
        Reason.ENGINES_STARTING,
    ),
    "an engine is missing": (lambda it: replace(it, engines=it.engines[:2]), 1, Reason.ENGINES_STARTING),
    "a door does not answer": (
        lambda it: exchanged(it, replace(it.engines[1], boot=None, facts=None, silent="its door is silent")),
        1,
        Reason.ENGINE_NOT_ANSWERING,
    ),
    "a server does not answer": (
        lambda it: exchanged(it, replace(it.engines[1], facts=None, silent="its server is silent")),
        1,
        Reason.ENGINE_NOT_ANSWERING,
    ),
    "a door is tainted": (_door(DoorState.TAINTED), 1, Reason.DOOR_TAINTED),
    "a door is draining": (_door(DoorState.DRAINING), 1, Reason.ENGINES_STARTING),
    "less fits than the minimum": (
        _spec(contextLength={"minimumTokens": 1004}),
        2,
        Reason.MINIMUM_CONTEXT_DOES_NOT_FIT,
    ),
    "less fits than is required": (
        _spec(contextLength={"policy": "RequireFit"}),
        2,
        Reason.REQUESTED_CONTEXT_DOES_NOT_FIT,
    ),
    "no prompt fits": (_spec(contextLength={"reserveTokens": 1000}), 2, Reason.NO_CONTEXT_FITS),
    "a pool is not known": (
        lambda it: exchanged(
            it,
            replace(it.engines[1], boot=replace(it.engines[1].boot, ranks=())),  # type: ignore[type-var]
        ),
        2,
        Reason.POOLS_NOT_MEASURED,
    ),
    "a pool cannot be": (_rank(pool_tokens=0), 2, Reason.POOLS_NOT_MEASURED),
    "decode does not say what it keeps": (
        lambda it: exchanged(
            it,
            replace(decode(), facts=replace(decode().facts, reserved_decode_tokens=None)),  # type: ignore[type-var]
        ),
        2,
        Reason.POOLS_NOT_MEASURED,
    ),
    "pages differ": (_rank(page_size=16), 2, Reason.PAGE_SIZES_DIFFER),
    "an engine takes more than its pool": (_rank(boot_input_limit=4090), 2, Reason.ENGINE_LIMIT_ABOVE_POOL),
    "a checksum is off": (_facts(kv_checksum=False), 3, Reason.CHECKSUM_OFF),
    "a checksum is not known": (_facts(kv_checksum=None), 3, Reason.CHECKSUM_NOT_KNOWN),
    "prompts are truncated": (_facts(auto_truncates=True), 3, Reason.PROMPTS_TRUNCATED),
    "whether prompts are truncated is not known": (_facts(auto_truncates=None), 3, Reason.PROMPTS_TRUNCATED),
    "a check failed": (lambda it: proven(it, it.engines[1], verdicts=FAILED), 4, Reason.CHECK_FAILED),
    "a check was not judged": (lambda it: proven(it, it.engines[1], verdicts=NOT_JUDGED), 4, Reason.CHECK_NOT_JUDGED),
}


@pytest.fixture
def ready() -> Observed:
    """One step before admission: all is proven, the doors take canaries."""
    proving = pool()
    return done(proven(proving), ProveFronts(proving.engines, proving.routers, CAP))


def test_with_every_gate_passed_the_doors_open(ready: Observed) -> None:
    """The control of the next test."""
    assert decide(ready).step == Admit(ready.engines, CAP)


@pytest.mark.parametrize("what", ONE_GATE_FAILS)
def test_one_gate_alone_keeps_everybody_out(ready: Observed, what: str) -> None:
    change, index, reason = ONE_GATE_FAILS[what]
    changed = change(ready)
    decision = decide(changed)
    gate = decision.findings[index]
    assert gate.reason is reason
    assert gate.status is not TRUE
    assert (decision.listed, decision.step, decision.serves) == ((), None, False)
    admitted = traffic_admitted(changed, decision)
    assert (admitted.status, admitted.reason) == (FALSE, Reason.NOT_ADMITTED)
    assert str(decision.in_the_way[0].condition) in admitted.message


@pytest.mark.parametrize("what", ONE_GATE_FAILS)
def test_one_gate_alone_keeps_a_new_boot_out_and_the_others_serve_on(what: str) -> None:
    change, _, _ = ONE_GATE_FAILS[what]
    before = serving()
    fresh = proven(exchanged(before, restarted(before.engines[1])))
    assert decide(fresh).step == Admit((fresh.engines[1],), CAP)  # the control
    decision = decide(change(fresh))
    assert decision.serves
    assert "prefill-0" not in named(decision.listed)
    assert "prefill-0" not in named(told(decision.step))
    if what != "decode does not say what it keeps":  # that one takes the open boot's place
        assert "decode-0" in named(decision.listed)
