from __future__ import annotations

import asyncio
import socket

import pytest

from kvfence.cli.canary.here import all_here, is_here


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "localhost", "::1", "0.0.0.0"])
def test_loopback_is_this_machine(host: str) -> None:
    assert is_here(host)


@pytest.mark.parametrize(
    "host",
    [
        "192.0.2.77",
        "203.0.113.1",
        "2001:db8::77",
        "224.0.0.1",
        "255.255.255.255",
        "",
        "a" * 300,
    ],
)
def test_what_is_elsewhere_or_nowhere_is_not(host: str) -> None:
    assert not is_here(host)


def test_a_name_that_nobody_knows_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    def resolve(host: str, *_: object, **__: object) -> list[tuple[object, ...]]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr("kvfence.cli.canary.here.socket.getaddrinfo", resolve)
    assert not is_here("no-such-host.invalid")


def test_a_name_with_one_address_elsewhere_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    def resolve(host: str, *_: object, **__: object) -> list[tuple[object, ...]]:
        return [(socket.AF_INET, 0, 0, "", ("127.0.0.1", 9)), (socket.AF_INET, 0, 0, "", ("192.0.2.77", 9))]

    monkeypatch.setattr("kvfence.cli.canary.here.socket.getaddrinfo", resolve)
    assert not is_here("both")


def test_all_of_several_must_be_here() -> None:
    assert asyncio.run(all_here(("http://127.0.0.1:1", "http://[::1]:2/x")))
    assert not asyncio.run(all_here(("http://127.0.0.1:1", "http://192.0.2.77:1")))
