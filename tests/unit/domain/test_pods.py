"""What a Pod object tells: whether its engine has started, and else what stands in the way, word by word."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvfence.api.v1alpha1.reasons import Reason
from kvfence.domain.pods import QUOTED, Trouble, last_line, pod_facts, quoted

NAME = "chat-prefill-abcdefghij-x2x4z"
IMAGE = "registry.example/sglang:v0.5.23"
DIGEST = "registry.example/sglang@sha256:" + "a" * 64
RUNNING = {"running": {"startedAt": "2026-11-30T19:00:00Z"}}
ENDED: dict[str, Any] = {
    "exitCode": 1,
    "reason": "Error",
    "startedAt": "2026-11-30T19:00:00Z",
    "finishedAt": "2026-11-30T19:00:20Z",
    "message": "Traceback (most recent call last):\n  File x\nValueError: no model at /models/tiny\n",
}
BACK_OFF = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s restarting failed container"}}


def container(name: str = "engine", **changes: Any) -> dict[str, Any]:
    """A container's status while it runs and its startup probe has passed."""
    return {
        "name": name,
        "image": IMAGE,
        "imageID": DIGEST,
        "ready": True,
        "started": True,
        "restartCount": 0,
        "state": RUNNING,
        "lastState": {},
        **changes,
    }


def inject(**changes: Any) -> dict[str, Any]:
    done = {"terminated": {"exitCode": 0, "reason": "Completed"}}
    return container("kvfence-inject", state=done, started=False, **changes)


def pod(*containers: dict[str, Any], **status: Any) -> dict[str, Any]:
    """A pod whose kubelet says that all is well, but for what is given."""
    return {
        "metadata": {"name": NAME, "uid": "uid-1"},
        "status": {
            "phase": "Running",
            "podIP": "10.0.0.7",
            "conditions": [
                {"type": "PodScheduled", "status": "True"},
                {"type": "Ready", "status": "True"},
            ],
            "initContainerStatuses": [inject()],
            "containerStatuses": list(containers) or [container()],
            **status,
        },
    }


def test_a_pod_whose_engine_has_started() -> None:
    facts = pod_facts(pod(), "engine", "prefill")
    assert (facts.name, facts.uid, facts.role, facts.ip) == (NAME, "uid-1", "prefill", "10.0.0.7")
    assert (facts.started, facts.ready, facts.deleting, facts.trouble) == (True, True, False, None)
    assert facts.image_id == DIGEST


WAITING: dict[str, Any] = {"ready": False, "started": False}
LOOKED_AT = "It left no words: look at its log (kubectl logs --previous)."
KILLED = (
    f"Container engine of pod {NAME} was killed for using more memory than its limit. Raise "
    "roles[].template.spec.containers[].resources.limits.memory."
)


def no_image(image: str, why: str) -> str:
    return (
        f"Pod {NAME} cannot get image {image} ({why}). Correct the image, or give the pool a pull secret "
        "(roles[].template.spec.imagePullSecrets)."
    )


def not_made(why: str) -> str:
    return (
        f"Container engine of pod {NAME} cannot be made ({why}). Look at what the pool names: Secrets, volumes, "
        "securityContext."
    )


def ended(code: int, restarts: int, words: str, which: str = "engine") -> str:
    return f"Container {which} of pod {NAME} ended with status {code} (restarts so far: {restarts}). {words}"


