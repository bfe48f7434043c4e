from __future__ import annotations

import asyncio
import copy
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from kvfence.kube.client import LISTS, Kubernetes, _object
from kvfence.kube.drift import with_digest
from kvfence.kube.errors import Contested, Invalid, KubernetesError, Unconfigured, Unreachable
from kvfence.kube.kinds import POD
from tests.unit.kube.objects import Object, config_map, live_of

Answer = Callable[[str, str, Any], Any]


class Answered(Kubernetes):
    """A client whose requests are answered by a function, which may raise."""

    def __init__(self, answer: Answer) -> None:
        self.writes = 0
        self.answer = answer
        self.sent: list[tuple[str, str, Any]] = []

    async def _ask(
        self, method: str, path: str, _doing: str, query: Any = None, body: Any = None, _headers: Any = None
    ) -> Object:
        self.sent.append((method, path, copy.deepcopy(body if body is not None else query)))
        answered: Object = self.answer(method, path, body if body is not None else query)
        return answered


def asked(answer: Answer, do: Callable[[Answered], Awaitable[Any]]) -> tuple[Any, Answered]:
    async def story() -> tuple[Any, Answered]:
        kubernetes = Answered(answer)
        return await do(kubernetes), kubernetes

    return asyncio.run(story())


def test_a_list_whose_pages_expired_is_begun_anew() -> None:
    expired = [True]

    def answer(_method: str, _path: str, query: Any) -> Object:
        if "continue" not in query:
            return {"metadata": {"continue": "c"}, "items": [{"metadata": {"name": "a"}}]}
        if expired and expired.pop():
            raise Invalid(410, "Expired", "too old")
        return {"metadata": {}, "items": [{"metadata": {"name": "b"}}]}

    found, _ = asked(answer, lambda kubernetes: kubernetes.list(POD, None))
    assert [one["metadata"]["name"] for one in found] == ["a", "b"]


def test_a_list_that_always_expires_fails() -> None:
    tries = []

    def answer(_method: str, _path: str, _query: Any) -> Object:
        tries.append(1)
        raise Invalid(410, "Expired", "too old")

    with pytest.raises(Invalid):
        asked(answer, lambda kubernetes: kubernetes.list(POD, None))
    assert len(tries) == LISTS


def test_what_comes_back_however_often_it_is_taken_away_is_told() -> None:
    wanted = with_digest(config_map(a="1"))
    live = live_of(config_map(a="1"))
    live["data"]["injected"] = "x"

    with pytest.raises(Contested, match=r"puts back /data/injected; find the admission webhook"):
        asked(lambda *_: live, lambda kubernetes: kubernetes.apply(wanted))


def test_a_refused_apply_of_what_nobody_touched_is_not_tried_in_another_way() -> None:
    wanted = with_digest(config_map(a="1"))

    def answer(method: str, _path: str, _body: Any) -> Object:
        if method == "GET":
            return live_of(config_map(a="1"))
        raise Invalid(422, "Invalid", "no")

    async def do(kubernetes: Answered) -> list[str]:
        with pytest.raises(Invalid, match="no"):
            await kubernetes.apply(wanted)
        return [method for method, *_ in kubernetes.sent]

    methods, kubernetes = asked(answer, do)
    assert methods == ["PATCH", "GET"]
    assert kubernetes.writes == 1


def test_what_is_taken_away_is_what_was_seen_there() -> None:
    wanted = with_digest(config_map(a="1"))
    dirty, clean = live_of(config_map(a="1")), live_of(config_map(a="1"))
    dirty["data"]["x"] = "y"
    answers = [dirty, clean]
    _, kubernetes = asked(lambda *_: answers.pop(0), lambda kubernetes: kubernetes.apply(wanted))
    patch = kubernetes.sent[1][2]
    assert {"op": "test", "path": "/metadata/uid", "value": "u"} in patch
    assert patch.index({"op": "test", "path": "/data/x", "value": "y"}) < patch.index(
        {"op": "remove", "path": "/data/x"}
    )


@pytest.mark.parametrize("raw", [b"", b"<html>", b"[]", b"7", b"[" * 100_000])
def test_an_answer_that_is_no_object_is_told(raw: bytes) -> None:
    with pytest.raises(Unreachable, match="no Kubernetes API server"):
        _object(raw, "get Pod a/b")


@pytest.mark.parametrize("text", [None, "", ": [", "[]", "7", "clusters: 7", "apiVersion: v1\nkind: Config\n"])
def test_a_kubeconfig_that_is_none_is_told(text: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    if text is not None:
        (tmp_path / "config").write_text(text)
    with pytest.raises(Unconfigured, match=r"kubeconfig|configuration"):
        asyncio.run(Kubernetes.connect("mine"))


def test_a_pod_without_its_token_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "192.0.2.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    with pytest.raises(KubernetesError, match="token"):
        asyncio.run(Kubernetes.connect())
