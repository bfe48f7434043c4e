"""The whole command, against stand-ins that answer over HTTP."""

from __future__ import annotations

import json
import re
from typing import Any
from xml.etree import ElementTree

import pytest

from kvfence.cli.canary import running
from kvfence.cli.program import run
from kvfence.domain.asking import Call, Heard
from kvfence.domain.verdicts import Check
from kvfence.verify import markers
from kvfence.verify.canary.stand_in import Flaw, Shape, StandIn
from kvfence.verify.canary.suite import SUITE
from tests.unit.cli.canary.over_http import over_http

QUICK = "MarkerIsolation,PromptTokens"
Captured = pytest.CaptureFixture[str]


def canary(stand_in: StandIn, *options: str) -> int:
    with over_http(stand_in) as urls:
        return run(["kvfence", "canary", ",".join(urls), "--rate", "0", *options])


def test_a_sane_pair_passes(capsys: Captured) -> None:
    assert canary(StandIn(Shape.PAIR), "--checks", "MarkerIsolation,PromptTokens,OverlongPrompt") == 0
    said = capsys.readouterr()
    assert "3/3" in said.err
    assert said.out.count("would have been seen with p = ") == 3
    assert "\x1b" not in said.out + said.err


def test_a_leak_is_printed_with_whose_marker_came_out_of_whose_answer(capsys: Captured) -> None:
    broken = StandIn(Shape.PAIR, frozenset({Flaw.STALE_PAGES}))
    assert canary(broken, "--checks", "OverlongPrompt", "-o", "json") == 1
    (check,) = json.loads(capsys.readouterr().out)["checks"]
    assert check["verdict"] == "fail"
    marker = f"[{markers.CHARACTERS}]{{{markers.LENGTH}}}"
    assert any(re.match(rf"{marker} of user A\d+ came out of what decode answered", line) for line in check["evidence"])


def test_a_failure_is_a_failure_in_junit(capsys: Captured) -> None:
    assert canary(StandIn(Shape.SERVER, frozenset({Flaw.WRONG_COUNT})), "--checks", QUICK, "-o", "junit") == 1
    root = ElementTree.fromstring(capsys.readouterr().out)
    assert [case.attrib["name"] for case in root.iter("testcase") if case.find("failure") is not None] == [
        "PromptTokens"
    ]


def test_what_cannot_be_judged_is_no_pass(capsys: Captured) -> None:
    assert canary(StandIn(Shape.SERVER), "--checks", "PairIdentity,MarkerIsolation") == 2
    assert "could not be judged" in capsys.readouterr().out


def test_checks_that_have_no_use_for_the_target_are_left_out(capsys: Captured) -> None:
    canary(StandIn(Shape.SERVER), "-o", "json", "--max-requests", "1")
    said = json.loads(capsys.readouterr().out)
    assert {one["name"]: one["reason"] for one in said["leftOut"]} == {
        "PairIdentity": "no --reference to compare with",
        "RouterPairing": "not a router",
    }


def test_a_spent_budget_is_no_pass_and_says_what_to_allow(capsys: Captured) -> None:
    assert canary(StandIn(Shape.SERVER), "--checks", "MarkerIsolation", "--max-requests", "5", "-o", "json") == 2
    (check,) = json.loads(capsys.readouterr().out)["checks"]
    assert "--max-requests" in check["reason"]
    assert check["requests"] <= 5