TROUBLES: dict[str, tuple[dict[str, Any], Reason, str]] = {
    "an image that is not there": (
        pod(
            container(
                **WAITING,
                state={"waiting": {"reason": "ErrImagePull", "message": "failed to resolve: not found"}},
            )
        ),
        Reason.IMAGE_NOT_PULLED,
        no_image(IMAGE, "ErrImagePull: failed to resolve: not found"),
    ),
    "an image that is not there, and the kubelet waits": (
        pod(
            container(
                **WAITING,
                state={"waiting": {"reason": "ImagePullBackOff", "message": f'Back-off pulling image "{IMAGE}"'}},
            )
        ),
        Reason.IMAGE_NOT_PULLED,
        no_image(IMAGE, f'ImagePullBackOff: Back-off pulling image "{IMAGE}"'),
    ),
    "the injection's image that is not there": (
        pod(
            container(**WAITING, state={"waiting": {"reason": "PodInitializing"}}),
            initContainerStatuses=[
                container(
                    "kvfence-inject",
                    **WAITING,
                    image="registry.example/kvfence-engine:0.1.0",
                    state={"waiting": {"reason": "ErrImagePull", "message": "denied"}},
                )
            ],
        ),
        Reason.IMAGE_NOT_PULLED,
        no_image("registry.example/kvfence-engine:0.1.0", "ErrImagePull: denied"),
    ),
    "a Secret that is not there": (
        pod(
            container(
                **WAITING,
                state={"waiting": {"reason": "CreateContainerConfigError", "message": 'secret "hf" not found'}},
            )
        ),
        Reason.CONTAINER_NOT_CREATED,
        not_made('CreateContainerConfigError: secret "hf" not found'),
    ),
    "a reason that this operator has never heard of": (
        pod(container(**WAITING, state={"waiting": {"reason": "CreatePodSandboxError", "message": "no network"}})),
        Reason.CONTAINER_NOT_CREATED,
        not_made("CreatePodSandboxError: no network"),
    ),
    "a first end, and no second start yet": (
        pod(container(**WAITING, state={"terminated": ENDED})),
        Reason.ENGINES_STARTING,
        ended(1, 0, "It ended with: ValueError: no model at /models/tiny"),
    ),
    "an engine that serves no more and is starting again in place": (
        pod(
            container(
                **WAITING,
                restartCount=1,
                lastState={"terminated": {"exitCode": 137, "reason": "Error"}},
            )
        ),
        Reason.ENGINES_STARTING,
        ended(137, 1, LOOKED_AT),
    ),
    "an engine that ends each time it is started, while the kubelet waits": (
        pod(container(**WAITING, restartCount=1, state=BACK_OFF, lastState={"terminated": ENDED})),
        Reason.ENGINE_FAILED,
        ended(1, 1, "It ended with: ValueError: no model at /models/tiny"),
    ),
    "an engine that ends each time it is started, while it runs": (
        pod(container(**WAITING, restartCount=2, lastState={"terminated": ENDED})),
        Reason.ENGINE_FAILED,
        ended(1, 2, "It ended with: ValueError: no model at /models/tiny"),
    ),
    "an engine that ends well each time it is started": (
        pod(
            container(
                **WAITING, restartCount=3, state=BACK_OFF, lastState={"terminated": {"exitCode": 0, "message": ""}}
            )
        ),
        Reason.ENGINE_FAILED,
        ended(0, 3, LOOKED_AT),
    ),
    "an engine that is killed for its memory once": (
        pod(container(**WAITING, lastState={"terminated": {**ENDED, "exitCode": 137, "reason": "OOMKilled"}})),
        Reason.ENGINES_STARTING,
        KILLED,
    ),
    "an engine that is killed for its memory each time": (
        pod(
            container(
                **WAITING,
                restartCount=1,
                state=BACK_OFF,
                lastState={"terminated": {"exitCode": 137, "reason": "OOMKilled"}},
            )
        ),
        Reason.ENGINE_OUT_OF_MEMORY,
        KILLED,
    ),
    "an injection that fails": (
        pod(
            container(**WAITING, imageID="", state={"waiting": {"reason": "PodInitializing"}}),
            initContainerStatuses=[
                container(
                    "kvfence-inject",
                    **WAITING,
                    restartCount=4,
                    state=BACK_OFF,
                    lastState={"terminated": {"exitCode": 1, "message": "cp: no space left on device"}},
                )
            ],
        ),
        Reason.ENGINE_FAILED,
        ended(1, 4, "It ended with: cp: no space left on device", "kvfence-inject"),
    ),
    "a pod without a node": (
        {
            "metadata": {"name": NAME},
            "status": {
                "phase": "Pending",
                "conditions": [
                    {
                        "type": "PodScheduled",
                        "status": "False",
                        "reason": "Unschedulable",
                        "message": "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.",
                    }
                ],
            },
        },
        Reason.POD_NOT_SCHEDULED,
        f"Pod {NAME} has no node: 0/3 nodes are available: 3 Insufficient nvidia.com/gpu.",
    ),
    "a pod without a node, and nobody says why": (
        {"metadata": {"name": NAME}, "status": {"conditions": [{"type": "PodScheduled", "status": "False"}]}},
        Reason.POD_NOT_SCHEDULED,
        f"Pod {NAME} has no node: the scheduler does not say why.",
    ),
    "a container beside the main one that does not come up": (
        pod(
            container(),
            container(
                "front",
                **WAITING,
                state={"waiting": {"reason": "ErrImagePull", "message": "not found"}},
                image="nginx:1",
            ),
        ),
        Reason.IMAGE_NOT_PULLED,
        no_image("nginx:1", "ErrImagePull: not found"),
    ),
}


