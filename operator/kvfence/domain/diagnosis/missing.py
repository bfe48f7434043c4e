"""What could not be told, and how to get it: each one sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvfence.api.v1alpha1.pool import RoleType
from kvfence.domain.diagnosis import exposure
from kvfence.domain.diagnosis.hits import named
from kvfence.domain.diagnosis.scene import HALVES, places
from kvfence.domain.diagnosis.seen import Product, Unreadable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kvfence.domain.advisories import Advisory
    from kvfence.domain.diagnosis.scene import Scene, Server
    from kvfence.domain.diagnosis.seen import Seen

RESERVED_DECODE_TOKENS = 512
"""What a decode engine of SGLang keeps back unless it is told otherwise (`--num-reserved-decode-tokens`)."""


def unreadable(seen: Sequence[Seen]) -> Iterator[str]:
    """Sources that tell nothing."""
    return (f"{one.source}: {one.why}" for one in seen if isinstance(one, Unreadable))


def of_server(server: Server) -> Iterator[str]:
    """Yield what one engine does not tell."""
    where, untold = server.source, _untold(server)
    if untold:
        verb = "is" if len(untold) == 1 else "are"
        listed = " and ".join([", ".join(untold[:-1]), untold[-1]] if len(untold) > 1 else untold)
        yield f"{where}: {listed} {verb} not told; the URL of the running server tells ({_PATHS})."
    if server.first.version is not None and server.product is Product.SGLANG and server.release is None:
        yield (
            f"{where}: the version is no release of SGLang, so that nobody can say which fixes are in it; run a "
            "release to be sure."
        )
    if ranks := sum(rank.ranks_untold for rank in server.ranks):
        yield f"{where}: {ranks} more ranks are not told of; give the URL of the running server, which tells all."


_PATHS = "/server_info, /v1/models"
_KEPT_BACK = f"what decode keeps back of its pool (SGLang's default is {RESERVED_DECODE_TOKENS} tokens)"


def _untold(server: Server) -> list[str]:
    started = [rank for rank in server.ranks if rank.started is not False]
    without_pool = [rank for rank in started if rank.kv_pool_tokens is None]
    which = f" of {places(without_pool)}" if without_pool and len(without_pool) < len(server.ranks) else ""
    things = (
        (bool(without_pool), f"the size of the KV pool{which}"),
        (any(rank.context_length is None for rank in started), "the advertised context"),
        (server.product is not Product.VLLM and server.first.version is None, "the version"),
        (server.product is Product.SGLANG and not server.settings, "the settings"),
        (any(rank.keeps_back is None and rank.kv_pool_tokens for rank in started), _KEPT_BACK),
    )
    return [thing for lacks, thing in things if lacks]


def of_scene(scene: Scene) -> Iterator[str]:
    """Yield what is not told of all together."""
    for group in scene.half_pairs():
        yield _half_pair(group)
    if scene.halves and not any(server.environment for server in scene.halves):
        yield (
            "The variables of the engines' processes are not told; on Kubernetes their pods tell them: kvfence doctor "
            "LABEL=VALUE."
        )
    for router in scene.routers:
        if router.control_plane_open is None:
            yield f"{router.source}: whether the control plane is open is not told; give the URL of the running router."
        if router.server_info_open is None:
            yield (
                f"{router.source}: whether it hands an engine's settings to anybody is not told; give the URL of the "
                "running router, with an engine behind it."
            )
        yield from (f"{router.source}: {one}" for one in exposure.undecided(scene, router))
        if not scene.servers:
            workers = f" ({', '.join(router.workers[:4])})" if router.workers else ""
            yield f"{router.source}: a router tells no sizes; give the URLs of the engines behind it{workers} too."


def _half_pair(group: Sequence[Server]) -> str:
    seen = {server.role for server in group}
    names = named([server.source for server in group])
    if not seen & HALVES:
        return f"{names}: named as a pair, and neither says that it is a half of one; a pair is PREFILL_URL,DECODE_URL."
    here, other = ("prefill", "decode") if RoleType.PREFILL in seen else ("decode", "prefill")
    return (
        f"{names}: of a pair only {here} was seen, and {other} may have a smaller KV pool; give both as "
        "PREFILL_URL,DECODE_URL."
    )


def of_advisories(advisories: Sequence[Advisory]) -> Iterator[str]:
    """Yield that nothing is known here."""
    if not advisories:
        yield "No advisories were looked at, so that known faults are not told."
