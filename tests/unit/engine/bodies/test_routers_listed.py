"""What a router lists as its workers: addresses that every reader of ours takes for the same, and the rest counted."""

from __future__ import annotations

import pytest

from kvfence.engine.bodies import routers


@pytest.mark.parametrize(
    "url",
    [
        "http://user@10.0.0.6:30000",
        "http://10.0.0.7:" + "30000@0",
        "http://10.0.0.8:30000?a=1",
        " http://10.0.0.9:30000",
        "http://[",
        "http://[::1].evil.example:80",
        "http://a:99999",
        "",
        None,
        7,
    ],
)
def test_what_is_no_address_is_counted_and_not_passed_over(url: object) -> None:
    listed = {"workers": [{"url": "http://127.0.0.1:1"}, {"url": url}, "x"], "total": 3}
    assert routers.addresses(listed) == (("http://127.0.0.1:1",), 2)


def test_workers_over_the_limit_are_counted() -> None:
    many = {"workers": [{"url": f"http://10.0.{i // 256}.{i % 256}:80"} for i in range(routers.WORKERS_LIMIT + 3)]}
    found, unread = routers.addresses(many)
    assert (len(found), unread) == (routers.WORKERS_LIMIT, 3)


def test_one_that_is_listed_twice_is_read() -> None:
    assert routers.addresses({"workers": [{"url": "http://a:1"}] * 2}) == (("http://a:1",), 0)
