"""No key of an engine stands in its log, whoever logs it and however, and none is shown."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from kvfence_engine.key_material import STRUCK, in_objects, keep_out_of_the_log, on_the_command_line, strike

KEYS = {"top-secret", "top-secret-of-the-admin"}


@pytest.fixture
def log() -> Iterator[tuple[logging.Logger, io.StringIO]]:
    """A logger whose handler was set up before the keys were known, as SGLang's may be."""
    before, written = logging.getLogRecordFactory(), io.StringIO()
    logger, handler = logging.getLogger("kvfence.test.keys"), logging.StreamHandler(written)
    logger.addHandler(handler)
    logger.propagate = False
    keep_out_of_the_log(KEYS)
    yield logger, written
    logging.setLogRecordFactory(before)
    logger.removeHandler(handler)


@pytest.mark.parametrize(
    "said",
    [
        (f"server_args={ {'api_key': 'top-secret', 'port': 1} }",),
        ("key %s and %s", "top-secret", "top-secret-of-the-admin"),
        ("%(key)s", {"key": "top-secret-of-the-admin"}),
        ("%r", SimpleNamespace(api_key="top-secret")),
    ],
)
def test_no_key_is_in_a_message(log: tuple[logging.Logger, io.StringIO], said: tuple[Any, ...]) -> None:
    logger, written = log
    logger.error(*said)
    assert "secret" not in written.getvalue()
    assert "of-the-admin" not in written.getvalue(), "the rest of a key that begins as another does"
    assert STRUCK in written.getvalue()


def test_no_key_is_in_a_traceback(log: tuple[logging.Logger, io.StringIO]) -> None:
    logger, written = log
    try:
        raise ValueError("wrong key: " + "top-secret")
    except ValueError:
        logger.exception("no luck")
    assert "secret" not in written.getvalue()
    assert "ValueError: wrong key" in written.getvalue()


def test_what_has_no_key_is_logged_as_it_is(log: tuple[logging.Logger, io.StringIO]) -> None:
    logger, written = log
    logger.error("%d of %s at 100%%", 3, "many")
    assert written.getvalue() == "3 of many at 100%\n"


def test_without_keys_nothing_is_changed() -> None:
    before = logging.getLogRecordFactory()
    keep_out_of_the_log(set())
    assert logging.getLogRecordFactory() is before


@pytest.mark.parametrize(
    ("arguments", "keys"),
    [
        (["--api-key", "a", "--admin-api-key=b", "--port", "1"], {"a", "b"}),
        (["--ssl-keyfile-password", "c"], {"c"}),
        (["--api-key"], set()),
        (["--api-key="], set()),
        (["--api-keys", "a", "x--api-key", "b"], set()),
    ],
)
def test_keys_on_the_command_line_are_known(arguments: list[str], keys: set[str]) -> None:
    assert on_the_command_line(arguments) == keys


def test_keys_in_what_a_process_was_handed_are_known() -> None:
    handed = (SimpleNamespace(api_key="a", admin_api_key=None, ssl_keyfile_password=1), 3, None)
    assert in_objects(handed) == {"a"}


def test_key_material_is_struck_out_with_the_command_that_held_it() -> None:
    told = {"api_key": "k-1", "admin_api_key": None, "launch_command": "serve --api-key k-1", "model_path": "m"}
    strike(told)
    assert told == {"api_key": None, "admin_api_key": None, "launch_command": None, "model_path": "m"}
    plain = {"api_key": None, "launch_command": "serve"}
    strike(plain)
    assert plain == {"api_key": None, "launch_command": "serve"}
