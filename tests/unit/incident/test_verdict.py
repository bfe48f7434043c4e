"""The incident counts as shown when, and only when, the old version gave B a marker of A; the tables say so."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from e2e.incident import table, verdict
from e2e.incident.cast import HANGING, LEAK, SCENES, SERVERS, TRUNCATED, Scene
from e2e.incident.scenario import Asked, Seen
from kvfence.engine.pair import Answer, Fault, PairAnswer

MARKERS = ("ABCDEFGHJKLM", "NPQRSTUVWXYZ")
ONE_TOKEN = Answer(200, "", 1, 0.02)
REFUSED = Answer(400, "", None, 0.02, Fault.STATUS, "too long")


def seen(scene: Scene, prefill: Answer, decode: Answer, *leaked: str) -> Seen:
    return Seen(scene, copies=True, planted=MARKERS, asked=(Asked(1100, PairAnswer(prefill, decode), leaked),))


LEAKED = seen(LEAK, ONE_TOKEN, Answer(200, "ECRET-NPQRSTUVWXYZ", 1100, 0.4), MARKERS[1])
GARBAGE = seen(TRUNCATED, Answer(200, "", 1018, 0.3), Answer(200, "[red]x[/]", 1100, 0.4))
HUNG = seen(HANGING, REFUSED, Answer(500, "", None, 5.03, Fault.STATUS, "timeout"))


def test_a_marker_in_an_answer_of_the_old_version_shows_the_incident() -> None:
    assert verdict.was_shown([LEAKED, GARBAGE, HUNG])


@pytest.mark.parametrize(
    "played",
    [
        pytest.param([], id="nothing was played"),
        pytest.param([GARBAGE, HUNG], id="the old version was not played"),
        pytest.param([replace(LEAKED, scene=TRUNCATED)], id="another version leaked"),
        pytest.param([replace(LEAKED, copies=False)], id="the pair does not work"),
        pytest.param([replace(LEAKED, asked=())], id="nothing was asked"),
        pytest.param([seen(LEAK, ONE_TOKEN, Answer(200, "x", 1100, 0.4))], id="no marker came out"),
        pytest.param(
            [seen(LEAK, ONE_TOKEN, Answer(500, "", None, 0.4, Fault.STATUS), MARKERS[0])], id="B got an error"
        ),
    ],
)
def test_anything_else_does_not(played: list[Seen]) -> None:
    assert not verdict.was_shown(played)


def shown(*played: Seen) -> str:
    console = Console(file=StringIO(), width=140)
    table.show(played, console)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_the_table_says_whose_marker_came_out() -> None:
    text = shown(LEAKED)
    assert "A2's NPQRSTUVWXYZ" in text
    assert "200, 1 token " in text
    assert "200, 1,100 tokens" in text
    assert "1 of 1 answers to B hold what another user wrote." in text


def test_the_table_shows_garbage_as_it_is() -> None:
    text = shown(GARBAGE)
    assert "[red]x[/]" in text
    assert "1 of 1 answers to B are 200 and made of KV that was never written for them" in text


def test_the_table_says_how_long_the_asker_is_held() -> None:
    text = shown(HUNG)
    assert "400 after 0.0 s" in text
    assert "decode holds the asker for 5.0 s" in text


UNREACHABLE = Answer(None, "", None, 0.1, Fault.UNREACHABLE, "refused")
LATE = Answer(500, "", None, 5.03, Fault.STATUS, "timeout")
RIGHT = Answer(200, "x", 1100, 0.4)


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param([(UNREACHABLE, LATE)], id="prefill cannot be reached"),
        pytest.param([(Answer(500, "", None, 0.1, Fault.STATUS), LATE)], id="prefill fails"),
        pytest.param([(ONE_TOKEN, LATE)], id="prefill accepts"),
        pytest.param([(RIGHT, RIGHT)], id="both answer the very prompt"),
        pytest.param([(REFUSED, LATE), (UNREACHABLE, LATE)], id="prefill refuses one of two"),
    ],
)
def test_the_table_says_that_prefill_refuses_only_where_it_did(answers: list[tuple[Answer, Answer]]) -> None:
    asked = tuple(Asked(1100, PairAnswer(prefill, decode), ()) for prefill, decode in answers)
    text = shown(replace(HUNG, asked=asked))
    assert text.rstrip().endswith("\nNo marker came out.")
    assert "refuses" not in text


def test_a_pair_that_does_not_copy_shows_nothing() -> None:
    assert "means nothing" in shown(replace(LEAKED, copies=False))


def test_every_prompt_of_b_fits_the_context_and_not_prefill_s_pool() -> None:
    for scene in SCENES:
        assert all(scene.prefill.pool_tokens < tokens < scene.prefill.context_length for tokens in scene.lengths)
    assert len(SERVERS) == len({server.name for server in SERVERS}) == 5
