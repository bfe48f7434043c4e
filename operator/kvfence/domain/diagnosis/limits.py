"""Rules about lengths: what is advertised against what the KV pools hold (R2, W3 and W10 of SGLang's dangers)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import Version

from kvfence.api.declaring import SHORTEST_CONTEXT
from kvfence.api.v1alpha1.pool import RoleType
from kvfence.domain.capacity import INPUT_MARGIN
from kvfence.domain.diagnosis.hits import UPGRADE, Hit
from kvfence.domain.diagnosis.scene import Scene, Server, places
from kvfence.domain.diagnosis.seen import EngineSeen, Product
from kvfence.domain.severity import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

STUB_RETIRED = Version("0.5.20")
"""Before this release a pair answered a prompt that prefill had refused, out of pages that others had written."""


def start_failed(server: Server) -> Iterator[Hit]:
    """The log ends in a failed start."""
    failed = [rank for rank in server.ranks if rank.started is False]
    if failed:
        why = next((note for rank in failed for note in rank.notes), "The last lines of its log say why.")
        fix = "Mend what the end of its log says, start it again, and run kvfence doctor on the server's URL."
        yield Hit("StartFailed", Severity.HIGH, places(failed), f"it takes no requests. {why}", fix)


def context_above_pool(scene: Scene, server: Server) -> Iterator[Hit]:
    """R2: more is advertised than fits. The incident's cause."""
    over = [rank for rank in server.ranks if rank.context_fits is False]
    if not over:
        return
    worst = min(over, key=lambda rank: rank.kv_pool_tokens or 0)
    gone_wrong = server.in_pair and server.older_than(STUB_RETIRED)
    text = f"{worst.context_length} tokens of context are advertised, and the KV pool holds {worst.kv_pool_tokens}. "
    if gone_wrong:
        text += (
            "A pair of this release answers a prompt that does not fit with status 200, out of what other users' "
            "requests left in memory."
        )
    elif server.in_pair:
        text += (
            "A prompt in between passes the first check and is refused by one half only, while the other keeps memory "
            "for it; whether nothing worse happens depends on the release of SGLang."
        )
    else:
        text += "A prompt in between is refused late, cut short or never served, whatever the clients were told."
    severity = Severity.CRITICAL if gone_wrong else Severity.HIGH
    yield Hit("ContextAbovePool", severity, places(over), text, _shorter(scene, server, upgrade=gone_wrong))


def decode_reserve(scene: Scene, server: Server) -> Iterator[Hit]:
    """R2, the finer half: a prompt that fits the pool but not beside what decode keeps back waits for ever."""
    if server.role is not RoleType.DECODE or any(rank.context_fits is not True for rank in server.ranks):
        return
    if server.first.page_size is None or server.first.reserved_decode_tokens is None:
        return
    offer = server.offers
    context = server.first.context_length or 0
    if offer is None or offer >= context:
        return
    text = (
        f"the KV pool holds the {context} tokens of context that are advertised, but not beside the "
        f"{server.first.reserved_decode_tokens} tokens that decode keeps back. A prompt longer than {offer} is never "
        "let in, and everything behind it waits too."
    )
    yield Hit("DecodeReserveTooSmall", Severity.MEDIUM, places(server.ranks), text, _shorter(scene, server))


def limits_disagree(scene: Scene, server: Server) -> Iterator[Hit]:
    """The engine's own limit counts; where it is not what pool and context explain, one of the three is not what it
    seems.
    """
    if server.settings.get("dllm_algorithm"):  # it takes off a block whose size is not told
        return
    for rank in server.measured:
        told, explained = rank.told_input_limit, _explained(rank)
        if told is None or explained is None or told == explained or rank.product is Product.VLLM:
            continue
        text = (
            f"the engine takes prompts shorter than {told} tokens, and its KV pool ({rank.kv_pool_tokens}) and context "
            f"length explain {explained}. "
        )
        if told < explained:
            text += "Longer prompts are refused although they are advertised: something else limits it, for example a "
            text += "smaller pool for sliding windows."
            fix = f"Its log says what binds. Until then advertise what it takes: --context-length {told + INPUT_MARGIN}"
        else:
            text += "It would take more than its pool holds, or one of these figures is not of this engine."
            fix = f"Ask the running server by its URL. Until that is clear:\n{_shorter(scene, server)}"
        yield Hit("LimitsDisagree", Severity.HIGH, places([rank]), text, fix)


def ranks_differ(server: Server) -> Iterator[Hit]:
    """W10: which rank a request gets decides how long it may be."""
    pools = [rank.kv_pool_tokens for rank in server.measured]
    if len(set(pools)) > 1:
        text = f"its ranks have KV pools of {pools[0]} to {pools[-1]} tokens, and /server_info shows that of one alone."
        fix = f"So that all ranks have the same, start it with: --max-total-tokens {pools[0]}"
        yield Hit("RanksDiffer", Severity.LOW, places(server.ranks), text, fix)


def pool_not_as_wanted(server: Server) -> Iterator[Hit]:
    """W3: the flag is an upper bound, and SGLang lowers it with a line in its log.

    The row's other half, that none is set so that engines drift apart, is no finding: pools that did drift are.
    """
    wanted = server.settings.get("max_total_tokens")
    for rank in server.measured[:1]:
        pool, page = rank.kv_pool_tokens, rank.page_size
        if type(wanted) is int and pool is not None and page is not None and wanted - pool >= page:
            text = f"--max-total-tokens asks for a KV pool of {wanted} tokens, and it has {pool}."
            fix = f"Raise --mem-fraction-static until it fits, or start it with: --max-total-tokens {pool}"
            yield Hit("PoolSmallerThanAsked", Severity.LOW, places([rank]), text, fix)


def _explained(rank: EngineSeen) -> int | None:
    """The limit is from the engine's start; under a cap put on later clients may be told of less context than that."""
    started_with = rank.settings.get("context_length")
    context = started_with if type(started_with) is int else rank.context_length
    if rank.kv_pool_tokens is None or context is None:
        return None
    return max(0, min(rank.kv_pool_tokens, context) - INPUT_MARGIN)


def _shorter(scene: Scene, server: Server, *, upgrade: bool = False) -> str:
    """Say which length to start with, for all servers that a request passes."""
    offer = scene.offers(server)
    if offer is None or offer < SHORTEST_CONTEXT:
        return "Give it more memory for its KV pool (--mem-fraction-static, or more GPUs): no context fits as it is."
    if server.product is Product.VLLM:
        return f"Start it again with: --max-model-len {offer}"
    if not server.in_pair:
        return f"Start it again with: --context-length {offer}"
    fix = f"Start both halves of the pair again with: --context-length {offer}"
    seen = {one.role for one in scene.halves if one.offers is not None}
    if len(seen) < 2:
        fix = f"(The half that was not seen may hold less: give both to kvfence doctor.)\n{fix}"
    return f"{UPGRADE}\n{fix}" if upgrade else fix
