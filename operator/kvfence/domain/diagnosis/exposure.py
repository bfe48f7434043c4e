"""Rules about what anybody can reach: keys in clear, a router's control plane, an engine's facts through a router."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import Version

from kvfence.api.v1alpha1.pool import RoleType
from kvfence.domain.advisories.judging import release
from kvfence.domain.diagnosis.hits import Hit
from kvfence.domain.diagnosis.seen import Product
from kvfence.domain.severity import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kvfence.domain.diagnosis.scene import Scene, Server
    from kvfence.domain.diagnosis.seen import RouterSeen

JOINING = Version("0.3.2")
"""Up to this release sglang-router waits for both halves, whatever one of them has answered."""

_KEYS_FIX = (
    "Make new keys, and let no client reach /server_info and /get_server_info (allow only /v1/completions, "
    "/v1/chat/completions and /v1/models at the proxy in front); keep logs of its start as secret as the keys."
)


def keys_shown(server: Server) -> Iterator[Hit]:
    """Names only: the values are in nothing that was kept."""
    names = sorted({name for rank in server.ranks for name in rank.keys_shown})
    if names:
        text = f"it tells keys in clear ({', '.join(names)}): whoever may read this may use them."
        yield Hit("KeysShown", Severity.HIGH, server.source, text, _KEYS_FIX)


def control_plane(router: RouterSeen) -> Iterator[Hit]:
    """Who may list workers without a key may enrol one."""
    if router.control_plane_open is not True:
        return
    text = (
        "its control plane is open: whoever reaches this address can enrol a server of their own as a worker, and is "
        "sent the prompts of users."
    )
    key = "'admin:admin:admin:LONG_RANDOM_KEY'"
    fix = (
        f"Start it with: --control-plane-api-keys {key}\n"
        "and let the proxy in front pass only /v1/completions, /v1/chat/completions and /v1/models."
    )
    yield Hit("ControlPlaneOpen", Severity.CRITICAL, router.source, text, fix)


def server_info(router: RouterSeen) -> Iterator[Hit]:
    """smg answers it without a key whatever it is started with."""
    if router.server_info_open is True:
        keys = f", keys among them ({', '.join(router.keys_shown)})" if router.keys_shown else ""
        text = f"it hands all settings of an engine{keys} to whoever asks for /get_server_info."
        severity = Severity.HIGH if router.keys_shown else Severity.MEDIUM
        yield Hit("ServerInfoOpen", severity, router.source, text, f"Block /get_server_info in front. {_KEYS_FIX}")


def waits_for_decode(scene: Scene, router: RouterSeen) -> Iterator[Hit]:
    """W6, as far as it shows: pools of different size behind a router that waits for the larger one."""
    version = release(router.version)
    if router.product is not Product.SGLANG_ROUTER or version is None or version > JOINING:
        return
    for shorter in _pools_apart(scene):
        text = (
            "a prompt that prefill refuses is waited for until decode gives up, some 300 s, and is then tried anew: a "
            "few such prompts fill the pool."
        )
        fix = f"Start the router with: --disable-retries\nand both halves with: --context-length {shorter}"
        yield Hit("RouterWaitsForDecode", Severity.MEDIUM, router.source, text, fix)


def undecided(scene: Scene, router: RouterSeen) -> Iterator[str]:
    """Yield what depends on the router's version, where that is no release or is not told: no such router tells it."""
    if router.product is Product.SGLANG_ROUTER and release(router.version) is None and any(_pools_apart(scene)):
        yield (
            f"whether it waits for decode when prefill has refused a prompt, as releases up to {JOINING} do, is not "
            "known, since no such router tells its version; pip show sglang-router tells it where the router runs."
        )


def _pools_apart(scene: Scene) -> Iterator[int]:
    """Yield what prefill can keep, for each pair of which the context on offer is more than that."""
    for part in scene.apart():
        prefill = [one.offers for one in part.role(RoleType.PREFILL) if one.offers]
        advertised = [one.first.context_length or 0 for one in part.halves]
        if prefill and max(advertised, default=0) > min(prefill):
            yield min(prefill)
