"""The patches in the repository: small, of the product's code alone, still fitting, and their tests exist."""

from __future__ import annotations

import ast
import functools
import subprocess
from pathlib import Path

import pytest

from e2e.red.defences import FOLDER, Defence, Level, read_all

ROOT = Path(__file__).resolve().parents[3]
PRODUCT = ("operator/kvfence/", "engine_image/kvfence_engine/", "charts/", "crds/")
CHANGED_LINES = 12
FAST = ("tests/", "e2e/front/")
"""Where tests are that need no stage."""

DEFENCES = read_all(ROOT)


@functools.cache
def functions(path: str) -> frozenset[str]:
    """Return the names of the functions of a test file; none when it is not there."""
    file = ROOT / path
    nodes = ast.walk(ast.parse(file.read_text())) if file.is_file() else ()
    return frozenset(n.name for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))


def wrong(defence: Defence) -> list[str]:
    """Return what is not as it should be in a patch."""
    body = defence.patch.partition("\ndiff --git ")[2].splitlines()
    changed = [line for line in body if line.startswith(("+", "-")) and not line.startswith(("+++ ", "--- "))]
    found = [f"{len(changed)} changed lines"] if not 0 < len(changed) <= CHANGED_LINES else []
    found += [f"not of the product: {name}" for name in defence.files if not name.startswith(PRODUCT)]
    found += [] if defence.files else ["it changes no file"]
    found += [f"no such test: {test}" for test in defence.tests if test.function not in functions(test.path)]
    fast = all(test.path.startswith(FAST) for test in defence.tests)
    found += [] if fast == (defence.level is Level.FAST) else [f"its tests do not fit to level {defence.level}"]
    sentence = defence.sentence
    return found + ([] if sentence[0].isupper() and sentence.endswith(".") else ["Defence is a sentence"])


@pytest.mark.parametrize("defence", DEFENCES, ids=lambda defence: defence.name)
def test_a_patch_is_small_and_takes_away_product_code_that_named_tests_look_at(defence: Defence) -> None:
    assert wrong(defence) == []


def test_every_patch_still_fits_the_code() -> None:
    stale = []
    for defence in DEFENCES:
        command = ["git", "apply", "--check", str(ROOT / FOLDER / f"{defence.name}.patch")]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            stale.append(f"{defence.name}: {done.stderr.splitlines()[0]}")
    assert stale == [], "update these, as e2e/red/__init__.py says"


def test_no_two_patches_are_the_same() -> None:
    bodies = [defence.patch.partition("\n\n")[2] for defence in DEFENCES if defence.level is Level.FAST]
    assert len(set(bodies)) == len(bodies)


def test_a_patch_that_is_not_as_it_should_be_is_seen() -> None:
    lines = "\n".join("+x" for _ in range(13))
    patch = f"Defence: d\n\ndiff --git a/e2e/x b/e2e/x\n--- a/e2e/x\n+++ b/e2e/x\n{lines}\n"
    planted = Defence("planted", "no sentence", DEFENCES[0].tests, Level.STAGE, patch)
    assert {"13 changed lines", "not of the product: e2e/x", "Defence is a sentence"} <= set(wrong(planted))