def test_a_broken_check_is_not_green(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    class Blind(StandIn):
        @property
        def flaws(self) -> frozenset[Flaw]:
            return frozenset()

        @flaws.setter
        def flaws(self, flaws: frozenset[Flaw]) -> None:
            """Never broken, whatever the control wants."""

    monkeypatch.setattr("kvfence.verify.canary.run.StandIn", Blind)
    assert canary(StandIn(Shape.SERVER), "--checks", "PromptTokens", "-o", "json") == 2
    (check,) = json.loads(capsys.readouterr().out)["checks"]
    assert check["verdict"] == "broken"


def test_the_same_seed_asks_the_same_and_says_that_it_can_be_guessed(capsys: Captured) -> None:
    prompts: list[list[Any]] = []

    class Listening(StandIn):
        async def send(self, call: Call, seconds: float) -> Heard:
            prompts[-1].append(call.body["prompt"])
            return await super().send(call, seconds)

    for seed in ("7", "7", "8"):
        prompts.append([])
        assert canary(Listening(Shape.SERVER), "--checks", "PromptTokens", "--seed", seed) == 0
    assert prompts[0] == prompts[1] != prompts[2]
    assert capsys.readouterr().err.count("can be guessed") == 3


def test_without_a_seed_nobody_can_guess() -> None:
    drawn: list[object] = []

    class Spying(StandIn):
        async def send(self, call: Call, seconds: float) -> Heard:
            drawn.append(call.body["prompt"])
            return await super().send(call, seconds)

    for _ in range(2):
        canary(Spying(Shape.SERVER), "--checks", "PromptTokens")
    assert drawn[1 : len(drawn) // 2] != drawn[len(drawn) // 2 + 1 :]


def test_a_server_that_is_not_there_cannot_be_judged(capsys: Captured) -> None:
    assert run(["kvfence", "canary", "http://127.0.0.1:9", "--checks", QUICK, "-o", "json"]) == 2
    said = json.loads(capsys.readouterr().out)
    assert {check["verdict"] for check in said["checks"]} == {"notJudged"}
    assert said["target"]["kind"] is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(["prefill.log"], "a canary asks servers that run", id="a file"),
        pytest.param(["http://a,http://a"], "two servers", id="the same twice"),
        pytest.param(["http://user:" + "secret@a"], "KVFENCE_API_KEY", id="a password in the address"),
        pytest.param(
            ["http://a", "--checks", "MarkerIsolatoin"], "did you mean MarkerIsolation?", id="a misspelt check"
        ),
        pytest.param(["http://a", "--checks", "Nonsense"], "there are: MarkerIsolation", id="no such check"),
        pytest.param(["http://a", "--checks", ","], "names no check", id="no check at all"),
        pytest.param(["http://a", "--rate", "-1"], "--rate", id="a rate below nothing"),
        pytest.param(["http://a", "--rate", "nan"], "--rate", id="a rate that is no number"),
        pytest.param(["http://a", "--max-requests", "0"], "--max-requests", id="no request"),
        pytest.param(["http://a", "--bootstrap-port", "9"], "for a pair", id="a bootstrap port of a server"),
        pytest.param(["http://a", "--reference", "http://a"], "another server", id="compared with itself"),
        pytest.param(
            ["http://a", "--reference", "http://b", "--checks", "PromptTokens"],
            "which is not in --checks",
            id="a reference for nothing",
        ),
        pytest.param(["http://a", "-o", "yaml"], "yaml", id="an output that is none"),
    ],
)
def test_wrong_usage_ends_with_3_and_says_how_to_do_it(arguments: list[str], words: str, capsys: Captured) -> None:
    assert run(["kvfence", "canary", *arguments]) == 3
    said = capsys.readouterr()
    assert words in " ".join(said.err.split())
    assert "secret" not in said.err
    assert said.out == ""


def test_ctrl_c_prints_what_was_found_by_then(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stopped:
        NAME = Check.PROMPT_TOKENS
        HOSTILE = False

        async def check(self, session: object) -> None:
            raise KeyboardInterrupt

    stopped = {**SUITE, Check.PROMPT_TOKENS: Stopped()}
    monkeypatch.setattr(running, "SUITE", stopped)
    assert canary(StandIn(Shape.SERVER), "--checks", QUICK, "-o", "json") == 130
    said = json.loads(capsys.readouterr().out)
    assert said["interrupted"] is True
    assert [(check["name"], check["verdict"]) for check in said["checks"]] == [("MarkerIsolation", "pass")]


def test_names_of_checks_are_taken_in_any_case_and_once(capsys: Captured) -> None:
    assert canary(StandIn(Shape.SERVER), "--checks", "prompttokens, PromptTokens", "-o", "json") == 0
    assert [check["name"] for check in json.loads(capsys.readouterr().out)["checks"]] == ["PromptTokens"]
