"""The shape of our Python: sizes that a person can hold in mind, names that say something, no shadow of `operator`."""

from __future__ import annotations

import ast
import operator
from pathlib import Path, PurePath

import pytest

FILE_LINES = 400
FUNCTION_LINES = 50
VAGUE = {"common", "helper", "helpers", "misc", "stuff", "util", "utils"}


def long_functions(source: str) -> list[str]:
    """Return the functions that are not shorter than the limit, with their lengths."""
    functions = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    lengths = [(n.name, (n.end_lineno or n.lineno) - n.lineno + 1) for n in functions]
    return [f"{name} has {lines} lines" for name, lines in lengths if lines >= FUNCTION_LINES]


def vague_parts(name: PurePath) -> set[str]:
    """Return the parts of a module's path that say nothing about what is in it."""
    return VAGUE & {part.lower() for part in name.with_suffix("").parts}


def test_a_function_of_fifty_lines_is_seen() -> None:
    assert long_functions("def f():\n" + "    x = 1\n" * 49) == ["f has 50 lines"]
    assert long_functions("async def f():\n" + "    x = 1\n" * 48) == []


@pytest.mark.parametrize("name", ["operator/kvfence/utils.py", "e2e/common/files.py", "tests/unit/Helpers.py"])
def test_a_vague_name_is_seen(name: str) -> None:
    assert vague_parts(PurePath(name))


def test_files_are_short(root: Path, python_files: list[Path]) -> None:
    lengths = {str(name): len((root / name).read_text().splitlines()) for name in python_files}
    assert lengths
    assert {name: lines for name, lines in lengths.items() if lines >= FILE_LINES} == {}


def test_functions_are_short(root: Path, python_files: list[Path]) -> None:
    found = {str(name): long_functions((root / name).read_text()) for name in python_files}
    assert {name: functions for name, functions in found.items() if functions} == {}


def test_module_names_say_something(python_files: list[Path]) -> None:
    assert [name for name in python_files if vague_parts(name)] == []


def test_the_operator_folder_is_no_package(root: Path) -> None:
    # With an __init__.py it would take the place of the standard library's `operator` for whoever starts in the root.
    assert not (root / "operator" / "__init__.py").exists()
    assert operator.add(1, 1) == 2


def test_every_package_has_a_docstring(root: Path, python_files: list[Path]) -> None:
    packages = [name for name in python_files if name.name == "__init__.py"]
    assert packages
    assert [name for name in packages if not ast.get_docstring(ast.parse((root / name).read_text()))] == []
