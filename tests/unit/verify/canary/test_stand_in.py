from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from kvfence.domain.asking import Call, Fault, Heard
from kvfence.verify import markers
from kvfence.verify.canary.copying import Characters, Words, go_on, of_ids
from kvfence.verify.canary.pages import Pages
from kvfence.verify.canary.session import Budget, Session
from kvfence.verify.canary.stand_in import CONTEXT, SMALL_POOL, Flaw, Shape, StandIn

LIMIT = SMALL_POOL - 6
MARKER = "ABCDEFGHJKLM"


def session_of(shape: Shape, *flaws: Flaw) -> Session:
    stand_in = StandIn(shape, frozenset(flaws))
    return Session(stand_in, stand_in.target, Budget(1000, 10**7, 0), random.Random(1))


def asked(shape: Shape, prompt: Any, max_tokens: int = 12, /, **more: Any) -> tuple[Heard, ...]:
    return asyncio.run(session_of(shape).ask(prompt, max_tokens, **more))


def ids(count: int) -> tuple[int, ...]:
    return tuple(random.Random(3).choices(range(220, 250), k=count))


@pytest.mark.parametrize("shape", Shape)
def test_it_repeats_a_marker_of_its_own_prompt(shape: Shape) -> None:
    *_, last = asked(shape, markers.copying_prompt(MARKER, 300, 250))
    assert (last.status, last.text, last.prompt_tokens, last.finish_reason) == (200, MARKER, 301, "length")


def test_text_has_a_begin_token_and_ids_have_none() -> None:
    assert [heard.prompt_tokens for heard in asked(Shape.PAIR, "abc")] == [4, 4]
    assert [heard.prompt_tokens for heard in asked(Shape.PAIR, (220, 221))] == [2, 2]


@pytest.mark.parametrize("shape", [Shape.SERVER, Shape.PAIR])
def test_it_takes_what_is_shorter_than_the_smallest_limit_and_refuses_the_rest_at_once(shape: Shape) -> None:
    assert {heard.status for heard in asked(shape, ids(LIMIT - 1))} == {200}
    for length in (LIMIT, CONTEXT - 1, CONTEXT, CONTEXT + 1):
        for heard in asked(shape, ids(length)):
            assert (heard.status, heard.fault) == (400, Fault.STATUS)
            assert heard.seconds < 1


def test_a_stream_ends_with_done_and_counts_only_when_asked() -> None:
    (heard,) = asked(Shape.SERVER, "abc", stream=True)
    assert (heard.done, heard.prompt_tokens) == (True, None)
    (heard,) = asked(Shape.SERVER, "abc", stream=True, stream_options={"include_usage": True})
    assert (heard.done, heard.prompt_tokens) == (True, 4)


def test_what_the_scheduler_refuses_of_a_stream_is_an_error_with_status_200_and_the_rest_a_400() -> None:
    (heard,) = asked(Shape.SERVER, ids(LIMIT), stream=True)
    assert (heard.status, heard.finish_reason, bool(heard.error)) == (200, "abort", True)
    (heard,) = asked(Shape.SERVER, ids(CONTEXT), stream=True)
    assert heard.status == 400


def test_the_words_of_stale_pages_come_out_with_the_flaw_alone() -> None:
    async def leak(*flaws: Flaw) -> Heard:
        session = session_of(Shape.PAIR, *flaws)
        for marker in markers.draw(9, session.chance):
            await session.ask(markers.planting_prompt(marker, 900), 4)
        *_, last = await session.ask(markers.asking_prompt(1500), 24)
        return last

    leaked = asyncio.run(leak(Flaw.STALE_PAGES))
    planted = markers.draw(9, random.Random(1))
    assert leaked.status == 200
    assert markers.found(leaked.text, planted)
    assert asyncio.run(leak()).status == 400


def test_a_leg_whose_partner_is_not_asked_times_out_and_says_so_at_once() -> None:
    async def ask(place: int) -> Heard:
        session = session_of(Shape.PAIR)
        return await session.ask_only(session.target.legs[place], "abc", 4, bootstrap_host="h", bootstrap_room=1)

    for place in (0, 1):
        assert asyncio.run(ask(place)).fault is Fault.TIMED_OUT


def test_a_call_that_hangs_up_gets_nothing_and_frees_its_pages() -> None:
    async def ask() -> None:
        session = session_of(Shape.PAIR)
        for _ in range(20):
            for heard in await session.ask(ids(1000), 4, hang_up_after=0.1):
                assert (heard.hung_up, heard.status, heard.fault) == (True, None, None)
        assert [heard.status for heard in await session.ask(ids(1000), 4)] == [200, 200]

    asyncio.run(ask())


def test_pages_that_run_out_are_said() -> None:
    async def ask() -> list[int | None]:
        session = session_of(Shape.SERVER)
        heard = await asyncio.gather(*(session.ask(ids(600), 4) for _ in range(2)))
        return [one.status for (one,) in heard]

    assert sorted(asyncio.run(ask()), key=str) == [200, 503]


def test_the_router_takes_text_alone_and_names_decode() -> None:
    (heard,) = asked(Shape.ROUTER, "abc")
    assert heard.worker == "http://decode-1.example"
    assert asked(Shape.ROUTER, ids(9))[0].status == 400


def test_metrics_count_what_an_engine_was_asked() -> None:
    async def count() -> list[bytes]:
        session = session_of(Shape.ROUTER)
        for _ in range(3):
            await session.ask("abc", 1)
        engines = session.target.engines
        return [(await session.caller.read(f"{one.url}/metrics", 5)).body.split()[1] for one in engines]

    assert asyncio.run(count()) == [b"2.0", b"1.0", b"2.0", b"1.0"]


@pytest.mark.parametrize(
    "body", [{"prompt": {}}, {"prompt": []}, {"prompt": [-1]}, {"max_tokens": "many"}, {"temperature": "warm"}]
)
def test_what_is_malformed_is_refused(body: dict[str, Any]) -> None:
    assert asked(Shape.SERVER, "abc", 4, **body)[0].status == 400


def test_nobody_is_at_other_addresses() -> None:
    async def ask() -> Heard:
        return await StandIn(Shape.SERVER).send(Call("http://elsewhere/v1/completions", {"prompt": "a"}), 1)

    assert asyncio.run(ask()).fault is Fault.UNREACHABLE


# --- what it is made of ---


def test_it_goes_on_with_what_most_often_followed_the_longest_match() -> None:
    assert go_on("abcX abcY abcY abc", 1) == "Y"
    assert go_on("1abcX 2abcY 2abcY 1abc", 1) == "X"
    assert go_on("abc", 2) == ".."


def test_pages_keep_what_was_written_until_someone_writes_over_it() -> None:
    pages = Pages(8, 4)
    first = pages.take(5)
    assert first is not None
    pages.write(first, "hello")
    pages.give_back(first)
    again = pages.take(8)
    assert again is not None
    assert pages.read(again, 8) == "hello\0\0\0"
    assert pages.take(1) is None


def test_tokens_make_the_text_they_came_from() -> None:
    words = Words()
    tokens = words.encode("the old castle")
    assert (len(tokens), words.decode(tokens)) == (3, "the old castle")
    assert words.decode("\2" + of_ids([5])) == "\ufffd"
    assert Characters().decode(Characters().encode("ab")) == "ab"
