"""Keeps the keys of an engine out of what it says: of `/server_info`, and of its log.

SGLang writes all of its arguments into its log when it starts, and shows them to whoever asks. The values are known to
each process: the first has them on its command line, the others were handed SGLang's arguments as an object.
"""

from __future__ import annotations

import logging
import traceback
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

NAMES = ("api_key", "admin_api_key", "ssl_keyfile_password")
"""Of SGLang's arguments that are keys."""

STRUCK = "[struck out]"


def strike(info: dict[str, Any]) -> None:
    """Take key material out of what `/server_info` says; the command line too, if it may hold some."""
    if any(info.get(name) for name in NAMES):
        info.update({name: None for name in NAMES if name in info})
        if "launch_command" in info:
            info["launch_command"] = None


def on_the_command_line(arguments: Sequence[str]) -> set[str]:
    """Return the keys among the arguments of SGLang, whether as two words or as one with `=`."""
    flags = {f"--{name.replace('_', '-')}" for name in NAMES}
    found = set()
    for place, word in enumerate(arguments):
        flag, is_one_word, value = word.partition("=")
        if flag in flags:
            found.add(value if is_one_word else "".join(arguments[place + 1 : place + 2]))
    return {value for value in found if value}


def in_objects(handed: Iterable[object]) -> set[str]:
    """Return the keys in the arguments of a process's main function, of which one is SGLang's own object."""
    values = (getattr(one, name, None) for one in handed for name in NAMES)
    return {value for value in values if isinstance(value, str) and value}


def keep_out_of_the_log(keys: set[str]) -> None:
    """Strike these out of every record of this process from now on, whatever handlers SGLang sets up afterwards."""
    if not keys:
        return
    before = logging.getLogRecordFactory()
    longest_first = sorted(keys, key=len, reverse=True)  # one may be the beginning of another

    def struck(text: str) -> str:
        for key in longest_first:
            text = text.replace(key, STRUCK)
        return text

    def made(*args: Any, **kwargs: Any) -> logging.LogRecord:
        record = before(*args, **kwargs)
        record.msg, record.args = struck(record.getMessage()), ()
        if record.exc_info and record.exc_info[1] is not None:  # a formatter takes what stands there already
            record.exc_text = struck("".join(traceback.format_exception(*record.exc_info)).rstrip("\n"))
        return record

    logging.setLogRecordFactory(made)
