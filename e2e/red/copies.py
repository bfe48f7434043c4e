"""Copies of the checkout as it is, uncommitted work included, in which a defence can be taken out."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from e2e.commands import run
from e2e.errors import StageError

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGES = {"kvfence": "operator", "kvfence_engine": "engine_image"}
"""What is tested, and the folder that it lies in. Their editable installation leads to the checkout."""

_PROBE = "import kvfence, kvfence_engine; print(kvfence.__file__); print(kvfence_engine.__file__)"


@contextmanager
def copied(root: Path) -> Iterator[Path]:
    """A copy of every file that is or would be committed, for as long as the block runs.

    Raises:
        StageError: it is no checkout, or git is not there.
    """
    listing = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", folder=root)
    with tempfile.TemporaryDirectory(prefix="kvfence-red-") as made:
        copy = Path(made).resolve() / "checkout"
        for name in sorted({name for name in listing.split("\0") if name}):
            source, target = root / name, copy / name
            if not source.is_file():  # deleted, and not staged yet
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
        yield copy


def environment(copy: Path) -> dict[str, str]:
    """Return the environment of tests in a copy: its packages come before the installed ones, in every process."""
    folders = [copy, *(copy / folder for folder in PACKAGES.values())]
    unwanted = ("PYTEST_", "COV_", "GIT_", "PYTHON")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
    return kept | {
        "PYTHONPATH": os.pathsep.join(map(str, folders)),
        "PYTHONDONTWRITEBYTECODE": "1",
        "GIT_CEILING_DIRECTORIES": str(copy.parent),  # a checkout around the temporary folder is none of ours
    }


def make_sure_that_it_is_tested(copy: Path) -> None:
    """See that Python finds the packages of the copy, and not those of the checkout.

    Raises:
        StageError: it does not, so that no patch would change anything.
    """
    probed = subprocess.run(
        [sys.executable, "-c", _PROBE],
        cwd=copy.parent,
        env=environment(copy),
        capture_output=True,
        text=True,
        check=False,
    )
    found = [Path(line) for line in probed.stdout.splitlines()]
    wanted = [copy / folder / package / "__init__.py" for package, folder in PACKAGES.items()]
    if found != wanted:
        said = probed.stderr.strip().splitlines()[-1:] or [f"Python finds {' and '.join(map(str, found))}"]
        raise StageError(f"the copy would not be what is tested: {said[0]}")


def apply(copy: Path, patch: str) -> str:
    """Apply a patch to a copy; return why that is not possible, empty when it was done."""
    done = subprocess.run(
        ["git", "apply", "-"],
        input=patch,
        cwd=copy,
        env=environment(copy),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 0:
        return ""
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    return (errors or [f"git apply ended with {done.returncode}"])[0].removeprefix("error: ")
