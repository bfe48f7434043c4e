"""The conditions that sum up, and TrafficAdmitted: what a person reads first, and whether a person is needed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kvfence.api.v1alpha1.conditions import ConditionStatus, ConditionType
from kvfence.api.v1alpha1.reasons import Reason
from kvfence.domain.decisions import decide
from kvfence.domain.engines import DoorState, Engine
from kvfence.domain.findings import Finding
from kvfence.domain.observed import Observed
from kvfence.domain.pods import Trouble
from kvfence.domain.summary import all_conditions, plugin_outdated, secured, unreadable
from kvfence.domain.traffic_admitted import traffic_admitted
from tests.unit.domain.pools_of_engines import (
    FAILED,
    FRONT_FAILED,
    FRONT_NOT_JUDGED,
    NOT_JUDGED,
    decode,
    exchanged,
    nonces,
    pool,
    prefill,
    proven,
    restarted,
    router,
    serving,
    spec,
    starting,
    with_door,
    with_fronts,
)

TRUE, FALSE, UNKNOWN = ConditionStatus.TRUE, ConditionStatus.FALSE, ConditionStatus.UNKNOWN
IMAGE = "registry.example/sglang:v0.5.23"
ENDS = Trouble(Reason.ENGINE_FAILED, "Container engine of pod prefill-0 ended with status 1.")
ENDED_ONCE = Trouble(Reason.ENGINES_STARTING, "Container engine of pod prefill-0 ended with status 137.")
NO_NODE = Trouble(Reason.POD_NOT_SCHEDULED, "Pod prefill-0 has no node.")
UNDECLARED = spec(engine={"sglang": {"image": IMAGE}})


def conditions(observed: Observed) -> dict[ConditionType, Finding]:
    return {finding.condition: finding for finding in all_conditions(observed, decide(observed))}


def canary(observed: Observed) -> Observed:
    return exchanged(observed, *(with_door(one, DoorState.CANARY) for one in observed.engines))


def refusing(observed: Observed, one: Engine) -> Observed:
    known = replace(observed.known, refusals={nonces(one): "the keys are not there yet"})
    return replace(observed, known=known)


REFUSED = refusing(canary(with_fronts(proven(pool()))), prefill(0))
STUCK: dict[str, tuple[Observed, Reason | None, bool]] = {
    "loading its models": (pool(*(starting(one) for one in pool().engines)), Reason.ENGINES_STARTING, False),
    "loading, with a version that is not declared": (
        replace(pool(*(starting(one) for one in pool().engines)), spec=UNDECLARED),
        Reason.ENGINES_STARTING,
        False,
    ),
    "an engine that ends each time": (exchanged(pool(), starting(prefill(0), ENDS)), Reason.ENGINE_FAILED, True),
    "an engine that ended once": (
        exchanged(serving(), starting(prefill(0), ENDED_ONCE)),
        Reason.ENGINES_STARTING,
        False,
    ),
    "a pod without a node": (exchanged(pool(), starting(prefill(0), NO_NODE)), Reason.POD_NOT_SCHEDULED, False),
    "an engine that does not answer": (
        exchanged(pool(), replace(prefill(0), facts=None, silent="its server is late")),
        Reason.ENGINE_NOT_ANSWERING,
        False,
    ),
    "being proven": (pool(), Reason.PROVING, False),
    "a check that was not judged": (proven(pool(), prefill(0), verdicts=NOT_JUDGED), Reason.CHECK_NOT_JUDGED, False),
    "a check that failed": (proven(pool(), prefill(0), verdicts=FAILED), Reason.CHECK_FAILED, True),
    "a front that was not judged": (
        with_fronts(canary(proven(pool())), FRONT_NOT_JUDGED),
        Reason.CHECK_NOT_JUDGED,
        False,
    ),
    "a front that failed": (with_fronts(canary(proven(pool())), FRONT_FAILED), Reason.CHECK_FAILED, True),
    "a door that refused, and is asked again": (REFUSED, Reason.ADMISSION_REFUSED, False),
    "a door that tripped": (exchanged(serving(), with_door(prefill(0), DoorState.TAINTED)), Reason.DOOR_TAINTED, True),
    "a door that drains": (
        exchanged(serving(), with_door(prefill(0), DoorState.DRAINING)),
        Reason.ENGINES_STARTING,
        False,
    ),
    "too little room": (
        replace(pool(), spec=spec(contextLength={"policy": "RequireFit"})),
        Reason.REQUESTED_CONTEXT_DOES_NOT_FIT,
        True,
    ),
    "a version that is too old": (
        replace(pool(), spec=spec(engine={"sglang": {"image": IMAGE, "version": "0.5.19"}})),
        Reason.VERSION_TOO_OLD,
        True,
    ),
    "an object that the API server does not take": (
        replace(serving(), refused=("Deployment chat-prefill-x: it is too long",)),
        Reason.OBJECT_REFUSED,
        True,
    ),
    "a name that is taken comes first": (
        replace(serving(), taken=("Service chat",), refused=("Deployment x: it is too long",)),
        Reason.NAME_TAKEN,
        True,
    ),
    "another image under the same name": (
        exchanged(pool(), replace(prefill(0), pod=replace(prefill(0).pod, image_id="another"))),
        Reason.IMAGES_DIFFER,
        True,
    ),
    "a front that failed while it served": (with_fronts(serving(), FRONT_FAILED), Reason.CHECK_FAILED, True),
    "a name that is taken": (replace(serving(), taken=("Service chat",)), Reason.NAME_TAKEN, True),
    "a new boot beside those that serve": (exchanged(serving(), restarted(prefill(0))), None, False),
}


@pytest.mark.parametrize("what", STUCK)
def test_what_is_said_first_and_whether_a_person_is_needed(what: str) -> None:
    observed, reason, needs_a_person = STUCK[what]
    found = conditions(observed)
    assert found[ConditionType.STALLED].holds is needs_a_person
    if reason is None:
        assert found[ConditionType.READY].holds
        return
    assert (found[ConditionType.READY].status, found[ConditionType.READY].reason) == (FALSE, reason)
    assert found[ConditionType.RECONCILING].status is TRUE
    if needs_a_person:
        assert found[ConditionType.STALLED].reason is reason
        assert found[ConditionType.STALLED].message == found[ConditionType.READY].message


def test_a_pool_that_serves_as_asked_for_has_nothing_left_to_do() -> None:
    found = conditions(serving())
    assert found[ConditionType.READY].reason is Reason.SERVING
    assert found[ConditionType.STALLED].reason is Reason.PROGRESSING
    assert found[ConditionType.RECONCILING].reason is Reason.AS_DECLARED
    abnormal_true = {ConditionType.STALLED, ConditionType.RECONCILING, ConditionType.PLUGIN_OUTDATED}
    assert {kind for kind, finding in found.items() if not finding.holds} == abnormal_true


def test_every_condition_is_there_once_and_ready_is_the_first() -> None:
    kinds = [finding.condition for finding in all_conditions(pool(), decide(pool()))]
    assert kinds[0] is ConditionType.READY
    assert sorted(kinds) == sorted(ConditionType)


def test_who_is_in_the_way_of_a_name_is_said_shortly() -> None:
    taken = replace(pool(), taken=tuple(f"ConfigMap x{number}" for number in range(100)))
    message = conditions(taken)[ConditionType.STALLED].message
    assert "ConfigMap x0, ConfigMap x1, ConfigMap x2. If" in message
    assert len(message) < 300


def test_what_the_api_server_refused_is_said_shortly() -> None:
    refused = replace(pool(), refused=tuple(f"Service x{number}: no" for number in range(100)))
    message = conditions(refused)[ConditionType.STALLED].message
    assert "of the pool: Service x0: no. And 99 more. Correct" in message
    assert len(message) < 300
    one = replace(pool(), refused=("Service x: no",))
    assert "more" not in conditions(one)[ConditionType.STALLED].message


def test_a_weakened_pool_says_so_even_while_it_serves() -> None:
    weak = replace(serving(), spec=spec(integrity={"kvChecksum": "Observe"}))
    assert secured(serving()).holds
    assert (secured(weak).status, secured(weak).reason) == (FALSE, Reason.DEFENCES_WEAKENED)
    assert conditions(weak)[ConditionType.READY].holds


def test_an_older_plugin_is_told_of_and_restarts_nothing() -> None:
    newer = replace(serving(), newest_plugin_version="0.2.0")
    assert not plugin_outdated(serving()).holds
    finding = plugin_outdated(newer)
    assert (finding.status, finding.reason) == (TRUE, Reason.PLUGIN_OLDER)
    assert "set engine.sglang.pluginVersion to 0.2.0" in finding.message
    assert conditions(newer)[ConditionType.READY].holds
    assert decide(newer) == decide(serving())
    assert not plugin_outdated(replace(newer, runs=False)).holds


PINNED = spec(engine={"sglang": {"image": IMAGE, "version": "0.5.23", "pluginVersion": "0.1.0"}})


@pytest.mark.parametrize(
    ("runs", "brings", "outdated"),
    [
        ("0.1.0", "0.2.0", True),
        ("0.9.0", "0.10.0", True),
        ("0.1.0rc1", "0.1.0", True),
        ("0.2.0", "0.1.0", False),  # an older operator
        ("0.10.0", "0.9.0", False),
        ("0.1.0", "0.1.0", False),
        ("nightly", "0.1.0", True),  # they cannot be compared
        ("nightly", "nightly", False),
    ],
)
def test_versions_of_the_plugin_are_compared(runs: str, brings: str, outdated: bool) -> None:
    observed = replace(serving(), plugin_version=runs, newest_plugin_version=brings)
    assert plugin_outdated(observed).holds is outdated


def test_a_plugin_that_the_pool_asks_for_by_its_version_is_not_called_outdated() -> None:
    newer = replace(serving(), newest_plugin_version="0.2.0")
    assert plugin_outdated(newer).holds, "the control"
    assert not plugin_outdated(replace(newer, spec=PINNED)).holds
    assert plugin_outdated(replace(newer, spec=PINNED, plugin_version="0.0.9")).holds, "what runs is not what it asks"


def test_a_pool_that_cannot_be_read_is_not_called_ready_and_needs_a_person() -> None:
    ready, stalled = unreadable("This operator cannot read spec.x.")
    assert (ready.condition, ready.status) == (ConditionType.READY, UNKNOWN)
    assert (stalled.condition, stalled.status) == (ConditionType.STALLED, TRUE)


NO_IMAGE = Trouble(Reason.IMAGE_NOT_PULLED, "Pod router-0 cannot get its image.")


@pytest.mark.parametrize(
    ("observed", "reason", "message"),
    [
        (serving(), Reason.ADMITTED, "Users' requests are let in, to 2 prefill and 1 decode engines."),
        (
            serving(routers=(router(ready=False),)),
            Reason.ROUTER_NOT_READY,
            "No router is ready yet: it needs an engine of each type that it can reach.",
        ),
        (
            serving(routers=(router(ready=False, trouble=NO_IMAGE),)),
            Reason.ROUTER_NOT_READY,
            "Pod router-0 cannot get its image.",
        ),
        (serving(routers=()), Reason.ROUTER_NOT_READY, "No router is ready yet: it needs"),
        (
            exchanged(serving(), *(restarted(one) for one in serving().engines)),
            Reason.NOT_ADMITTED,
            "No engine of type Prefill or Decode is open, so that no request can be answered. Conditions RolesReady",
        ),
        (pool(), Reason.NOT_ADMITTED, "Nobody is let in, since IsolationVerified does not hold (Proving)."),
        (
            replace(exchanged(pool(), starting(prefill(0))), spec=UNDECLARED),
            Reason.NOT_ADMITTED,
            "Nobody is let in, since RolesReady does not hold (EnginesStarting).",
        ),
        (
            replace(canary(proven(pool())), routers=(router(ready=False),)),
            Reason.ADMITTING,
            "The engines are proven. The router takes them up next.",
        ),
        (canary(proven(pool())), Reason.ADMITTING, "All is proven but the front; nobody is let in yet."),
        (
            with_fronts(canary(proven(pool())), FRONT_FAILED),
            Reason.NOT_ADMITTED,
            "Nobody is let in, since IsolationVerified does not hold (CheckFailed).",
        ),
        (
            REFUSED,
            Reason.ADMISSION_REFUSED,
            "The door of pod prefill-0 did not take its admission: the keys are not there yet",
        ),
        (
            refusing(exchanged(proven(serving(), restarted(prefill(0))), restarted(prefill(0))), restarted(prefill(0))),
            Reason.ADMITTED,
            (
                "Users' requests are let in, to 1 prefill and 1 decode engines. The door of pod prefill-0 did not take "
                "its admission: the keys are not there yet"
            ),
        ),
        (
            refusing(exchanged(serving(), restarted(serving().engines[0])), restarted(decode())),
            Reason.NOT_ADMITTED,
            "No engine of type Decode is open",
        ),
        (
            refusing(
                replace(serving(), spec=spec(contextLength={"requestedTokens": 900})), serving().engines[0]
            ),  # takes more than that
            Reason.NOT_ADMITTED,
            "No engine of type Decode is open",
        ),
    ],
)
def test_whether_users_are_let_in_and_what_keeps_them_out(observed: Observed, reason: Reason, message: str) -> None:
    finding = traffic_admitted(observed, decide(observed))
    assert finding.message.startswith(message)
    assert finding.reason is reason
    assert finding.holds is (reason is Reason.ADMITTED)
