"""The stage's servers are what they are taken for: a copy model that copies, and pairs that answer like one server."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from e2e.engines.processes import Running
from e2e.engines.servers import SERVED_NAME, Role, Server
from kvfence.engine.pair import ROOMS, Answer, Client, Pair, Question
from kvfence.verify import markers

PAGE_SIZES = (1, 16)
POOL = (
    8192  # decode takes a prompt only if 512 tokens more than it would fit: a pool as long as the context is too small
)
CHANCE = random.Random(5)

Servers = dict[str, Running]


@pytest.fixture(scope="module")
def servers(sglang_processes: Callable[..., Servers]) -> Servers:
    """A pair for each page size and one server without a partner, all started at once."""
    pairs = [
        Server(f"{role}-{size}", role, pool_tokens=POOL, page_size=size)
        for size in PAGE_SIZES
        for role in (Role.PREFILL, Role.DECODE)
    ]
    return sglang_processes(Server("unified", pool_tokens=POOL), *pairs)


def ask_pair(servers: Servers, page_size: int, prompt: str, tokens: int) -> Answer:
    """What decode says, after prefill has said that it did its part."""
    prefill, decode = servers[f"prefill-{page_size}"], servers[f"decode-{page_size}"]
    pair = Pair(prefill.url, decode.url, prefill.bootstrap_host, prefill.bootstrap_port)

    async def ask() -> Answer:
        async with Client(timeout_seconds=60) as client:
            answer = await client.ask(pair, Question(SERVED_NAME, prompt, tokens), CHANCE.randrange(ROOMS))
        assert answer.prefill.fault is None, answer.prefill.detail
        assert answer.decode.fault is None, answer.decode.detail
        assert answer.prefill.prompt_tokens == answer.decode.prompt_tokens == len(prompt) + 1
        return answer.decode

    return asyncio.run(ask())


def ask_one(servers: Servers, prompt: str, tokens: int) -> Answer:
    async def ask() -> Answer:
        async with Client(timeout_seconds=60) as client:
            return await client.ask_one(servers["unified"].url, Question(SERVED_NAME, prompt, tokens))

    return asyncio.run(ask())


@pytest.mark.parametrize("page_size", PAGE_SIZES)
def test_a_pair_copies_a_marker_from_3900_tokens_back(servers: Servers, page_size: int) -> None:
    (marker,) = markers.draw(1, CHANCE, length=24)
    prompt = markers.copying_prompt(marker, characters=3930, distance=3900)
    assert ask_pair(servers, page_size, prompt, len(marker)).text == marker


PROMPTS = {
    "a repeated marker": markers.planting_prompt("K3WQ7ZBMX5RA", 500),
    "plain text": markers.filler(777),
    "a marker looked up": markers.copying_prompt("PLMKJNHBVGCF", 300, 200),
    "nothing to copy": "abcdefghijklmnopqrstuvwxyz",
}


@pytest.mark.parametrize("page_size", PAGE_SIZES)
@pytest.mark.parametrize("prompt", PROMPTS.values(), ids=PROMPTS.keys())
def test_a_pair_answers_as_one_server_does(servers: Servers, page_size: int, prompt: str) -> None:
    assert ask_pair(servers, page_size, prompt, 32).text == ask_one(servers, prompt, 32).text


def test_the_servers_run_with_the_flags_that_they_were_given(servers: Servers) -> None:
    for name, one in servers.items():
        log = Path(one.log).read_text(errors="replace")
        assert f"'page_size': {one.server.page_size}," in log, name
        assert "'sleep_on_idle': True," in log, name
        assert f"max_total_num_tokens={POOL}" in log, name
