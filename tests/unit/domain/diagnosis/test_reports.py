from __future__ import annotations

import json
import re
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvfence.api.v1alpha1.pool import RoleType
from kvfence.domain.diagnosis.doubts import Reason
from kvfence.domain.diagnosis.report import ExitCode
from kvfence.domain.diagnosis.seen import EngineSeen, Product, RouterSeen, Seen, Unreadable
from tests.unit.domain.diagnosis.scenes import decode, engine, prefill, report, router


def test_a_source_that_tells_nothing_has_a_row_of_nulls_and_its_reason() -> None:
    told = report(Unreadable("x.log", "It is empty."), engine())
    first = told.json()["engines"][0]
    assert first.pop("source") == "x.log"
    assert set(first.values()) == {None}
    assert told.engines[0].notes == ("It is empty.",)
    assert "x.log: It is empty." in told.missing


@pytest.mark.parametrize(
    ("seen", "code"),
    [
        ((engine(),), ExitCode.NOTHING_FOUND),
        ((engine(kv_pool_tokens=10, told_input_limit=4),), ExitCode.FINDINGS),
        ((engine(kv_pool_tokens=10, told_input_limit=4), Unreadable("x", "y")), ExitCode.FINDINGS),
        ((engine(), Unreadable("x", "y")), ExitCode.CANNOT_TELL),
        ((engine(kv_pool_tokens=None, told_input_limit=None),), ExitCode.CANNOT_TELL),
        ((engine(context_length=None, told_input_limit=None),), ExitCode.CANNOT_TELL),
        ((engine(rank=0, ranks_untold=3),), ExitCode.CANNOT_TELL),
        ((engine(version=None),), ExitCode.NOTHING_FOUND),
        ((router(),), ExitCode.CANNOT_TELL),
        ((), ExitCode.CANNOT_TELL),
        ((engine(version="0.5.23+cu128"),), ExitCode.CANNOT_TELL),
        ((engine(version="0.5.23rc1"),), ExitCode.CANNOT_TELL),
        ((engine(version=None, role=None, answered=True),), ExitCode.NOTHING_FOUND),
        ((prefill(), decode()), ExitCode.NOTHING_FOUND),
        ((prefill(version="0.5.19+cu128"), decode(version="0.5.19+cu128")), ExitCode.CANNOT_TELL),
        ((prefill(), decode(version="0.5.23rc1")), ExitCode.FINDINGS),
        ((prefill(),), ExitCode.CANNOT_TELL),
        ((decode(),), ExitCode.CANNOT_TELL),
        ((prefill(version=None), decode(version=None)), ExitCode.NOTHING_FOUND),
        ((prefill(version=None, answered=True), decode(answered=True)), ExitCode.CANNOT_TELL),
        ((engine(pair="1"), engine(source="b", pair="1")), ExitCode.CANNOT_TELL),
        ((prefill(pair="1"), decode(pair="1"), prefill(source="b", pair="2")), ExitCode.CANNOT_TELL),
        ((engine(), router(control_plane_open=None)), ExitCode.CANNOT_TELL),
        ((engine(), router(server_info_open=None)), ExitCode.CANNOT_TELL),
        ((engine(), router(version="1.13.0rc1")), ExitCode.CANNOT_TELL),
        ((engine(), router(version=None)), ExitCode.NOTHING_FOUND),
    ],
)
def test_the_exit_code_says_what_is_known(seen: tuple[Seen, ...], code: ExitCode) -> None:
    assert report(*seen).exit_code is code


def test_what_cannot_be_told_is_data_with_its_place_and_a_sentence_is_about_each() -> None:
    told = report(
        prefill(version="0.5.23+cu128"), router(control_plane_open=None, server_info_open=None), Unreadable("x", "y")
    )
    assert {(one.reason, one.where) for one in told.doubts} == {
        (Reason.CONTEXT_FITS_UNTOLD, "x"),
        (Reason.VERSION_UNPLACED, "http://prefill"),
        (Reason.HALF_UNSEEN, "http://prefill"),
        (Reason.CONTROL_PLANE_UNTOLD, "http://router"),
        (Reason.SERVER_INFO_UNTOLD, "http://router"),
    }
    assert [one.where for one in told.doubts if not any(one.where in sentence for sentence in told.missing)] == []
    assert report(prefill(), decode()).doubts == ()


