"""The cap by hand: from the KV pools that the engines report, with the pool's own settings. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kvfence.api.v1alpha1.pool import PoolSpec, RoleType
from kvfence.domain.capacity import INPUT_MARGIN, Measured, PoolId, Wanted, context_that_fits

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from e2e.demo.view import View

RESERVED_DECODE_TOKENS = 512
"""SGLang's default of `--num-reserved-decode-tokens`."""


@dataclass(frozen=True)
class Sum:
    """What fits, and how that comes about."""

    tokens: int
    lines: tuple[str, ...]
    """One for each role."""


def worked_out(view: View) -> Sum:
    """Work the cap out from what the engines report; needs every role's `kvPoolTokens`."""
    spec = PoolSpec.model_validate(view.manifest["spec"])
    wanted = Wanted.of(spec)
    types = {role.name: role.type for role in spec.roles}
    flags = {role["name"]: _arguments(view.manifest["spec"], role) for role in view.manifest["spec"]["roles"]}
    pools = [_measured(str(role["name"]), int(role["kvPoolTokens"]), types, flags, wanted) for role in view.roles]
    smallest = min(pools, key=lambda pool: context_that_fits(pool, wanted))
    tokens = min(context_that_fits(smallest, wanted), wanted.ceiling)
    width = max(len(pool.where.role) for pool in pools)
    lines = [
        f"{pool.where.role:<{width}}  {_words(pool, wanted)}"
        + (" <- the smallest: the cap" if pool is smallest and tokens < wanted.ceiling else "")
        for pool in pools
    ]
    return Sum(tokens, tuple(lines))


def _measured(
    name: str, tokens: int, types: Mapping[str, RoleType], flags: Mapping[str, Sequence[str]], wanted: Wanted
) -> Measured:
    decode = types[name] is RoleType.DECODE
    reserved = int(flag(flags[name], "--num-reserved-decode-tokens") or RESERVED_DECODE_TOKENS)
    return Measured(
        PoolId(name, name),
        types[name],
        tokens,
        int(flag(flags[name], "--page-size") or 1),
        min(wanted.ceiling, tokens) - INPUT_MARGIN,
        reserved if decode else 0,
    )


def _words(pool: Measured, wanted: Wanted) -> str:
    parts = [f"{pool.kv_pool_tokens:,}"]
    if pool.reserved_decode_tokens:
        parts.append(f"- {pool.reserved_decode_tokens:,} for requests under way - 1 page of {pool.page_size:,}")
    parts.append(f"- {wanted.headroom_percent} % headroom")
    if wanted.reserve_tokens:
        parts.append(f"- {wanted.reserve_tokens:,} reserved")
    return f"{' '.join(parts)} = {context_that_fits(pool, wanted):,}"


def flag(arguments: Sequence[str], name: str) -> str | None:
    """Return the value of a flag, `--name value` or `--name=value`; the last one counts, as for SGLang."""
    found = None
    for at, word in enumerate(arguments):
        if word.startswith(f"{name}="):
            found = word.partition("=")[2]
        elif word == name and at + 1 < len(arguments):
            found = arguments[at + 1]
    return found


def _arguments(spec: Mapping[str, Any], role: Mapping[str, Any]) -> list[str]:
    return [*(spec["engine"].get("sglang") or {}).get("args", []), *role.get("args", [])]
