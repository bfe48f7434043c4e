from __future__ import annotations

from typing import Any

import pytest

from kvfence.domain.asking import Fault
from kvfence.domain.verdicts import Check, Outcome, Verdict
from kvfence.verify.closed_paths import CLOSED, DISGUISED, ENGINE, ROUTER
from kvfence.verify.front_door import front_passes_needed
from tests.unit.verify.stub_front import CAP, WORKERS, Answer, StubFront, failing, models, saying, workers

MODELS = ("GET", "/v1/models")
COMPLETE = ("POST", "/v1/completions")


def completing(fits: bool, answer: Answer) -> StubFront:
    """Return a front that answers prompts of one kind in its own way."""
    front = StubFront()
    front.broken[COMPLETE] = lambda body: (answer if (len(body["prompt"]) < CAP) is fits else front.complete)(body)
    return front


def assert_failed(verdict: Verdict, *words: str) -> None:
    assert verdict.outcome is Outcome.FAILED, verdict
    assert all(one in verdict.message for one in words), verdict.message
    assert "Do not let anyone in" in verdict.message


def assert_not_judged(verdict: Verdict, *words: str) -> None:
    assert verdict.outcome is Outcome.NOT_JUDGED, verdict
    assert all(one in verdict.message for one in words), verdict.message
    assert "tried again" in verdict.message


# --- a front that works ---


def test_a_front_that_works_passes_without_words() -> None:
    front = StubFront()
    assert front.proven() == Verdict(Check.FRONT_DOOR, Outcome.PASSED, "the front of pod r")
    assert front.passes == set(), "all announced passes are used"


def test_each_prompt_has_its_own_pass_and_one_of_two_long_ones_is_streamed() -> None:
    front = StubFront()
    front.proven()
    assert len({body["kvfence_pass"] for body in front.bodies}) == len(front.bodies) == front_passes_needed() == 3
    assert [body.get("stream", False) for body in front.bodies] == [False, False, True]
    assert all(body["prompt"].count(" ") >= CAP - 7 for body in front.bodies[1:])


def test_every_listed_path_arrives_as_it_is_written() -> None:
    front = StubFront()
    front.proven()
    missing = [place for place in CLOSED if place not in front.asked]
    assert missing == []


def test_the_list_has_each_path_once_and_none_that_is_open() -> None:
    assert len(set(CLOSED)) == len(CLOSED)
    assert {MODELS, COMPLETE, ("POST", "/v1/chat/completions")}.isdisjoint(CLOSED)
    assert {("POST", "/workers"), ("GET", "/get_server_info"), ("POST", "/flush_cache")} <= set(CLOSED)


def test_too_few_passes_are_a_mistake_of_the_caller() -> None:
    front = StubFront(passes={"one"})
    with pytest.raises(ValueError, match="fewer passes than questions"):
        front.proven()


# --- the list of models ---


@pytest.mark.parametrize("said", [CAP - 1, CAP + 1, 4096])
def test_another_length_than_the_cap_is_not_judged_since_the_file_may_lag_and_no_prompt_is_sent(said: int) -> None:
    front = StubFront(broken={MODELS: saying(200, models(said))})
    assert_not_judged(front.proven(), f"says that {said} tokens of context are to be had, and {CAP} are")
    assert front.bodies == []


@pytest.mark.parametrize(
    "said",
    [
        {},
        [],
        b"not json",
        b"[" * 100_000,
        models(None),
        models(str(CAP)),
        models(float(CAP)),
        models(True),
        models(name="another"),
        {"data": models()["data"] * 2},
        {"data": [{"id": "tiny"}]},
    ],
)
def test_a_list_of_models_that_is_not_the_pool_s_fails(said: object) -> None:
    assert_failed(StubFront(broken={MODELS: saying(200, said)}).proven(), "does not list the pool's model, it alone")


@pytest.mark.parametrize("status", [404, 500, 503, 302])
def test_a_front_without_a_list_of_models_is_not_judged(status: int) -> None:
    assert_not_judged(StubFront(broken={MODELS: saying(status)}).proven(), f"answered {status} to GET /v1/models")


