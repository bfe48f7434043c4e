"""What the condition RolesReady says: how many engines have started, and what stands in the way of the others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kvfence.api.v1alpha1.conditions import ConditionStatus, ConditionType
from kvfence.api.v1alpha1.pool import RoleType
from kvfence.api.v1alpha1.reasons import Reason
from kvfence.domain.engines import DoorState, Engine
from kvfence.domain.findings import Finding
from kvfence.domain.observed import Observed, Role
from kvfence.domain.pods import Trouble
from kvfence.domain.roles_ready import roles_ready
from tests.unit.domain.pools_of_engines import decode, exchanged, pool, prefill, starting, with_door

TRUE, FALSE = ConditionStatus.TRUE, ConditionStatus.FALSE
NO_IMAGE = Trouble(Reason.IMAGE_NOT_PULLED, "Pod x cannot get image y.")
NO_NODE = Trouble(Reason.POD_NOT_SCHEDULED, "Pod x has no node.")
ENDED_ONCE = Trouble(Reason.ENGINES_STARTING, "Container engine of pod x ended with status 1.")
STARTED = "Started: 1 of 1 of role decode, 1 of 2 of role prefill."


def said(observed: Observed, *, allowed: bool = True) -> tuple[ConditionStatus, Reason, str]:
    finding = roles_ready(observed, allowed=allowed)
    assert finding.condition is ConditionType.ROLES_READY
    return finding.status, finding.reason, finding.message


def but(one: Engine, **changes: object) -> Engine:
    return replace(one, **changes)  # type: ignore[arg-type]


STATES: dict[str, tuple[Observed, ConditionStatus, Reason, str]] = {
    "all have started": (pool(), TRUE, Reason.ENGINES_STARTED, "All 3 engines have started."),
    "one is loading its model": (
        exchanged(pool(), starting(prefill(1))),
        FALSE,
        Reason.ENGINES_STARTING,
        STARTED,
    ),
    "one has no image": (
        exchanged(pool(), starting(prefill(1), NO_IMAGE)),
        FALSE,
        Reason.IMAGE_NOT_PULLED,
        f"{STARTED} Pod x cannot get image y.",
    ),
    "one ended once and is started again": (
        exchanged(pool(), starting(prefill(1), ENDED_ONCE)),
        FALSE,
        Reason.ENGINES_STARTING,
        f"{STARTED} Container engine of pod x ended with status 1.",
    ),
    "Kubernetes makes no pods": (
        replace(pool(decode()), not_created=("exceeded quota",)),
        FALSE,
        Reason.PODS_NOT_CREATED,
        f"{STARTED.replace('1 of 2', '0 of 2')} Kubernetes makes no pod: exceeded quota.",
    ),
    "what needs a person comes before what may pass": (
        exchanged(pool(), starting(decode(), NO_NODE), starting(prefill(1), NO_IMAGE)),
        FALSE,
        Reason.IMAGE_NOT_PULLED,
        "Started: 0 of 1 of role decode, 1 of 2 of role prefill. Pod x cannot get image y. Pod x has no node.",
    ),
    "trouble beside an engine that answers does not hide why another one does not": (
        exchanged(
            pool(),
            but(prefill(0), pod=replace(prefill(0).pod, trouble=NO_IMAGE)),
            but(prefill(1), facts=None, silent="its server does not answer (late)"),
        ),
        FALSE,
        Reason.ENGINE_NOT_ANSWERING,
        (
            f"{STARTED} Pod prefill-1 has started, but its server does not answer (late). It is asked again; if it "
            "stays so, look at its log and at NetworkPolicies between the operator and the pool."
        ),
    ),
    "one was never asked": (
        exchanged(pool(), but(prefill(1), boot=None, facts=None)),
        FALSE,
        Reason.ENGINE_NOT_ANSWERING,
        (
            f"{STARTED} Pod prefill-1 has started, but it was not asked yet. It is asked again; if it stays so, look "
            "at its log and at NetworkPolicies between the operator and the pool."
        ),
    ),
    "one is draining": (
        exchanged(pool(), with_door(prefill(1), DoorState.DRAINING)),
        FALSE,
        Reason.ENGINES_STARTING,
        f"{STARTED} Pod prefill-1 ends, and lets nobody in any more.",
    ),
    "one is tainted": (
        exchanged(pool(), with_door(prefill(1), DoorState.TAINTED), starting(decode(), NO_IMAGE)),
        FALSE,
        Reason.DOOR_TAINTED,
        (
            "Started: 0 of 1 of role decode, 1 of 2 of role prefill. A defence of pod prefill-1 tripped, and its door "
            "is shut. Condition IsolationVerified or its log says what was seen; deleting the pod starts another one."
        ),
    ),
    "no pod is there yet": (
        replace(pool(), engines=()),
        FALSE,
        Reason.ENGINES_STARTING,
        "Started: 0 of 1 of role decode, 0 of 2 of role prefill.",
    ),
    "the room is taken by the revision before": (
        replace(pool(), engines=(), leaving=2),
        FALSE,
        Reason.OLD_REVISION_LEAVING,
        "2 engines of the revision before finish their requests; the new ones start then.",
    ),
}


@pytest.mark.parametrize("what", STATES)
def test_a_person_can_see_how_far_it_is(what: str) -> None:
    observed, status, reason, message = STATES[what]
    assert said(observed) == (status, reason, message)


def test_what_may_not_run_is_not_waited_for() -> None:
    nothing = replace(pool(), engines=(), runs=False)
    assert said(nothing, allowed=False)[1] is Reason.NOT_STARTED
    assert said(nothing, allowed=True)[1] is Reason.ENGINES_STARTING
    assert said(pool(), allowed=False)[1] is Reason.ENGINES_STARTED


def test_one_engine_more_than_asked_for_counts_for_its_own_role_alone() -> None:
    more = pool(decode(0), decode(1), prefill(0))
    assert said(more) == (
        FALSE,
        Reason.ENGINES_STARTING,
        "Started: 2 of 1 of role decode, 1 of 2 of role prefill.",
    )


@pytest.mark.parametrize("door", [DoorState.TAINTED, DoorState.DRAINING])
def test_a_shut_door_beyond_those_asked_for_is_told_of_too(door: DoorState) -> None:
    """Nothing is let in beside it, and that would have no reason."""
    more = pool(decode(), prefill(0), prefill(1), with_door(prefill(2), door))
    assert said(more)[0] is FALSE
    assert "prefill-2" in said(more)[2]


@pytest.mark.parametrize("kind", ["troubled", "silent", "tainted", "draining"])
def test_a_message_does_not_grow_with_the_pool(kind: str) -> None:
    def finding(count: int) -> Finding:
        engines = []
        for number in range(count):
            one = prefill(number)
            words = Trouble(Reason.ENGINE_FAILED, f"Container engine of pod {one.name} ended.")
            engines.append(
                {
                    "troubled": starting(one, words),
                    "silent": replace(one, facts=None, silent="it is silent"),
                    "tainted": with_door(one, DoorState.TAINTED),
                    "draining": with_door(one, DoorState.DRAINING),
                }[kind]
            )
        roles = (Role("prefill", RoleType.PREFILL, count),)
        return roles_ready(replace(pool(*engines), roles=roles), allowed=True)

    assert len(finding(1000).message) < len(finding(4).message) + 20
    assert "And 997 more." in finding(1000).message
