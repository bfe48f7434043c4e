"""What the answers of an SGLang server say: `/server_info`, `/model_info`, `/v1/loads` and `/v1/models`.

Older releases have the server's arguments at the top, newer ones within `internal_states` too, one entry per rank of
data parallelism; people who save a body flatten it. The numbers at the top are those of the first rank.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kvfence.api.v1alpha1.pool import RoleType
from kvfence.domain.diagnosis.seen import Product
from kvfence.engine import fields
from kvfence.engine.bodies.keys import without_keys
from kvfence.engine.bodies.said import RANKS_LIMIT, Said, tokens, unreadable_numbers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SERVER_INFO = "/server_info"
MODEL_INFO = "/model_info"
LOADS = "/v1/loads"
MODELS = "/v1/models"

_ROLES = {"prefill": RoleType.PREFILL, "decode": RoleType.DECODE, "null": RoleType.UNIFIED}
"""`disaggregation_mode`; the string null, and not JSON's null, is that of a server without a partner."""

_NUMBERS = ("max_total_num_tokens", "max_req_input_len", "context_length")
_OWN = frozenset({"max_total_num_tokens", "max_req_input_len", "effective_max_running_requests_per_dp"})
"""Names that only SGLang's server has."""
_NO_SETTINGS = frozenset(
    {"internal_states", "memory_usage", "launch_command", "data", "loads", "status", "startup_time", "version"}
)
"""What stands beside the arguments in an answer. The command line says them again, keys included."""


def is_server_info(body: Mapping[str, Any]) -> bool:
    """Whether an object looks like `/server_info`, whole or cut."""
    usage = body.get("memory_usage")
    return (
        not _OWN.isdisjoint(body)
        or isinstance(body.get("internal_states"), list)
        or (isinstance(usage, dict) and "token_capacity" in usage)
        or {"disaggregation_mode", "tp_size"} <= body.keys()
    )


def server_info(body: Mapping[str, Any], where: str = SERVER_INFO) -> Said:
    """Return what `/server_info` says."""
    states = body.get("internal_states")
    ranks = [one for one in states if isinstance(one, dict)] if isinstance(states, list) else []
    ranks = ranks[:RANKS_LIMIT]
    merged = {**body, **{name: value for name, value in (ranks or [{}])[0].items() if body.get(name) is None}}
    settings, shown = without_keys({name: merged[name] for name in merged if name not in _NO_SETTINGS})
    outside = {name: value for name, value in body.items() if name != "internal_states"}
    more = [name for one in (outside, *ranks) for name in without_keys(one)[1]]
    pools, notes = _pools(body, ranks)
    return Said(
        where=where,
        product=Product.SGLANG,
        version=fields.text(merged.get("version")),
        role=_role(merged),
        pools=pools,
        ranks_named=len(pools) < 2,
        dp_size=_dp_size(merged),
        context=tokens(merged.get("context_length")),
        input_limit=tokens(merged.get("max_req_input_len")),
        settings=settings,
        keys_shown=tuple(sorted({*shown, *more})),
        sliding=any(_usage(one).get("token_capacity_swa") is not None for one in (body, *ranks)),
        notes=(*notes, *unreadable_numbers(merged, _NUMBERS)),
    )


def is_model_info(body: Mapping[str, Any]) -> bool:
    """Whether an object looks like `/model_info`, which has the model and no sizes."""
    return "model_path" in body and ("is_generation" in body or "tokenizer_path" in body)


def model_info(body: Mapping[str, Any]) -> Said:
    """Return what `/model_info` says."""
    settings, shown = without_keys({name: body[name] for name in ("model_path", "tokenizer_path") if name in body})
    note = "/model_info tells neither the KV pool nor the context length: ask /server_info and /v1/models."
    return Said(MODEL_INFO, Product.SGLANG, role=_role(body), settings=settings, keys_shown=shown, notes=(note,))


def is_loads(body: Mapping[str, Any]) -> bool:
    """Whether an object looks like `/v1/loads`."""
    loads = body.get("loads")
    return isinstance(loads, list) and any(isinstance(one, dict) and "dp_rank" in one for one in loads)


