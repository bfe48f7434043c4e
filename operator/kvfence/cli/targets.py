"""What a TARGET is: told from how it is written alone, so that a file which happens to lie there changes nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

SELECTOR = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,316}=[A-Za-z0-9._-]{0,63}")
"""One `key=value` of a label selector."""
POD = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
"""Name of a pod, as Kubernetes allows it; none can begin with a dash as an option does."""
NAMESPACE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
PAIR = re.compile(r",(?=https?://)")
"""A comma may stand in a path; one in front of a scheme parts two addresses."""


class TargetError(ValueError):
    """A TARGET that is no target; the message says what to write instead, and quotes no password."""


@dataclass(frozen=True, slots=True)
class Url:
    """A server or a router that answers."""

    url: str
    """Without a slash at its end."""


@dataclass(frozen=True, slots=True)
class PairOfUrls:
    """Prefill and decode of one pair."""

    prefill: Url
    decode: Url


@dataclass(frozen=True, slots=True)
class LogOrBody:
    """A file: what a server logged, or what it answered."""

    path: str


@dataclass(frozen=True, slots=True)
class Pipe:
    """Standard input, with what a file may have."""


@dataclass(frozen=True, slots=True)
class Selected:
    """The pods that a label selector selects."""

    selector: str


@dataclass(frozen=True, slots=True)
class Pod:
    """One pod."""

    name: str


Target = Url | PairOfUrls | LogOrBody | Pipe | Selected | Pod


def parse(written: str) -> Target:
    """Return what is meant.

    Raises:
        TargetError: it cannot be any of them.
    """
    if written == "-":
        return Pipe()
    if "://" in written.partition("=")[0] or written.startswith(("http:", "https:")):
        return _addresses(written)
    if written.startswith("pod/"):
        if not POD.fullmatch(written.removeprefix("pod/")):
            raise TargetError(f"{written}: that is no name of a pod; for a file write ./{written}")
        return Pod(written.removeprefix("pod/"))
    if all(SELECTOR.fullmatch(part) for part in written.split(",")):
        return Selected(written)
    if not written or "\0" in written:
        raise TargetError("an empty TARGET, or one with a zero byte, is no target")
    return LogOrBody(written)


def parse_all(written: list[str]) -> list[Target]:
    """Return all of them, in their order.

    Raises:
        TargetError: one is none, or the pipe is named twice.
    """
    targets = [parse(one) for one in written]
    if targets.count(Pipe()) > 1:
        raise TargetError("- stands for standard input, which can be read once only")
    return targets


def _addresses(written: str) -> Url | PairOfUrls:
    parts = PAIR.split(written)
    if len(parts) > 2:
        raise TargetError("a pair is PREFILL_URL,DECODE_URL; give further servers as targets of their own")
    urls = [_address(part) for part in parts]
    return urls[0] if len(urls) == 1 else PairOfUrls(*urls)


def _address(written: str) -> Url:
    """Check an address. What is in front of an @ may be a password, and what follows a ? a token: neither is quoted."""
    try:
        parts = urlsplit(written)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise TargetError("an address cannot be read: it is written http://HOST:PORT") from None
    if parts.username is not None or parts.password is not None:
        raise TargetError(
            "an address has a user or password in it, which reports would show; leave it out, and give a server's API "
            "key in the environment variable KVFENCE_API_KEY"
        )
    if parts.query or parts.fragment:
        raise TargetError("an address has a ? or # in it; a server's base address is wanted, such as http://HOST:PORT")
    if parts.scheme not in {"http", "https"} or not host or not written.isprintable() or " " in written:
        raise TargetError("an address is written http://HOST:PORT or https://HOST:PORT")
    return Url(written.rstrip("/").removesuffix("/v1").rstrip("/"))
