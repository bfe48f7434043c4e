from __future__ import annotations

import asyncio

import pytest

from kvfence.cli.canary.callers import ByName
from kvfence.domain.asking import Call, Heard, Reply


class Noting:
    def __init__(self) -> None:
        self.asked: list[str] = []

    async def send(self, call: Call, seconds: float) -> Heard:
        self.asked.append(call.url)
        return Heard(200)

    async def read(self, url: str, seconds: float) -> Reply:
        self.asked.append(url)
        return Reply(200, b"", 0.0)


@pytest.mark.parametrize(
    ("url", "is_named"),
    [
        ("http://a:1/v1/completions", True),
        ("http://b:2/base/metrics", True),
        ("http://a:1", False),
        ("http://a:12/metrics", False),
        ("http://a:" + "1@evil/metrics", False),
        ("http://b:2/metrics", False),
        ("https://a:1/metrics", False),
    ],
)
def test_only_servers_that_were_named_get_the_key(url: str, is_named: bool) -> None:
    named, strangers = Noting(), Noting()
    caller = ByName(named, strangers, ("http://a:1", "http://b:2/base"))

    async def ask() -> None:
        await caller.send(Call(url, {}), 1)
        await caller.read(url, 1)

    asyncio.run(ask())
    assert (named.asked, strangers.asked) == (([url, url], []) if is_named else ([], [url, url]))
