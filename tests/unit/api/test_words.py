"""Condition types and reasons are API: words for programs, each explained, none without a use."""

from __future__ import annotations

import ast
import inspect
import re
from enum import StrEnum
from pathlib import Path
from types import ModuleType

import pytest

import kvfence.domain
from kvfence.api.v1alpha1 import conditions, reasons
from kvfence.api.v1alpha1.conditions import ConditionType
from kvfence.api.v1alpha1.reasons import Reason

CAMEL = re.compile(r"[A-Z][a-z]+([A-Z][A-Za-z]*)*")
DOMAIN = Path(kvfence.domain.__path__[0])


@pytest.mark.parametrize("word", [*ConditionType, *Reason])
def test_a_word_is_camel_case_without_values(word: str) -> None:
    assert CAMEL.fullmatch(word)


@pytest.mark.parametrize(("module", "enum"), [(conditions, ConditionType), (reasons, Reason)])
def test_each_word_is_explained_below_it(module: ModuleType, enum: type[StrEnum]) -> None:
    (body,) = (
        node.body
        for node in ast.parse(inspect.getsource(module)).body
        if isinstance(node, ast.ClassDef) and node.name == enum.__name__
    )
    words = body[1:]  # the first is the docstring
    assert len(words) == 2 * len(list(enum))
    for word, text in zip(words[::2], words[1::2], strict=True):
        assert isinstance(word, ast.Assign)
        assert isinstance(text, ast.Expr)
        assert isinstance(text.value, ast.Constant)


@pytest.mark.parametrize("reason", list(Reason))
def test_each_reason_is_given_by_some_gate(reason: Reason) -> None:
    assert any(f"Reason.{reason.name}" in path.read_text() for path in DOMAIN.glob("*.py"))
