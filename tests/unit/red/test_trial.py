"""Defences are taken out of a tiny repository: what is red is told from what stayed green, is stale or is broken."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from e2e.errors import StageError
from e2e.red import copies, trial
from e2e.red.defences import FOLDER, Defence, DefenceError, Level, chosen, read, read_all
from e2e.red.trial import Outcome, Result

PatchOf = Callable[[str], tuple[Defence, ...]]

SETTINGS = """
[tool.pytest.ini_options]
addopts = ["--import-mode=importlib"]
pythonpath = [".", "operator", "engine_image"]
"""
GATE = """
def is_let_in(name):
    if name == "mallory":
        return False
    return True
"""
TESTS = """
import pytest
import sys
from kvfence import gate

@pytest.mark.parametrize("name", ["alice", "mallory"])
def test_mallory_stays_out(name):
    assert gate.is_let_in(name) == (name == "alice")

def test_alice_is_let_in():
    assert gate.is_let_in("alice")

@pytest.fixture
def somebody():
    assert not gate.is_let_in("mallory")
    return "alice"

def test_somebody_is_let_in(somebody):
    assert gate.is_let_in(somebody)

def test_that_is_always_red():
    assert not gate.is_let_in("alice")

def test_that_is_skipped():
    pytest.skip("not here")
"""
TEST = "tests/unit/test_gate.py"
PATCH = """Defence: Mallory stays out.
Test: {test}

diff --git a/operator/kvfence/gate.py b/operator/kvfence/gate.py
--- a/operator/kvfence/gate.py
+++ b/operator/kvfence/gate.py
@@ -2,3 +2,3 @@
 def is_let_in(name):
-    if name == "{name}":
+{line}
         return False