def test_a_front_that_cannot_be_reached_is_not_judged() -> None:
    verdict = StubFront(broken={MODELS: failing(Fault.UNREACHABLE)}).proven()
    assert_not_judged(verdict, "could not be reached")


# --- workers ---


@pytest.mark.parametrize("status", ["ready", "not_ready", 5, None])
def test_a_foreign_worker_fails_and_no_prompt_is_sent(status: object) -> None:
    listed = workers(*WORKERS, "http://" + "user:secret" + "@10.9.9.9:666/path?token", status=status)
    front = StubFront(listed=saying(200, listed))
    verdict = front.proven()
    assert_failed(verdict, "workers that are not the pool's: 10.9.9.9:666.")
    assert "secret" not in verdict.message
    assert "token" not in verdict.message
    assert front.bodies == []


@pytest.mark.parametrize("url", [None, 5, ["a"], {}, "", "http://[", "http://a:b", "http://a\x00b:1", "nonsense"])
def test_a_worker_whose_address_cannot_be_read_is_foreign(url: object) -> None:
    assert_failed(StubFront(listed=saying(200, workers(*WORKERS, url))).proven(), "an address that cannot be read")


def test_many_foreign_workers_are_counted() -> None:
    urls = [f"http://10.9.9.{i}:1" for i in range(50)]
    assert_failed(StubFront(listed=saying(200, workers(*urls))).proven(), "10.9.9.2:1 and 47 more")


def test_a_worker_that_was_taken_out_and_drains_is_not_judged() -> None:
    listed = workers(*WORKERS)
    listed["workers"].append({"url": "http://10.0.0.3:30000", "status": "draining"})
    assert_not_judged(StubFront(listed=saying(200, listed)).proven(), "still has workers")


def test_a_worker_that_a_late_list_still_has_is_not_judged_and_one_that_was_enrolled_fails() -> None:
    late = {"url": "http://10.0.0.3:30000", "status": "ready", "labels": {"smg.ai/discovery-provider": "file"}}
    listed = workers(*WORKERS)
    listed["workers"].append(late)
    assert_not_judged(StubFront(listed=saying(200, listed)).proven(), "still has workers")
    for labels in ({}, {"smg.ai/discovery-provider": "kubernetes"}, None, "file"):
        listed["workers"][-1] = late | {"labels": labels}
        assert_failed(StubFront(listed=saying(200, listed)).proven(), "not the pool's: 10.0.0.3:30000")


def test_a_worker_that_is_not_there_yet_is_not_judged() -> None:
    assert_not_judged(StubFront(listed=saying(200, workers(WORKERS[0]))).proven(), "does not know 1 of the pool's")


@pytest.mark.parametrize(
    ("status", "said"),
    [(200, {}), (200, []), (200, b"nope"), (200, {"workers": {}}), (200, {"workers": ["x"]}), (404, workers(*WORKERS))],
)
def test_a_router_that_does_not_list_its_workers_is_not_judged(status: int, said: object) -> None:
    assert_not_judged(StubFront(listed=saying(status, said)).proven(), "without a list of them")


def test_a_router_that_cannot_be_asked_is_not_judged() -> None:
    verdict = StubFront(listed=failing(Fault.TIMED_OUT)).proven()
    assert_not_judged(verdict, "the router gave no complete answer in time to GET /workers")


# --- paths ---


@pytest.mark.parametrize("path", ["/workers", "/get_server_info", "//workers", "/v1/../workers", "/server_info"])
@pytest.mark.parametrize(("method", "status"), [("GET", 200), ("POST", 202), ("POST", 400), ("GET", 503), ("GET", 401)])
def test_a_path_that_is_there_fails_and_is_named(path: str, method: str, status: int) -> None:
    assert path in (*ROUTER, *ENGINE, *DISGUISED)
    verdict = StubFront(broken={(method, path): saying(status)}).proven()
    assert_failed(verdict, f"{method} {path} answers {status}")


def test_of_many_open_paths_some_are_named_and_all_are_counted() -> None:
    front = StubFront(broken={place: saying(200) for place in CLOSED})
    assert_failed(front.proven(), f"GET {ROUTER[0]} answers 200", f"and {len(CLOSED) - 3} more")
    assert front.bodies == []


