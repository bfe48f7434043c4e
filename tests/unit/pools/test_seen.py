"""What the impatient user of `e2e/pools` saw is judged so that an answer before admission cannot pass."""

from __future__ import annotations

from e2e.pools.prober import SERVICE, Answer, Look, Seen


def look(role: str, at: float, door: str) -> Look:
    return Look(role, at, {"door": door})


def shut_until(closed: float) -> list[Look]:
    """Decode opens one second after prefill."""
    return [
        *(look("prefill", closed - 1 - back, "canary") for back in (2.0, 1.0, 0.0)),
        *(look("decode", closed - back, "closed") for back in (2.0, 1.0, 0.0)),
        *(look(role, closed + 1, "open") for role in ("prefill", "decode")),
    ]


def test_an_answer_while_its_door_was_shut_is_too_early() -> None:
    early = Answer("decode", 200, 9.5)
    assert Seen([early], shut_until(10.0)).too_early() == [early]


def test_an_answer_after_its_door_was_last_seen_shut_is_not_too_early() -> None:
    seen = Seen([Answer("prefill", 200, 9.5), Answer("decode", 200, 10.5)], shut_until(10.0))
    assert seen.too_early() == []


def test_the_service_may_not_answer_before_both_doors_are_open() -> None:
    early = Answer(SERVICE, 200, 9.5)
    assert Seen([early, Answer(SERVICE, 200, 10.5)], shut_until(10.0)).too_early() == [early]


def test_a_request_that_was_let_in_and_failed_is_too_early() -> None:
    early = Answer("decode", 500, 9.5)
    assert Seen([early], shut_until(10.0)).too_early() == [early]


def test_a_refusal_is_no_answer() -> None:
    refused = [Answer("decode", 503, 1.0), Answer("decode", None, 1.0), Answer(SERVICE, 502, 1.0)]
    assert Seen(refused, shut_until(10.0)).too_early() == []
