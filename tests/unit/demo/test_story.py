"""The story follows what the API says: each chapter once, in order, and none before its time."""

from __future__ import annotations

from e2e.demo.story import CHAPTERS, Story
from e2e.demo.view import view
from tests.unit.demo.api_objects import CONDITIONS, condition, pod, pods, pool

GATES = ("EngineAllowed", "RolesReady", "ContextFits", "IntegrityEnforced", "IsolationVerified", "TrafficAdmitted")
NOT_YET = condition("TrafficAdmitted", "False", "NotAdmitted")


def test_each_chapter_is_told_when_the_api_says_so_and_only_once() -> None:
    story = Story()
    told: list[list[str]] = []
    for one in (
        view(pool(), []),
        view(pool(sizes=False), [pod("prefill")]),
        view(pool(sizes=False), pods()),
        view(pool(sizes=False), pods()),
        view(pool("RolesReady", sizes=False), pods()),
        view(pool("RolesReady"), pods()),
        view(pool("RolesReady", "ContextFits"), pods()),
        view(pool(*GATES[:4], others=(NOT_YET,)), pods()),
        view(pool(*GATES[:4], others=(condition("TrafficAdmitted", "False", "RouterNotReady"),)), pods()),
        view(pool(*GATES[:5], others=(condition("TrafficAdmitted", "False", "Admitting"),)), pods()),
        view(pool(*GATES), pods(ready=True)),
        view(pool(*CONDITIONS), pods()),
        view(pool(*CONDITIONS), pods(ready=True)),
        view(pool(*CONDITIONS), pods(ready=True)),
    ):
        assert not story.over or one.holds("Ready")
        told.append([line.text[:17] for line in story.news(one)])
    assert told == [
        [],
        [],
        ["The engines' cont"],
        [],
        ["Both engines have"],
        ["Measured, as the "],
        ["Capped: 1,003 of "],
        ["Verified on the r"],
        ["Proven as a pair:"],
        ["Proven with its r"],
        [],
        [],
        ["Admitted: the doo"],
        [],
    ]
    assert story.over


def test_what_happened_between_two_looks_is_told_with_the_next_one_and_in_order() -> None:
    story = Story()
    lines = story.news(view(pool(*CONDITIONS), pods(ready=True)))
    assert len(lines) == len(CHAPTERS)
    assert story.over
    assert lines[0].text == "The engines run already, from an earlier run:"


def test_a_later_chapter_waits_for_an_earlier_one() -> None:
    assert Story().news(view(pool("RolesReady"), pods(running=False))) == []


def test_engines_that_start_are_said_to_be_closed_and_nothing_is_said_to_be_open() -> None:
    (line,) = Story().news(view(pool(sizes=False), pods()))
    assert line.details == (
        "pod first-pool-decode (closed: not Ready)",
        "pod first-pool-prefill (closed: not Ready)",
    )


def test_what_was_verified_names_version_checksum_and_door_and_says_closed_only_while_it_is() -> None:
    for ready, closed in ((False, True), (True, False)):
        lines = Story().news(view(pool(*GATES[:4]), pods(ready=ready)))
        (line,) = [one for one in lines if one.text.startswith("Verified")]
        said = "\n".join(line.details)
        assert "SGLang 0.5.23" in said
        assert "All running engines report it as on: 2 of 2." in said
        assert "kvfence-engine 0.1.0 is injected." in said
        assert ("lets no user in yet" in said) is closed


def test_what_was_judged_from_an_older_spec_is_not_told() -> None:
    changed = pool(*CONDITIONS)
    changed["metadata"]["generation"] = 2
    seen = view(changed, pods())
    assert not seen.holds("RolesReady")
    assert len(Story().news(seen)) == 1, "the pods run, and nothing is known of the new spec"


def test_a_pod_that_ends_counts_no_more() -> None:
    ending = pod("prefill", ready=True)
    ending["metadata"]["deletionTimestamp"] = "2026-11-30T20:00:00Z"
    assert [one.name for one in view(pool(), [ending, pod("decode")]).pods] == ["first-pool-decode"]


def test_a_pod_that_cannot_start_says_why() -> None:
    pull = {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}
    broken = pod("prefill", initContainerStatuses=[{"name": "kvfence-inject", "state": pull}])
    (seen,) = view(pool(), [broken]).pods
    assert seen.words == "ImagePullBackOff: no such image"
    unscheduled = [{"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available"}]
    waiting = pod("prefill", phase="Pending", containerStatuses=[], conditions=unscheduled)
    (seen,) = view(pool(), [waiting]).pods
    assert seen.words == "Pending: 0/1 nodes are available"
