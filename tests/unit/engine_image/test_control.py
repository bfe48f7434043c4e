"""The launcher's own port: metrics, receipts, and what is refused."""

from __future__ import annotations

import http.client
import json

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kvfence_engine.control import BODY_LIMIT
from tests.unit.engine_image.conftest import Engine, ask


def get(port: int, path: str) -> tuple[int, str, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    connection.request("GET", path)
    answer = connection.getresponse()
    found = answer.status, answer.headers["Content-Type"], answer.read()
    connection.close()
    return found


def test_metrics_are_said_while_the_engine_starts(port: int) -> None:
    status, kind, text = get(port, "/metrics")
    assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
    names = {family.name for family in text_string_to_metric_families(text.decode())}
    assert {"kvfence_engine_door", "kvfence_engine_cap_tokens", "kvfence_engine_fuse_blown"} <= names


def test_the_receipts_of_one_canary_are_shown_from_all_ranks(port: int, engine: Engine) -> None:
    engine.start()
    mine, other = {"rid": "kvfence-canary-a b", "rank": 0}, {"rid": "kvfence-canary-other"}
    engine.state.set_receipts(0, [mine, other])
    engine.state.set_receipts(1, [mine | {"rank": 1}])
    status, kind, text = get(port, "/receipt?rid=kvfence-canary-a%20b")
    assert (status, kind) == (200, "application/json")
    assert json.loads(text) == {"receipts": [mine, mine | {"rank": 1}]}


@pytest.mark.parametrize(
    "query", ["", "?", "?rid", "?rid=", "?rid=x", "?RID=kvfence-canary-1", "?rid=%ff%00", "?rid=" + "x" * 60_000]
)
def test_without_a_receipt_it_is_404(port: int, engine: Engine, query: str) -> None:
    engine.start()
    engine.state.set_receipts(0, [{"rid": "kvfence-canary-1"}])
    status, kind, text = get(port, f"/receipt{query}")
    assert (status, kind) == (404, "application/json")
    assert "no rank has a receipt" in json.loads(text)["message"]


@pytest.mark.parametrize("path", ["/admission", "/taint"])
@pytest.mark.parametrize("length", ["", "-1", "+1", " 1_0", "1e3", "0x10", str(BODY_LIMIT + 1), "9" * 5000, "\u00b2"])
def test_a_body_whose_length_is_none_or_too_much_is_refused_unread(port: int, path: str, length: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    connection.putrequest("POST", path)
    if length:
        connection.putheader("Content-Length", length.encode("latin-1"))
    connection.endheaders()
    assert connection.getresponse().status == 413
    connection.close()


def test_a_taint_that_cannot_be_read_is_400_and_other_methods_are_none(port: int) -> None:
    assert ask(port, "POST", "/taint", b"{}")[0] == 400
    assert ask(port, "POST", "/metrics", b"{}")[0] == 404
    assert get(port, "/taint")[0] == 404
    assert get(port, "/admission")[0] == 404
