"""What is known of each server, of what it told. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvfence.api.v1alpha1.pool import RoleType
from kvfence.cli.canary.asked import WrongUsageError
from kvfence.domain.diagnosis.seen import EngineSeen, RouterSeen
from kvfence.engine import fields
from kvfence.verify.canary.session import Known

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kvfence.domain.asking import Reply
    from kvfence.domain.diagnosis.seen import Seen

BOOTSTRAP_PORT = "disaggregation_bootstrap_port"
"""Of SGLang's settings: where prefill tells decode about its KV."""

PORTS = range(1, 65536)

MODEL_LIMIT = 100
"""Names of `/v1/models` that are looked at."""

BELIEVED = 2**24
"""Tokens: a figure above is not believed, or a server could make us write prompts without end."""

_NAMES = {RoleType.PREFILL: "prefill", RoleType.DECODE: "decode"}


def known(name: str, url: str, seen: Sequence[Seen]) -> Known:
    """Return what holds for every rank of a server, and what each of them has where they differ.

    A figure that one rank does not tell is not known of the server.

    Args:
        name: of the leg.
        url: of the server.
        seen: all that was seen at this URL.
    """
    engines = [one for one in seen if isinstance(one, EngineSeen)]
    ranks = tuple(
        Known(
            name,
            url,
            believed(one.kv_pool_tokens),
            believed(one.context_length),
            believed(one.max_input_tokens),
            believed(one.page_size),
            one.version,
        )
        for one in engines
    )
    context = _least(believed(engine.context_length) for engine in engines)
    if any(one.ranks_untold for one in engines):
        ranks = (*ranks, Known(name, url, context_length=context))  # those have pools of their own
    pages = {believed(engine.page_size) for engine in engines}
    versions = {engine.version for engine in engines}
    return Known(
        name,
        url,
        kv_pool_tokens=_least(believed(engine.kv_pool_tokens) for engine in engines),
        context_length=context,
        max_input_tokens=_least(believed(engine.max_input_tokens) for engine in engines),
        page_size=pages.pop() if len(pages) == 1 else None,
        version=versions.pop() if len(versions) == 1 else None,
        ranks=ranks if len(set(ranks)) > 1 else (),
    )


def believed(tokens: int | None) -> int | None:
    """Return a figure that a server may have."""
    return tokens if tokens is not None and tokens <= BELIEVED else None


def role_of(seen: Sequence[Seen]) -> RoleType | None:
    """Return what a server says that it is; none when it does not, or its ranks disagree."""
    roles = {one.role for one in seen if isinstance(one, EngineSeen)}
    return roles.pop() if len(roles) == 1 else None


def name_of(seen: Sequence[Seen]) -> str:
    """Return what a server that stands alone, or behind a router, is called."""
    role = role_of(seen)
    return "server" if role is None else _NAMES.get(role, "server")


def router_of(seen: Sequence[Seen]) -> RouterSeen | None:
    """Return the router that was seen; none when it is a server."""
    return next((one for one in seen if isinstance(one, RouterSeen)), None)


def refuse_wrong_roles(urls: Sequence[str], seen: Sequence[Sequence[Seen]]) -> None:
    """Raise when what was named as a server, or as prefill or decode, says that it is something else.

    Raises:
        WrongUsageError: with how to name it.
    """
    if len(urls) == 1:
        role = role_of(seen[0])
        if role in _NAMES and router_of(seen[0]) is None:
            raise WrongUsageError(
                f"{urls[0]} is the {_NAMES[role]} half of a pair and cannot answer alone: name both halves as "
                "PREFILL,DECODE, or the router in front of them"
            )
        return
    for url, each, wanted in zip(urls, seen, _NAMES, strict=True):
        role = role_of(each)
        if router_of(each) is not None:
            raise WrongUsageError(f"{url} is a router, which is named alone; a pair is PREFILL,DECODE")
        if role is not None and role is not wanted:
            told = _NAMES.get(role, "no half of a pair")
            raise WrongUsageError(
                f"{url} is named as {_NAMES[wanted]} and says that it is {told}; a pair is PREFILL,DECODE"
            )


def bootstrap_port(seen: Sequence[Seen]) -> int | None:
    """Return where prefill says that decode finds it; none when it does not."""
    ports = {fields.number(one.settings.get(BOOTSTRAP_PORT)) for one in seen if isinstance(one, EngineSeen)}
    port = ports.pop() if len(ports) == 1 else None
    return port if port in PORTS else None


def models_of(reply: Reply) -> tuple[str, ...]:
    """Return the names of the models that `/v1/models` lists; none when it cannot be read."""
    if reply.fault is not None or reply.status != 200:
        return ()
    try:
        listed = fields.read_object(reply.body, "/v1/models").get("data")
    except ValueError:
        return ()
    entries = listed[:MODEL_LIMIT] if isinstance(listed, list) else []
    names = (fields.text(entry.get("id")) for entry in entries if isinstance(entry, dict))
    return tuple(name for name in names if name)


def _least(told: Iterable[int | None]) -> int | None:
    figures = tuple(told)
    numbers = [figure for figure in figures if figure is not None]
    return min(numbers) if numbers and len(numbers) == len(figures) else None