"""
CASES = {
    "noticed": (f"{TEST}::test_mallory_stays_out", "mallory", "    if False:"),
    "unnoticed": (f"{TEST}::test_alice_is_let_in", "mallory", "    if False:"),
    "stale": (f"{TEST}::test_mallory_stays_out", "trudy", "    if False:"),
    "setup": (f"{TEST}::test_somebody_is_let_in", "mallory", "    if False:"),
    "collection": (f"{TEST}::test_mallory_stays_out", "mallory", "    if False"),
}


def written(root: Path, name: str, test: str, was: str, line: str) -> None:
    (root / FOLDER / f"{name}.patch").write_text(PATCH.format(test=test, name=was, line=line))


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with one defence, and patches; nothing of it is committed."""
    root = tmp_path_factory.mktemp("repository")
    for name, text in {
        "pyproject.toml": SETTINGS,
        "operator/kvfence/__init__.py": "",
        "operator/kvfence/gate.py": GATE,
        "engine_image/kvfence_engine/__init__.py": "",
        TEST: TESTS,
        ".gitignore": "ignored.py",
        "ignored.py": "",
        f"{FOLDER}/none.txt": "",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    for name, case in CASES.items():
        written(root, name, *case)
    subprocess.run(["git", "init", "--quiet"], cwd=root, check=True)
    return root


@pytest.fixture(scope="module")
def results(repository: Path) -> dict[str, Result]:
    """What comes of every patch."""
    return {result.defence.name: result for result in trial.try_all(repository, read_all(repository))}


def test_a_test_that_fails_without_its_defence_is_red(results: dict[str, Result]) -> None:
    assert results["noticed"].outcome is Outcome.RED
    assert [test.function for test in results["noticed"].red] == ["test_mallory_stays_out"]


def test_a_test_that_passes_without_its_defence_stayed_green(results: dict[str, Result]) -> None:
    assert results["unnoticed"].outcome is Outcome.GREEN
    assert "nobody would notice that it is gone: test_alice_is_let_in" in results["unnoticed"].words


def test_a_patch_that_does_not_apply_is_to_be_updated(results: dict[str, Result]) -> None:
    assert results["stale"].outcome is Outcome.STALE
    assert "patch failed: operator/kvfence/gate.py" in results["stale"].words
    assert "update it" in results["stale"].words


@pytest.mark.parametrize("name", ["setup", "collection"])
def test_an_error_before_the_test_is_not_red(results: dict[str, Result], name: str) -> None:
    assert results[name].outcome is Outcome.BROKEN
    assert results[name].red == ()
    assert "rror" in results[name].words


def test_the_checkout_stays_as_it_was(repository: Path, results: dict[str, Result]) -> None:
    assert results
    assert (repository / "operator/kvfence/gate.py").read_text() == GATE
    assert not list(repository.rglob("__pycache__"))


@pytest.fixture
def patch_of(repository: Path) -> Iterator[PatchOf]:
    """Call it with the name of a test: it writes and returns a patch that names it."""
    made = []

    def write(test: str) -> tuple[Defence, ...]:
        written(repository, "of-this-test", f"{TEST}::{test}", "mallory", "    if False:")
        made.append(repository / FOLDER / "of-this-test.patch")
        return (read(made[0]),)

    yield write
    for path in made:
        path.unlink()


@pytest.mark.parametrize("test", ["test_that_is_always_red", "test_that_is_skipped"])
def test_a_test_that_does_not_pass_before_is_no_witness(repository: Path, patch_of: PatchOf, test: str) -> None:
    with pytest.raises(StageError, match=f"without any patch these did not pass: {TEST}::{test}"):
        trial.make_sure_that_all_is_green(repository, patch_of(test))


def test_a_test_that_is_not_there_is_named(repository: Path, patch_of: PatchOf) -> None:
    with pytest.raises(StageError, match=r"could not be run:\n.*not found: .*::test_that_is_not_there"):
        trial.make_sure_that_all_is_green(repository, patch_of("test_that_is_not_there"))


def test_tests_that_pass_before_are_witnesses(repository: Path) -> None:
    trial.make_sure_that_all_is_green(repository, read_all(repository))


def test_a_copy_has_what_is_not_committed_and_nothing_that_git_ignores(repository: Path) -> None:
    with copies.copied(repository) as copy:
        assert (copy / "operator/kvfence/gate.py").read_text() == GATE
        assert not (copy / "ignored.py").exists()
        copies.make_sure_that_it_is_tested(copy)
        (copy / "operator/kvfence/__init__.py").unlink()
        (copy / "operator/kvfence/gate.py").unlink()
        with pytest.raises(StageError, match="the copy would not be what is tested: Python finds /"):
            copies.make_sure_that_it_is_tested(copy)
    assert not copy.exists()


def test_a_name_that_is_not_known_is_told_with_those_that_are(repository: Path) -> None:
    known = read_all(repository)
    assert [defence.name for defence in chosen(known, ("stale",), Level.STAGE)] == ["stale"]
    assert len(chosen(known, (), Level.FAST)) == len(CASES)
    with pytest.raises(DefenceError, match="there is no x; there are: collection, noticed"):
        chosen(known, ("x",), Level.FAST)
    with pytest.raises(DefenceError, match="no defence is of level stage"):
        chosen(known, (), Level.STAGE)


HEAD = "Defence: d.\nTest: tests/unit/test_a.py::test_b\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Defence: d.\n\ndiff --git a/x b/x\n", "the head has one Defence, a Test or more"),
        (f"{HEAD}Defence: e.\n\ndiff --git a/x b/x\n", "the head has one Defence"),
        (f"{HEAD}Level: slow\n\ndiff --git a/x b/x\n", "at most a `Level: stage`"),
        (f"{HEAD}Author: me\n\ndiff --git a/x b/x\n", "a line of the head is"),
        (f"{HEAD}diff --git a/x b/x\n", "an empty line"),
        ("Defence: d.\nTest: tests/unit\n\ndiff --git a/x b/x\n", "write a test as path/test_file.py::test_function"),
    ],
)
def test_a_head_that_says_not_what_it_should_is_refused_in_words(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "some.patch"
    path.write_text(text)
    with pytest.raises(DefenceError, match=words):
        read(path)


def test_a_checkout_without_patches_is_told(tmp_path: Path) -> None:
    with pytest.raises(DefenceError, match="there is no patch"):
        read_all(tmp_path)