def test_405_is_as_good_as_404() -> None:
    assert StubFront(broken={place: saying(405) for place in CLOSED}).proven().outcome is Outcome.PASSED


@pytest.mark.parametrize("fault", [Fault.TIMED_OUT, Fault.UNREACHABLE, Fault.MALFORMED])
def test_a_front_that_gives_no_answer_about_a_path_is_not_judged(fault: Fault) -> None:
    assert_not_judged(StubFront(broken={("POST", "/wasm"): failing(fault)}).proven(), "POST /wasm")


@pytest.mark.parametrize("status", [200, 500])
def test_a_path_that_answers_too_much_or_never_ends_is_there(status: int) -> None:
    for fault in (Fault.TOO_LARGE, Fault.TIMED_OUT):
        assert_failed(StubFront(broken={("POST", "/wasm"): failing(fault, status)}).proven(), "POST /wasm answers")


def test_an_open_path_outweighs_one_that_could_not_be_asked() -> None:
    broken = {("GET", "/workers"): failing(Fault.UNREACHABLE), ("POST", "/wasm"): saying(200)}
    assert_failed(StubFront(broken=broken).proven(), "POST /wasm answers 200")


# --- prompts ---


@pytest.mark.parametrize("status", [400, 404, 500, 503])
def test_a_prompt_that_fits_and_is_not_answered_is_not_judged(status: int) -> None:
    assert_not_judged(completing(True, saying(status)).proven(), f"the front answered {status} to a prompt that fits")


@pytest.mark.parametrize("tokens", [0, -1, CAP, 1.5, None, "9"])
def test_a_200_without_a_completion_fails(tokens: Any) -> None:
    said = {"choices": [{"text": "x"}], "usage": {"prompt_tokens": tokens}}
    assert_failed(completing(True, saying(200, said)).proven(), "a prompt that fits got a 200 without a completion")


@pytest.mark.parametrize("status", [200, 206, 500, 502, 504])
def test_an_over_long_prompt_that_is_not_refused_fails(status: int) -> None:
    assert_failed(completing(False, saying(status)).proven(), "(plain)", f"answered {status} where it had to refuse")


@pytest.mark.parametrize("status", [401, 404, 429, 503, 302])
def test_what_says_nothing_about_the_length_is_not_judged(status: int) -> None:
    assert_not_judged(completing(False, saying(status)).proven(), str(status))


@pytest.mark.parametrize("answer", [failing(Fault.TIMED_OUT), failing(Fault.TIMED_OUT, 400), saying(400, seconds=5.5)])
def test_an_over_long_prompt_that_hangs_fails(answer: Answer) -> None:
    assert_failed(completing(False, answer).proven(), "did not refuse within 5 s")


def test_refusals_get_five_seconds_and_the_time_to_count_the_tokens() -> None:
    front = StubFront()
    front.proven()
    assert front.limits[1:] == [pytest.approx(5.01, abs=0.001)] * 2


def test_an_over_long_prompt_that_is_streamed_must_be_refused_too() -> None:
    front = StubFront()
    error = saying(200, b'data: {"error": {"code": 400}}\n\ndata: [DONE]\n\n')
    front.broken[COMPLETE] = lambda body: (error if body.get("stream") else front.complete)(body)
    assert_failed(front.proven(), "(streamed)", "answered 200 where it had to refuse")


@pytest.mark.parametrize(
    "front",
    [
        completing(False, saying(200, {"choices": [{"text": "LEAKED-TEXT"}]})),
        completing(True, saying(500, b"LEAKED-TEXT")),
        StubFront(broken={MODELS: saying(200, models(name="LEAKED-TEXT"))}),
        StubFront(broken={("GET", "/workers"): saying(200, b"LEAKED-TEXT")}),
    ],
)
def test_no_prompt_answer_or_pass_stands_in_a_message(front: StubFront) -> None:
    message = front.proven().message
    assert message.startswith("the front of pod r: ")
    for secret in ("LEAKED", "pass-", "quick river", " 7 "):
        assert secret not in message
