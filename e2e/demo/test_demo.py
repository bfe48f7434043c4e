"""The demo as people run it: a pool that cannot be admitted, one that comes up, the same once more, and all removed."""

from __future__ import annotations

import os
import re
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from e2e.cluster.stage import Stage
from e2e.conftest import Aloud, Measured
from e2e.demo.scene import CHECKOUT, EXAMPLE

ADVERTISED = 1003  # 1,024 - 2 %, by hand
LONGEST = 996
END_SECONDS = 420.0
SOON_SECONDS = 60.0  # 15 s were seen; a busy machine is slow at everything


@dataclass(frozen=True)
class Ran:
    """One run of the module."""

    code: int
    shown: str
    said: str
    seconds: float


@dataclass(frozen=True)
class Runs:
    """All runs, in the order in which they were made."""

    hopeless: Ran
    first: Ran
    again: Ran
    down: Ran
    left: tuple[str, ...]
    """What of the demo's was there after it was removed."""


def run(*arguments: str, **variables: str) -> Ran:
    began = time.monotonic()
    ran = subprocess.run(
        [sys.executable, "-m", "e2e.demo", *arguments],
        cwd=CHECKOUT,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=END_SECONDS,
        check=False,
    )
    return Ran(ran.returncode, ran.stdout, ran.stderr, time.monotonic() - began)


