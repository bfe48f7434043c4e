"""How several answers of one server become rows, one per rank of data parallelism; what contradicts is not told."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from kvfence.domain.capacity import INPUT_MARGIN
from kvfence.domain.diagnosis.seen import EngineSeen
from kvfence.engine.bodies.said import RANKS_LIMIT, Said, count, tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

T = TypeVar("T")


def rows(source: str, answers: Sequence[Said]) -> tuple[EngineSeen, ...]:
    """Return the engines that the answers of one server tell of.

    Args:
        source: as the user named the server.
        answers: of paths that differ. Settings in the first win over those in later ones.
    """
    merging = _Merging(tuple(answers), [note for one in answers for note in one.notes])
    settings = merging.settings()
    pools, limit = merging.pools(), merging.agreed(lambda one: one.input_limit, "longest prompt")
    if 0 in pools:
        pools[0] = merging.of_all_shards(pools[0], limit, settings)
    context = merging.context() or merging.context_by_limit(pools.get(0), limit, settings)
    dp_size = merging.agreed(lambda one: one.dp_size, "number of ranks") or 1
    at_ranks = merging.of_all_ranks(pools, dp_size, settings)
    ranks = sorted(at_ranks) or [0]
    engine = EngineSeen(
        source=source,
        product=merging.agreed(lambda one: one.product, "product"),
        version=merging.agreed(lambda one: one.version, "version"),
        started=True,  # SGLang and vLLM answer over HTTP only once the engine stands
        role=merging.agreed(lambda one: one.role, "role"),
        context_length=context,
        page_size=tokens(settings.get("page_size")),
        reserved_decode_tokens=count(settings.get("num_reserved_decode_tokens")),
        settings=settings,
        keys_shown=tuple(sorted({name for one in answers for name in one.keys_shown})),
        ranks_untold=merging.untold(dp_size - len(ranks)),
        answered=True,
    )
    engine = replace(engine, notes=tuple(dict.fromkeys(merging.notes)))
    many = dp_size > 1 or len(ranks) > 1
    return tuple(
        replace(
            engine,
            rank=rank if many else None,
            kv_pool_tokens=at_ranks.get(rank),
            # The server tells that of its first rank alone; it follows from the pool, which these have in common.
            told_input_limit=limit if rank == 0 or rank not in pools else None,
            ranks_untold=engine.ranks_untold if rank == ranks[0] else 0,
        )
        for rank in ranks
    )


@dataclass(frozen=True)
class _Merging:
    answers: tuple[Said, ...]
    notes: list[str]

    def settings(self) -> Mapping[str, Any]:
        merged: dict[str, Any] = {}
        for one in reversed(self.answers):
            merged.update(one.settings)
        return MappingProxyType(merged)

    def agreed(self, of: Callable[[Said], T | None], what: str) -> T | None:
        told = [(one.where, value) for one in self.answers if (value := of(one)) is not None]
        if len({value for _, value in told}) > 1:
            says = ", ".join(f"{where} says {value}" for where, value in told)
            self.notes.append(f"The {what} is not known, since the server contradicts itself: {says}.")
            return None
        return told[0][1] if told else None

    def pools(self) -> dict[int, int | None]:
        """By rank. Figures that contradict each other leave none: either could be the wrong one."""
        named = [one for one in self.answers if one.pools and one.ranks_named]
        unnamed = [one for one in self.answers if one.pools and not one.ranks_named]
        figures: dict[int, dict[str, int]] = {}
        for one in named:
            for rank, pool in one.pools.items():
                figures.setdefault(rank, {})[one.where] = pool
        for one in unnamed:
            self._add_unnamed(one, figures)
        found: dict[int, int | None] = {}
        for rank, told in figures.items():
            found[rank] = next(iter(told.values()))
            if len(set(told.values())) > 1:
                says = ", ".join(f"{where} says {pool}" for where, pool in told.items())
                self.notes.append(f"The KV pool of rank {rank} is not known, since figures differ: {says}.")
                found[rank] = None
        return found

    def _add_unnamed(self, one: Said, figures: dict[int, dict[str, int]]) -> None:
        """Without names the order may be any, so the figures are compared as a heap with those that have names."""
        whole = [next(iter(told.values())) for told in figures.values()]
        if len(figures) == len(one.pools) and sorted(whole) == sorted(one.pools.values()):
            return
        for rank, pool in one.pools.items():
            figures.setdefault(rank, {})[one.where] = pool

    def context(self) -> int | None:
        """What clients are told counts; what the engine was started with may be more, under a cap put on later."""
        told = [(one.where, one.context) for one in self.answers if one.context is not None]
        if not told:
            return None
        path, offered = next(((where, value) for where, value in told if where == "/v1/models"), told[0])
        for where, value in told:
            if value != offered:
                self.notes.append(f"{path} offers a context of {offered} tokens, and {where} says {value}.")
        return offered

    def context_by_limit(self, pool: int | None, limit: int | None, settings: Mapping[str, Any]) -> int | None:
        """An engine takes prompts shorter than min(context, pool) - 6, so a limit below its pool gives the context.

        Not where something else lowers the limit: a pool with a part for sliding windows, or a diffusion model's block.
        """
        if pool is None or limit is None:
            return None
        bound = limit + INPUT_MARGIN
        if bound >= pool:
            self.notes.append(
                f"The context length is not told. It is not below {min(bound, pool)} tokens: /v1/models has it."
            )
            return None
        if any(one.sliding for one in self.answers) or settings.get("dllm_algorithm"):
            self.notes.append("The context length is not told, and this kind of model limits prompts by more than it.")
            return None
        self.notes.append(f"The context length is what max_req_input_len ({limit}) leaves: {INPUT_MARGIN} tokens more.")
        return bound

    def of_all_shards(self, pool: int | None, limit: int | None, settings: Mapping[str, Any]) -> int | None:
        """With the cache sharded, the figure is that of one shard, and a request can use all of them."""
        if pool is None or limit is None or settings.get("enable_kv_cache_sharding") is not True:
            return pool
        bound = limit + INPUT_MARGIN
        if bound <= pool:
            return pool
        context = self.context()
        if context is not None and bound < context:
            self.notes.append(f"The cache is sharded: max_req_input_len tells that a request can use {bound} tokens.")
            return bound
        self.notes.append(f"The cache is sharded and how much a request can use is not told; it is {bound} at least.")
        return None

    def of_all_ranks(
        self, pools: Mapping[int, int | None], dp_size: int, settings: Mapping[str, Any]
    ) -> Mapping[int, int | None]:
        """With DP attention all ranks are in one process group, and take the smallest figure among them.

        So each has a pool of that size for itself, and one figure is that of all. Figures that differ are not of that.
        """
        told = set(pools.values())
        if settings.get("enable_dp_attention") is not True or len(told) != 1 or None in told or dp_size <= len(pools):
            return pools
        if any(rank >= dp_size for rank in pools):
            return pools
        self.notes.append("With DP attention every rank has a KV pool of this size for itself.")
        return dict.fromkeys(range(dp_size), told.pop())

    def untold(self, missing: int) -> int:
        if missing <= 0:
            return 0
        self.notes.append(
            f"{missing} more ranks of data parallelism are not told of, and their pools may be smaller: ask "
            "/v1/loads of the running server."
        )
        return min(missing, RANKS_LIMIT)