@pytest.mark.parametrize("what", TROUBLES)
def test_what_stands_in_the_way_is_said(what: str) -> None:
    given_pod, reason, words = TROUBLES[what]
    assert pod_facts(given_pod, "engine").trouble == Trouble(reason, words)


@pytest.mark.parametrize(
    "one",
    [
        pod(),
        pod(container(**WAITING)),
        pod(container(**WAITING, state={"waiting": {"reason": "ContainerCreating"}})),
        pod(container(**WAITING, state={"waiting": {"reason": "PodInitializing"}}), initContainerStatuses=[]),
        pod(container(restartCount=7, lastState={"terminated": ENDED})),
        pod(container(**WAITING, lastState={"terminated": {"exitCode": 0}})),
        {"metadata": {"name": NAME}, "status": {"phase": "Pending"}},
    ],
    ids=[
        "all is well",
        "the model is loading",
        "being created",
        "being initialised",
        "well again after restarts",
        "started anew after an end without a fault",
        "nobody has looked at it yet",
    ],
)
def test_nothing_stands_in_the_way(one: dict[str, Any]) -> None:
    assert pod_facts(one, "engine").trouble is None


def test_a_crash_loop_is_said_in_the_same_words_from_the_second_end_to_the_next_start() -> None:
    """Else each turn of the loop would be two writes of the status."""
    waiting = pod(container(**WAITING, restartCount=2, state=BACK_OFF, lastState={"terminated": ENDED}))
    running = pod(container(**WAITING, restartCount=2, lastState={"terminated": ENDED}))
    ended = pod(container(**WAITING, restartCount=2, state={"terminated": ENDED}, lastState={"terminated": ENDED}))
    assert len({pod_facts(one, "engine").trouble for one in (waiting, running, ended)}) == 1


@pytest.mark.parametrize(
    "one",
    [
        pod(container(**WAITING, restartCount=1, lastState={"terminated": ENDED})),
        pod(container(started=True, state={"terminated": ENDED})),
        pod(container(started=True, state=BACK_OFF)),
        pod(container(started=None)),
        pod(container(started="yes")),
        pod(container("another")),
        pod(containerStatuses=None),
        {},
    ],
)
def test_an_engine_whose_startup_probe_did_not_pass_in_this_run_has_not_started(one: dict[str, Any]) -> None:
    assert not pod_facts(one, "engine").started


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"deletionTimestamp": "2026-11-30T19:00:00Z"}, {}),
        ({}, {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."}),
        ({}, {"phase": "Succeeded"}),
    ],
)
def test_a_pod_that_is_deleted_evicted_or_over_counts_as_going(changes: dict[str, Any], status: dict[str, Any]) -> None:
    one = pod(**status)
    one["metadata"] |= changes
    assert pod_facts(one, "engine").deleting


def test_nothing_from_a_log_makes_a_long_or_a_many_lined_message() -> None:
    text = "first\n" + "\x1b[31mred\u202e " + "x" * 5000 + "\n \n\t\n"
    trouble = pod_facts(pod(container(**WAITING, state={"terminated": {**ENDED, "message": text}})), "engine").trouble
    assert trouble is not None
    assert trouble.words.isprintable()
    assert len(trouble.words) < QUOTED + 150
    assert trouble.words.endswith("xxx...")
    assert last_line("\n\n") == ""


@given(st.text())
def test_what_is_quoted_is_one_line_of_bounded_length(text: str) -> None:
    assert quoted(text).isprintable()
    assert len(quoted(text)) <= QUOTED
    assert last_line(text).isprintable()


ODD: list[Any] = [None, [], {}, "", "text", 7, True, [None], ["text"], [{}], {"a": None}]


@given(st.sampled_from([one for one, _, _ in TROUBLES.values()]), st.data())
def test_a_pod_with_anything_missing_or_odd_in_it_is_still_read(one: dict[str, Any], data: st.DataObject) -> None:
    made = copy.deepcopy(one)
    node: Any = made
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        key = data.draw(st.sampled_from(keys))
        below = node[key]
        if isinstance(below, dict | list) and below and data.draw(st.booleans()):
            node = below
            continue
        if data.draw(st.booleans()):
            del node[key]
        else:
            node[key] = data.draw(st.sampled_from(ODD))
        break
    facts = pod_facts(made, "engine", "prefill")
    assert facts.ip is None or isinstance(facts.ip, str)
    assert isinstance(facts.name + facts.uid + facts.image_id, str)
    assert facts.trouble is None or len(facts.trouble.words) < 5 * QUOTED