def test_the_gravest_comes_first_and_then_what_stands_first() -> None:
    told = report(
        engine(source="b", settings={"enable_cache_report": True}),
        engine(source="a", settings={"enable_cache_report": True}, kv_pool_tokens=10, told_input_limit=4),
        router(control_plane_open=True),
    )
    assert [one.id for one in told.findings] == ["ControlPlaneOpen", "ContextAbovePool", "CacheReportOn"]
    severities = [one.severity.order for one in told.findings]
    assert severities == sorted(severities)


def test_of_many_places_a_message_names_a_few() -> None:
    many = [engine(source=f"http://{number:03}", settings={"enable_cache_report": True}) for number in range(200)]
    (finding,) = report(*many).findings
    assert "and 194 more" in finding.message
    assert len(finding.message) < 500


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"version": None}, "/server_info"),
        ({"version": "0.0.0.dev1+g70df09b83"}, "no release"),
        ({"kv_pool_tokens": None, "told_input_limit": None}, "KV pool"),
        ({"context_length": None, "told_input_limit": None}, "/v1/models"),
        ({"rank": 0, "ranks_untold": 31}, "31 more ranks"),
    ],
)
def test_what_is_not_told_is_said_with_where_to_get_it(changes: dict[str, Any], words: str) -> None:
    assert any(words in one for one in report(engine(**changes)).missing)
    assert not any(words in one for one in report(engine()).missing)


def test_nothing_is_missing_of_a_sound_engine() -> None:
    assert report(engine()).missing == ()
    assert report(prefill(), decode()).missing == ()


def test_half_a_pair_asks_for_the_other() -> None:
    assert any("PREFILL_URL,DECODE_URL" in one for one in report(prefill()).missing)


def test_a_router_alone_asks_for_its_engines() -> None:
    told = report(router(workers=("http://w1",), control_plane_open=None)).missing
    assert any("http://w1" in one for one in told)
    assert any("control plane" in one for one in told)


LOADED = settings(max_examples=60, deadline=None)
"""A machine under load may take a second for one example."""

SETTINGS = (
    *("context_length", "max_total_tokens", "page_size", "chat_template", "dtype", "lora_paths", "tp_size"),
    *("disaggregation_enable_kv_checksum", "disaggregation_transfer_backend", "model_path", "kv_canary"),
)
NUMBERS = st.none() | st.integers(0, 2**53)
ENGINES = st.builds(
    EngineSeen,
    source=st.sampled_from(["a", "b", "c"]),
    rank=st.none() | st.integers(0, 3),
    product=st.none() | st.sampled_from(Product),
    version=st.none() | st.sampled_from(["0.5.19", "0.5.22", "0.5.23", "1!2.0", "x" * 300, ""]),
    started=st.none() | st.booleans(),
    role=st.none() | st.sampled_from(RoleType),
    kv_pool_tokens=NUMBERS,
    context_length=NUMBERS,
    told_input_limit=NUMBERS,
    page_size=st.none() | st.integers(1, 4096),
    reserved_decode_tokens=NUMBERS,
    settings=st.dictionaries(
        st.sampled_from(SETTINGS),
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.integers()),
    ),
    environment=st.dictionaries(st.sampled_from(["SGLANG_TEST_X", "SGLANG_IS_IN_CI"]), st.text()),
)
SEEN = st.lists(
    ENGINES
    | st.builds(RouterSeen, source=st.just("r"), control_plane_open=st.none() | st.booleans())
    | st.builds(Unreadable, source=st.just("u"), why=st.just("Nothing.")),
    max_size=6,
)


@LOADED
@given(SEEN)
def test_any_facts_make_a_report_that_is_json_and_whole_sentences(seen: list[Seen]) -> None:
    told = report(*seen)
    json.dumps(told.json(), allow_nan=False)
    assert len(told.engines) == sum(not isinstance(one, RouterSeen) for one in seen)
    for finding in told.findings:
        assert finding.fix
        assert not re.search(r"--[a-z-]+( \S+)?\.$|[\d=]\.$", finding.fix), "a full stop would be copied with a command"
        assert finding.message.endswith(".")
        assert "None" not in finding.message + finding.fix
    assert len({(one.id, one.message) for one in told.findings}) == len(told.findings)


@LOADED
@given(ENGINES, st.sampled_from([one.name for one in fields(EngineSeen) if one.name not in ("source", "rank")]))
def test_telling_less_never_finds_that_a_context_does_not_fit(one: EngineSeen, name: str) -> None:
    empty = EngineSeen(one.source)
    less = report(replace(one, **{name: getattr(empty, name)}))
    if "ContextAbovePool" in {finding.id for finding in less.findings} and name != "started":
        assert "ContextAbovePool" in {finding.id for finding in report(one).findings}