def loads(body: Mapping[str, Any]) -> Said:
    """Return what `/v1/loads` says: the one answer that names ranks."""
    pools: dict[int, int] = {}
    notes: list[str] = []
    listed = body.get("loads")
    for one in listed[:RANKS_LIMIT] if isinstance(listed, list) else []:
        rank = fields.number(one.get("dp_rank")) if isinstance(one, dict) else None
        pool = _load(one) if rank is not None else None
        if rank is None or pool is None:
            continue
        if pools.setdefault(rank, pool) != pool:
            notes.append(f"{LOADS} has rank {rank} twice, with different pools; neither is counted.")
            pools[rank] = -1
    return Said(
        where=LOADS,
        product=Product.SGLANG,
        version=fields.text(body.get("version")),
        pools={rank: pool for rank, pool in pools.items() if pool > 0},
        notes=tuple(notes),
    )


def is_models(body: Mapping[str, Any]) -> bool:
    """Whether an object looks like `/v1/models`, of whichever server."""
    listed = body.get("data")
    return isinstance(listed, list) and any(
        isinstance(one, dict) and ("max_model_len" in one or "owned_by" in one) for one in listed
    )


def models(body: Mapping[str, Any]) -> Said:
    """Return what `/v1/models` says: the context length that is advertised, which is not the pool."""
    listed = [one for one in body["data"] if isinstance(one, dict)]
    makers = {fields.text(one.get("owned_by")) for one in listed}
    made = [product for product in (Product.SGLANG, Product.VLLM) if product.value in makers]
    lengths = {length for one in listed if (length := tokens(one.get("max_model_len"))) is not None}
    names = [name for one in listed if not one.get("parent") and (name := fields.text(one.get("id")))]
    said = ", ".join(str(length) for length in sorted(lengths))
    return Said(
        where=MODELS,
        product=made[0] if len(made) == 1 else None,
        context=next(iter(lengths)) if len(lengths) == 1 else None,
        settings={"served_model_name": names[0]} if len(names) == 1 else {},
        notes=(f"{MODELS} offers several context lengths ({said}); none is counted.",) if len(lengths) > 1 else (),
    )


def _role(body: Mapping[str, Any]) -> RoleType | None:
    return _ROLES.get(fields.text(body.get("disaggregation_mode")) or "")


def _dp_size(body: Mapping[str, Any]) -> int | None:
    size = tokens(body.get("dp_size"))
    return size if size is not None and size <= RANKS_LIMIT else None


def _usage(body: Mapping[str, Any]) -> Mapping[str, Any]:
    usage = body.get("memory_usage")
    return usage if isinstance(usage, dict) else {}


def _load(one: Mapping[str, Any]) -> int | None:
    """`memory.token_capacity` is the same figure from the same place, where an older release has only that."""
    memory = one.get("memory")
    capacity = tokens(memory.get("token_capacity")) if isinstance(memory, dict) else None
    return tokens(one.get("max_total_num_tokens")) or capacity


def _pools(body: Mapping[str, Any], ranks: Sequence[Mapping[str, Any]]) -> tuple[dict[int, int], list[str]]:
    """Of each rank that is told of. `token_capacity_swa` beside it is the part for sliding windows, and no pool."""
    capacities = {rank: tokens(_usage(one).get("token_capacity")) for rank, one in enumerate(ranks)}
    pools = {rank: pool for rank, pool in capacities.items() if pool is not None}
    notes: list[str] = []
    top = {tokens(body.get("max_total_num_tokens")), tokens(_usage(body).get("token_capacity"))} - {None}
    first = next(iter(top)) if len(top) == 1 else None
    listed = set(pools.values())
    if len(top) > 1 or (first is not None and listed and first not in listed):
        figures = ", ".join(str(figure) for figure in sorted({*(one for one in top if one), *listed}))
        notes.append(f"The KV pool is not known, since figures in one answer differ: {figures}.")
        return {}, notes
    if first is not None and not pools:
        pools[0] = first
    return pools, notes
