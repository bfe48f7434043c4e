"""What the user asked for, checked before anything is sent. Pure."""

from __future__ import annotations

import difflib
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kvfence.cli.targets import PairOfUrls, TargetError, Url, parse
from kvfence.domain.verdicts import Check

if TYPE_CHECKING:
    from collections.abc import Collection


class WrongUsageError(Exception):
    """The command was called wrongly; the message says how to call it right."""


@dataclass(frozen=True, slots=True)
class Pace:
    """What a run may cost; none where the target has to be known first."""

    requests: int
    tokens: int | None
    per_second: float


@dataclass(frozen=True, slots=True)
class Asked:
    """A command line that can be run."""

    urls: tuple[str, ...]
    """One, or prefill and decode in this order; without a slash at their ends."""
    checks: tuple[Check, ...]
    """By name; empty for all that the target has a use for."""
    pace: Pace
    reference: str | None = None
    model: str | None = None
    bootstrap_host: str | None = None
    bootstrap_port: int | None = None
    seed: int | None = None
    owned: bool = False
    """The user said `--i-own-this`."""
    api_key: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Refuse options that mean nothing here, or would change nothing.

        Raises:
            WrongUsageError: there are some.
        """
        if not (math.isfinite(self.pace.per_second) and self.pace.per_second >= 0):
            raise WrongUsageError("--rate is a number from 0")
        if len(self.urls) == 1 and not (self.bootstrap_host is None and self.bootstrap_port is None):
            raise WrongUsageError("--bootstrap-host and --bootstrap-port are for a pair, PREFILL_URL,DECODE_URL")
        if self.reference in self.urls:
            raise WrongUsageError("--reference is another server than the one that is compared with it")
        if self.reference is not None and self.checks and Check.PAIR_IDENTITY not in self.checks:
            raise WrongUsageError(f"--reference is for {Check.PAIR_IDENTITY}, which is not in --checks")

    @property
    def name(self) -> str:
        """The target, as reports call it."""
        return ",".join(self.urls)


def urls_of(target: str) -> tuple[str, ...]:
    """Return the URL, or prefill's and decode's, without a slash at their ends.

    Raises:
        WrongUsageError: when it is neither.
    """
    named = _parsed(target)
    if isinstance(named, Url):
        return (named.url,)
    if named.prefill == named.decode:
        raise WrongUsageError("a pair is two servers, and the same URL is given for prefill and for decode")
    return named.prefill.url, named.decode.url


def url_of(text: str, option: str) -> str:
    """Return the URL of one server, without a slash at its end.

    Raises:
        WrongUsageError: when it is none.
    """
    named = _parsed(text)
    if not isinstance(named, Url):
        raise WrongUsageError(f"{option} is one server, and a pair is given")
    return named.url


def checks_named(text: str, known: Collection[Check]) -> tuple[Check, ...]:
    """Return the checks of a list of names, each once, in the order of `known`.

    Raises:
        WrongUsageError: when there is no such check, with the names that are most like it.
    """
    wanted = [name.strip() for name in text.split(",") if name.strip()]
    if not wanted:
        raise WrongUsageError("--checks names no check; there are: " + ", ".join(known))
    by_name = {check.value.lower(): check for check in known}
    for name in wanted:
        if name.lower() not in by_name:
            near = difflib.get_close_matches(name.lower(), by_name, n=1)
            meant = " or ".join(by_name[one] for one in near)
            raise WrongUsageError(
                f"there is no check {name}"
                + (f"; did you mean {meant}?" if meant else "; there are: " + ", ".join(known))
            )
    return tuple(check for name, check in by_name.items() if name in {one.lower() for one in wanted})


def _parsed(text: str) -> Url | PairOfUrls:
    try:
        named = parse(text)
    except TargetError as error:
        raise WrongUsageError(str(error)) from None
    if not isinstance(named, Url | PairOfUrls):
        raise WrongUsageError(
            "a canary asks servers that run: name one as http://HOST:PORT, or a pair as http://PREFILL,http://DECODE"
        )
    return named
