"""Requests are refused for what they ask for, with a sentence that repeats nothing of theirs."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvfence_engine import requests
from kvfence_engine.requests import INTERNAL_FIELDS, Leg, Route, Why

ALONE = Leg(disaggregated=False, peers=frozenset())
PAIRED = Leg(disaggregated=True, peers=frozenset({"10.0.0.1:8998", "10.0.0.2:8998"}))
PAIR = {"bootstrap_host": "10.0.0.1", "bootstrap_port": 8998, "bootstrap_room": 7}
PLAIN = {"model": "tiny", "prompt": "hello", "max_tokens": 4, "stream": True, "rid": "mine", "cache_salt": "s"}

ACCEPTED: dict[str, dict[str, Any]] = {
    "text": {"prompt": "hello"},
    "a list of one text": {"prompt": ["hello"]},
    "token ids": {"prompt": [1, 2, 3]},
    "a list of one list of token ids": {"input_ids": [[1, 2, 3]]},
    "chat": {"messages": [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]},
    "no prompt, which SGLang refuses itself": {},
    "an internal field that is null": {"session_params": None, "rid": None},
}


@pytest.mark.parametrize("fields", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_an_ordinary_request_passes(fields: dict[str, Any]) -> None:
    assert requests.judge(PLAIN | fields, ALONE) is None
    assert requests.judge(PLAIN | fields | PAIR, PAIRED) is None


def test_a_router_s_lists_of_one_pass() -> None:
    assert requests.judge(PLAIN | {name: [value] for name, value in PAIR.items()}, PAIRED) is None


REFUSED: dict[str, tuple[dict[str, Any], Why]] = {
    **{name: ({name: 0}, Why.INTERNAL_FIELD) for name in INTERNAL_FIELDS},
    "health check": ({"rid": "HEALTH_CHECK_1"}, Why.HEALTH_CHECK_RID),
    "health check in a list": ({"rid": ["HEALTH_CHECK"]}, Why.HEALTH_CHECK_RID),
    "two prompts": ({"prompt": ["a", "b"]}, Why.BATCH),
    "two texts": ({"text": ["a", "b"]}, Why.BATCH),
    "two lists of ids": ({"prompt": [[1], [2]]}, Why.BATCH),
    "mixed": ({"input_ids": [1, [2]]}, Why.BATCH),
    "two sampling parameters": ({"sampling_params": [{}, {}]}, Why.BATCH),
    "fake host": ({"bootstrap_host": "2.2.2.2"}, Why.FAKE_HOST),
    "fake host in a list": ({"bootstrap_host": ["2.2.2.2"]}, Why.FAKE_HOST),
}


@pytest.mark.parametrize(("fields", "why"), REFUSED.values(), ids=REFUSED.keys())
@pytest.mark.parametrize("leg", [ALONE, PAIRED], ids=["alone", "paired"])
def test_what_is_not_for_clients_is_refused(leg: Leg, fields: dict[str, Any], why: Why) -> None:
    refused = requests.judge(PLAIN | (PAIR if leg.disaggregated else {}) | fields, leg)
    assert refused is not None
    assert (refused.status, refused.why) == (400, why)


UNKNOWN: dict[str, tuple[dict[str, Any], Why]] = {
    "another host": ({"bootstrap_host": "10.9.9.9"}, Why.UNKNOWN_PEER),
    "another port": ({"bootstrap_port": 22}, Why.UNKNOWN_PEER),
    "no host": ({"bootstrap_host": None}, Why.UNKNOWN_PEER),
    "no port": ({"bootstrap_port": None}, Why.UNKNOWN_PEER),
    "a port in words": ({"bootstrap_port": "8998"}, Why.UNKNOWN_PEER),
    "host and port in one": ({"bootstrap_host": "10.0.0.1:8998", "bootstrap_port": None}, Why.UNKNOWN_PEER),
    "two hosts": ({"bootstrap_host": ["10.0.0.1", "10.0.0.2"]}, Why.UNKNOWN_PEER),
    "no room": ({"bootstrap_room": None}, Why.NO_ROOM),
    "a negative room": ({"bootstrap_room": -1}, Why.NO_ROOM),
    "a room of 64 bits": ({"bootstrap_room": 2**63}, Why.NO_ROOM),
    "true for a room": ({"bootstrap_room": True}, Why.NO_ROOM),
    "two rooms": ({"bootstrap_room": [1, 2]}, Why.NO_ROOM),
}


@pytest.mark.parametrize(("fields", "why"), UNKNOWN.values(), ids=UNKNOWN.keys())
def test_a_leg_gets_its_kv_from_an_admitted_peer_alone(fields: dict[str, Any], why: Why) -> None:
    refused = requests.judge(PLAIN | PAIR | fields, PAIRED)
    assert refused is not None
    assert (refused.status, refused.why) == (400, why)


@pytest.mark.parametrize("name", PAIR)
def test_an_engine_without_a_partner_takes_no_bootstrap_field(name: str) -> None:
    refused = requests.judge(PLAIN | {name: PAIR[name]}, ALONE)
    assert refused is not None
    assert refused.why is Why.INTERNAL_FIELD


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=12), lambda inner: st.lists(inner, max_size=3)
)
NAMES = st.sampled_from([*sorted(INTERNAL_FIELDS), "rid", "prompt", "text", "input_ids", "sampling_params", *PAIR])


@given(st.dictionaries(NAMES, JSON), st.sampled_from([ALONE, PAIRED]))
def test_every_body_is_judged_and_no_sentence_repeats_a_value(fields: dict[str, Any], leg: Leg) -> None:
    secret = "zq-secret-zq"
    planted = {name: secret if isinstance(value, str) else value for name, value in fields.items()}
    refused = requests.judge(planted, leg)
    assert refused is None or secret not in refused.sentence
    if any(fields.get(name) is not None for name in INTERNAL_FIELDS):
        assert refused is not None


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("POST", "/v1/completions", Route.INFER),
        ("POST", "/generate", Route.INFER),
        ("PUT", "/generate", Route.REFUSE),
        ("GET", "/health", Route.HEALTH),
        ("GET", "/v1/models", Route.OBSERVE),
        ("GET", "/v1/models/tiny", Route.OBSERVE),
        ("POST", "/v1/models/tiny", Route.REFUSE),
        ("GET", "/flush_cache", Route.REFUSE),
        ("POST", "/set_internal_state", Route.REFUSE),
        ("POST", "/v1/completions/", Route.REFUSE),
        ("POST", "//v1/completions", Route.REFUSE),
        ("GET", "/v1/responses/1", Route.REFUSE),
    ],
)
def test_only_paths_that_are_named_lead_in(method: str, path: str, expected: Route) -> None:
    assert requests.route(method, path) is expected


def test_a_pass_is_known_by_its_hash() -> None:
    assert requests.passes({"kvfence_pass": "abc"}) == hashlib.sha256(b"abc").hexdigest()
    assert requests.passes({"kvfence_pass": "\ud800"}) is not None  # half a surrogate pair: JSON can say that
    assert requests.passes({}) is None
    assert requests.passes({"kvfence_pass": 1}) is None


def test_a_prompt_over_the_cap_is_told_both_numbers() -> None:
    refused = requests.over_the_cap(994, 993)
    assert (refused.status, refused.why) == (400, Why.TOO_LONG)
    assert "994 tokens" in refused.sentence
    assert "at most 993" in refused.sentence
