"""What a TARGET is: told from how it is written, and refused in words that quote no secret."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvfence.cli.targets import LogOrBody, PairOfUrls, Pipe, Pod, Selected, Target, TargetError, Url, parse, parse_all


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("-", Pipe()),
        ("http://127.0.0.1:30000", Url("http://127.0.0.1:30000")),
        ("https://pool.example/", Url("https://pool.example")),
        ("http://127.0.0.1:30000/v1", Url("http://127.0.0.1:30000")),
        ("http://127.0.0.1:30000/v1/", Url("http://127.0.0.1:30000")),
        ("http://gateway.example/llm/a,b", Url("http://gateway.example/llm/a,b")),
        ("http://[::1]:30000", Url("http://[::1]:30000")),
        ("http://p:1,http://d:2", PairOfUrls(Url("http://p:1"), Url("http://d:2"))),
        ("http://p:1/v1,https://d:2/", PairOfUrls(Url("http://p:1"), Url("https://d:2"))),
        ("server.log", LogOrBody("server.log")),
        ("./app=sglang", LogOrBody("./app=sglang")),
        ("./pod/x", LogOrBody("./pod/x")),
        ("/dev/fd/63", LogOrBody("/dev/fd/63")),
        ("a b.log", LogOrBody("a b.log")),
        ("app=sglang", Selected("app=sglang")),
        ("app.kubernetes.io/name=sglang,role=prefill", Selected("app.kubernetes.io/name=sglang,role=prefill")),
        ("role=", Selected("role=")),
        ("pod/prefill-0", Pod("prefill-0")),
    ],
)
def test_a_target_is_what_it_looks_like(written: str, meant: Target) -> None:
    assert parse(written) == meant


@pytest.mark.parametrize(
    ("written", "word"),
    [
        ("", "empty"),
        ("a\0b", "zero byte"),
        ("pod/--all", "no name of a pod"),
        ("pod/", "no name of a pod"),
        ("pod/../secrets", "no name of a pod"),
        ("ftp://host/file", "http://HOST:PORT"),
        ("http:/host", "http://HOST:PORT"),
        ("http://", "http://HOST:PORT"),
        ("http://host:99999", "http://HOST:PORT"),
        ("http://ho st", "http://HOST:PORT"),
        ("http://host/\x1b[2J", "http://HOST:PORT"),
        ("http://host?x=1", "a ? or #"),
        ("http://host#x", "a ? or #"),
        ("http://a,http://b,http://c", "PREFILL_URL,DECODE_URL"),
    ],
)
def test_what_is_no_target_is_refused_with_what_to_write_instead(written: str, word: str) -> None:
    with pytest.raises(TargetError) as refused:
        parse(written)
    assert word in str(refused.value)


@pytest.mark.parametrize(
    "written", ["http://ann:" + "hunter2@host", "http://hunter2@host", "http://a,http://b:" + "hunter2@c"]
)
def test_a_password_in_an_address_is_refused_and_not_repeated(written: str) -> None:
    with pytest.raises(TargetError, match="KVFENCE_API_KEY") as refused:
        parse(written)
    assert "hunter2" not in str(refused.value)


def test_standard_input_is_read_once() -> None:
    assert parse_all(["-", "a.log"]) == [Pipe(), LogOrBody("a.log")]
    with pytest.raises(TargetError, match="once"):
        parse_all(["-", "a.log", "-"])


@given(st.text(max_size=60))
def test_any_text_is_a_target_or_is_refused(written: str) -> None:
    try:
        target = parse(written)
    except TargetError:
        return
    if isinstance(target, Selected | Pod):  # these become arguments of kubectl
        text = target.selector if isinstance(target, Selected) else target.name
        assert not text.startswith("-")
        assert text.isascii()
        assert text.isprintable()
