"""The status of a pool: what did not change is not written again, and nothing is advertised before admission."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from kvfence.api.v1alpha1.conditions import Condition, ConditionStatus
from kvfence.api.v1alpha1.pool import RoleType
from kvfence.api.v1alpha1.reasons import Reason
from kvfence.api.v1alpha1.status import ContextStatus, PoolStatus, RoleStatus
from kvfence.domain.decisions import decide
from kvfence.domain.observed import Observed, Role
from kvfence.domain.pods import Trouble
from kvfence.domain.reporting import MESSAGE_LIMIT, pool_status
from tests.unit.domain.pools_of_engines import (
    CAP,
    FAILED,
    FRONT_FAILED,
    REVISION,
    decode,
    done,
    exchanged,
    pool,
    prefill,
    proven,
    restarted,
    router,
    serving,
    spec,
    starting,
    with_fronts,
)

NOW = datetime(2026, 11, 30, 19, 0, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
TROUBLE = Trouble(Reason.ENGINE_FAILED, "It ended.")
STATES: dict[str, Observed] = {
    "nothing there": replace(pool(), engines=(), routers=(), runs=False),
    "loading": pool(*(starting(one) for one in pool().engines)),
    "failing": exchanged(pool(), starting(prefill(0), TROUBLE)),
    "measured": pool(),
    "check failed": proven(pool(), verdicts=FAILED),
    "too small": replace(pool(), spec=spec(contextLength={"policy": "RequireFit"})),
    "contradictory": pool(decode(), prefill(0), prefill(1, page=16)),
    "serving": serving(),
    "serving with a new boot": exchanged(serving(), restarted(prefill(0))),
    "serving without decode": exchanged(serving(), starting(decode())),
    "serving below the minimum": replace(serving(), spec=spec(contextLength={"minimumTokens": 2000})),
    "a name is taken": replace(serving(), taken=("Service chat",)),
}


def status(observed: Observed, now: datetime = NOW, generation: int = 3) -> PoolStatus:
    return pool_status(observed, decide(observed), generation, now)


def stored(given: PoolStatus) -> PoolStatus:
    """The status as the API server gives it back."""
    return PoolStatus.model_validate_json(given.model_dump_json(by_alias=True, exclude_none=True))


def condition(given: PoolStatus, kind: str) -> Condition:
    return next(one for one in given.conditions if one.type == kind)


@pytest.mark.parametrize("what", STATES)
def test_an_unchanged_pool_gives_an_equal_status(what: str) -> None:
    first = status(STATES[what])
    seen = replace(STATES[what], status=stored(first))
    again = status(seen, LATER)
    assert again == seen.status
    assert stored(status(replace(seen, status=stored(again)), LATER + timedelta(days=1))) == again


def test_the_time_of_a_transition_moves_with_the_status_alone() -> None:
    loading = replace(STATES["loading"], status=stored(status(STATES["loading"])))
    failing = exchanged(loading, starting(prefill(0), TROUBLE))
    after = status(failing, LATER)
    ready = condition(after, "RolesReady")
    assert ready.reason == Reason.ENGINE_FAILED
    assert ready.last_transition_time == NOW
    assert condition(after, "Stalled").status is ConditionStatus.TRUE
    assert condition(after, "Stalled").last_transition_time == LATER
    started = exchanged(replace(failing, status=stored(after)), *pool().engines)
    assert condition(status(started, LATER), "RolesReady").last_transition_time == LATER


def test_a_new_generation_is_reported_in_every_condition() -> None:
    after = status(replace(serving(), status=stored(status(serving()))), LATER, generation=4)
    assert after.observed_generation == 4
    assert {one.observed_generation for one in after.conditions} == {4}
    assert {one.last_transition_time for one in after.conditions} == {NOW}


def test_nothing_is_advertised_before_admission_and_the_cap_is_from_then_on() -> None:
    observed = pool()
    advertised = []
    for _ in range(5):
        observed = replace(observed, status=stored(status(observed)))
        decision = decide(observed)
        context = observed.status.context_length
        advertised.append((context.advertised_tokens if context else None, observed.status.current_revision))
        if decision.step is not None:
            observed = done(observed, decision.step)
    assert advertised == [(0, None), (0, None), (0, None), (CAP, REVISION), (CAP, REVISION)]


def test_the_pool_that_limits_is_named_and_its_time_stays_while_it_does() -> None:
    made = status(serving()).context_length
    assert made == ContextStatus(
        requested_tokens=4096,
        advertised_tokens=1003,
        limiting_role="prefill",
        limiting_pod="prefill-0",
        kv_pool_tokens=1024,
        measurement_time=NOW,
    )
    smaller = exchanged(serving(), prefill(1, tokens=900, start=2))
    after = status(replace(smaller, status=stored(status(serving()))), LATER).context_length
    assert after is not None
    assert (after.advertised_tokens, after.limiting_pod, after.measurement_time) == (882, "prefill-1", LATER)


@pytest.mark.parametrize("what", ["serving without decode", "serving below the minimum"])
def test_what_is_on_offer_stays_while_nothing_new_can_be_offered(what: str) -> None:
    observed = replace(STATES[what], status=stored(status(serving())))
    after = status(observed, LATER)
    assert after.context_length is not None
    assert after.context_length.advertised_tokens == CAP
    assert after.current_revision == REVISION


def test_the_revision_that_serves_is_named_and_one_that_comes_up_advertises_nothing() -> None:
    coming = replace(pool(), status=PoolStatus(current_revision="before"), revision=REVISION)
    waiting = status(replace(coming, engines=(), leaving=3, runs=False))
    assert (waiting.current_revision, waiting.update_revision) == (None, REVISION), "nobody is served by it any more"
    after = status(coming)
    assert (after.current_revision, after.update_revision) == (None, REVISION)
    assert after.context_length is not None
    assert after.context_length.advertised_tokens == 0
    failing = status(replace(coming, engines=()))
    assert failing.context_length is None


@pytest.mark.parametrize("known", [PoolStatus(), PoolStatus(current_revision="another")])
def test_what_serves_is_written_anew_into_a_status_that_lost_it(known: PoolStatus) -> None:
    after = status(replace(serving(), status=known))
    assert after.current_revision == REVISION
    assert after.context_length is not None
    assert after.context_length.advertised_tokens == CAP


def test_nothing_serves_and_nothing_is_advertised_once_users_were_cut_off() -> None:
    after = status(with_fronts(serving(), FRONT_FAILED))
    assert after.current_revision is None
    assert after.context_length is not None
    assert after.context_length.advertised_tokens == 0


def test_the_engines_of_a_role_are_counted_and_not_listed() -> None:
    observed = exchanged(serving(), restarted(prefill(0)), starting(prefill(2)), prefill(1, tokens=900))
    after = {role.name: role for role in status(observed).roles}
    assert after["prefill"] == RoleStatus(
        name="prefill",
        replicas=3,
        ready_replicas=2,
        admitted_replicas=0,
        engine_version="0.5.23",
        image_digest="sha256:" + "a" * 64,
        kv_pool_tokens=900,
    )
    assert after["decode"].admitted_replicas == 1


def test_what_engines_say_of_themselves_is_cut_to_what_a_status_takes() -> None:
    one = prefill(0)
    assert one.facts is not None
    long = replace(one, facts=replace(one.facts, version="9" * 500), pod=replace(one.pod, image_id="x" * 500))
    role = status(exchanged(pool(), long)).roles[1]
    assert role.engine_version in ("0.5.23", "9" * 64)
    assert len(role.image_digest or "") <= 128


def test_a_status_does_not_grow_with_the_pool() -> None:
    def size(count: int) -> int:
        engines = [
            starting(prefill(number), Trouble(Reason.ENGINE_FAILED, f"Pod {number}: ended.")) for number in range(count)
        ]
        roles = (Role("decode", RoleType.DECODE, 1), Role("prefill", RoleType.PREFILL, count))
        return len(status(replace(pool(decode(), *engines), roles=roles)).model_dump_json())

    assert size(1000) < size(4) + 300


def test_a_message_from_outside_is_cut() -> None:
    refused = replace(serving(), routers=(router(ready=False, trouble=Trouble(Reason.ENGINE_FAILED, "x" * 100_000)),))
    assert max(len(one.message) for one in status(refused).conditions) == MESSAGE_LIMIT


def test_a_status_that_a_newer_operator_wrote_is_brought_to_ours_once() -> None:
    newer = PoolStatus.model_validate(
        {
            "conditions": [
                {"type": "Quarantined", "status": "False", "reason": "No", "message": "", "lastTransitionTime": NOW}
            ],
            "somethingNew": 1,
        }
    )
    first = status(replace(with_fronts(proven(pool())), status=newer))
    assert "Quarantined" not in {one.type for one in first.conditions}
    assert status(replace(with_fronts(proven(pool())), status=stored(first)), LATER) == stored(first)