@pytest.fixture(scope="module")
def runs(cluster: Stage, aloud: Aloud, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    name = f"demo-{secrets.token_hex(4)}"
    hopeless = tmp_path_factory.mktemp("pools") / "hopeless.yaml"
    text = EXAMPLE.read_text()
    assert 'version: "0.5.23"' in text
    hopeless.write_text(text.replace('version: "0.5.23"', 'version: "0.5.19"').replace("first-pool", "hopeless"))
    where = ("--namespace", name, "--system-namespace", f"{name}-system")
    stage = {"KUBECONFIG": str(cluster.layout.kubeconfig)}
    context = cluster.kubectl.run("config", "current-context").strip()

    def left() -> tuple[str, ...]:
        selector = "--selector=kvfence.io/made-by=demo"
        found = cluster.kubectl.get("namespaces", selector)["items"]
        names = [one["metadata"]["name"] for one in found]
        return tuple(one for one in names if one.startswith(name))

    try:
        with aloud():
            failed = run(*where, "--pool", str(hopeless))
            first, again = run(*where), run(*where)
            down = run(*where, "--context", context, "--down", **stage)
        yield Runs(failed, first, again, down, left())
    finally:
        run(*where, "--context", context, "--down", **stage)


def test_a_pool_that_cannot_be_admitted_is_exit_code_1_and_the_words_of_the_condition(
    runs: Runs, measured: Measured
) -> None:
    ran = runs.hopeless
    assert ran.code == 1, ran.said
    assert "this needs a person" in ran.shown
    assert "EngineAllowed is False (VersionTooOld): " in ran.shown
    assert "0.5.19" in ran.shown
    assert re.search(r"kvfence-operator-\S+ +1/1 +Running", ran.shown), "the operator's pods"
    assert "`make demo-down` removes it" in ran.shown
    assert "What to try next" not in ran.shown
    measured("saying that a pool cannot be admitted, installation and all", ran.seconds, SOON_SECONDS)


CHAPTERS = (
    "examples/01-first-pool/pool.yaml is applied",
    "The engines' containers run.",
    "Both engines have started.",
    "1,024 tokens on prefill, 4,096 tokens on decode.",
    "1,003 of the 4,096 tokens asked for are on offer, and prefill limits it.",
    "Verified on the running servers:",
    "Proven as a pair:",
    "Proven with its router and proxy:",
    "Admitted: the doors are open.",
    "Meanwhile the Service was asked",
    "What Kubernetes shows",
    "What to try next",
    "All of this was seen as it happened.",
)


def test_a_pool_is_shown_from_its_first_second_to_its_admission(runs: Runs) -> None:
    ran = runs.first
    assert ran.code == 0, ran.shown + ran.said
    flat = " ".join(ran.shown.split())
    places = [flat.find(chapter) for chapter in CHAPTERS]
    assert -1 not in places, (CHAPTERS[places.index(-1)], ran.shown)
    assert places == sorted(places), ran.shown
    assert flat.count("(closed: not Ready)") == 2
    assert f"= {ADVERTISED:,} <- the smallest: the cap" in flat
    assert re.search(r"first-pool +tiny +True +True +1003 +4096 +prefill +1024 +Serving", ran.shown)
    assert re.search(r"^ +TrafficAdmitted +True +Admitted", ran.shown, re.MULTILINE)
    assert re.search(r"^  Normal +Admitted ", ran.shown, re.MULTILINE)


def test_nobody_is_answered_before_the_pool_is_admitted_though_it_is_asked_all_the_time(runs: Runs) -> None:
    found = re.search(r"asked (\d+) times\. Until now nobody was answered", " ".join(runs.first.shown.split()))
    assert found, runs.first.shown
    assert int(found.group(1)) >= 5, "an engine takes longer to start than five questions"


@pytest.mark.parametrize(
    ("asked", "answer", "says"),
    [
        ("GET /v1/models", 200, f"max_model_len {ADVERTISED}"),
        ("a prompt of 701 tokens", 200, "as it stands in the prompt"),
        (f"{LONGEST}, the longest", 200, f"prompt_tokens {LONGEST}"),
        (f"{LONGEST + 1} tokens, one more", 400, f"the prompt has {LONGEST + 1} tokens"),
        ("1,500 tokens", 400, "the prompt has 1500 tokens"),
    ],
    ids=lambda value: str(value) if isinstance(value, str) else "",
)
def test_the_service_answers_what_fits_and_refuses_what_does_not(
    runs: Runs, asked: str, answer: int, says: str
) -> None:
    for ran in (runs.first, runs.again):
        flat = " ".join(ran.shown.replace("│", " ").split())  # what an answer says may take several lines
        row = re.search(
            rf" {re.escape(asked)} (\d+) (\d+\.\d+) s (?:Prefill server error \(400 Bad Request\): )?(.*)", flat
        )
        assert row, ran.shown
        assert int(row.group(1)) == answer
        assert says in row.group(3)[:100]
        assert answer == 200 or float(row.group(2)) < 1.0


def test_the_demo_once_more_goes_on_from_the_pool_that_is_there(runs: Runs, measured: Measured) -> None:
    ran = runs.again
    assert ran.code == 0, ran.shown + ran.said
    assert "It was there already." in ran.shown
    assert "All of this was seen" not in ran.shown
    assert "The engines run already" in ran.shown
    measured("the demo once more", ran.seconds, SOON_SECONDS)


def test_output_that_is_no_terminals_has_no_tricks_and_a_line_for_each_thing(runs: Runs) -> None:
    for ran in (runs.hopeless, runs.first, runs.again, runs.down):
        assert "\x1b" not in ran.shown
        assert "\r" not in ran.shown
        assert "Traceback" not in ran.said


def test_down_removes_what_the_demo_made_and_nothing_else(runs: Runs, cluster: Stage) -> None:
    assert runs.down.code == 0, runs.down.said
    assert "is gone, and the pool with it." in runs.down.shown
    assert runs.left == ()
    assert cluster.kubectl.ready(), "the stage itself stays"


def test_what_is_shown_is_at_most_100_columns_wide_but_for_what_kubectl_prints_or_takes(runs: Runs) -> None:
    for ran in (runs.first, runs.again):
        story = ran.shown.partition("What Kubernetes shows")[0]
        assert max(map(len, story.splitlines())) <= 100


def test_a_context_that_is_not_there_is_exit_code_2(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    ran = run("--context", "nowhere", KUBECONFIG=str(tmp_path / "empty"))
    assert ran.code == 2
    assert "nowhere" in ran.said
    assert "Traceback" not in ran.said
