"""The incident, as pods: what every canary and defence to come is measured against."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import pytest

from e2e.conftest import Measured
from e2e.engines.servers import Reached
from e2e.incident import scenario, verdict
from e2e.incident.cast import HANGING, LEAK, SERVERS, TRUNCATED, WAITING_SECONDS
from e2e.incident.scenario import Seen

AT_ONCE_SECONDS = 2.0  # 0.02 s were seen; the margin is for a busy machine


@pytest.fixture(scope="module")
def played(sglang_pods: Callable[..., dict[str, Reached]]) -> dict[str, Seen]:
    started = sglang_pods(*SERVERS)
    seen = asyncio.run(scenario.play_all(started.values(), random.SystemRandom()))
    return {one.scene.title: one for one in seen}


def test_the_old_version_answers_an_over_long_prompt_with_what_other_users_wrote(played: dict[str, Seen]) -> None:
    leak = played[LEAK.title]
    assert verdict.was_shown(played.values())
    assert verdict.leaks(leak) == len(LEAK.lengths), "5 of 5 were seen each time"
    for asked in leak.asked:
        assert asked.answer.prefill.prompt_tokens == 1, "the one-token stand-in"
        assert asked.answer.decode.prompt_tokens == asked.tokens


def test_the_new_version_refuses_on_prefill_at_once_and_leaves_decode_hanging(
    played: dict[str, Seen], measured: Measured
) -> None:
    hanging = played[HANGING.title]
    assert hanging.copies
    for asked in hanging.asked:
        assert asked.answer.prefill.status == 400
        measured(f"prefill refuses {asked.tokens} tokens", asked.answer.prefill.seconds, AT_ONCE_SECONDS)
        assert asked.answer.decode.status == 500
        assert asked.answer.decode.seconds >= WAITING_SECONDS
        assert asked.leaked == (), "decode holds the markers of the scene before"


def test_the_new_version_with_auto_truncate_answers_200_from_pages_that_were_never_written(
    played: dict[str, Seen],
) -> None:
    assert played[TRUNCATED.title].copies
    for asked in played[TRUNCATED.title].asked:
        assert asked.answer.prefill.status == asked.answer.decode.status == 200
        assert (asked.answer.prefill.prompt_tokens or 0) < asked.tokens == asked.answer.decode.prompt_tokens
