"""Which requests may go on to SGLang, judged by method, path and fields. Pure.

The judge is asked twice: about the body as it came, so that a refusal is a plain answer with a real status before
anything was made of it; and about the object that SGLang made of body and headers, since only that is what SGLang acts
on. No sentence here repeats what a client sent.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

PASS_FIELD = "kvfence_pass"  # noqa: S105 - the name of a field
"""Of the body, at its top level: routers drop headers they do not know, SGLang drops fields it does not know."""

FAKE_HOST = "2.2.2.2"
"""`FAKE_BOOTSTRAP_HOST` of SGLang: a transfer that never happens counts as done, and decode reads what was there."""

HEALTH_CHECK = "HEALTH_CHECK"
"""`HEALTH_CHECK_RID_PREFIX` of SGLang: such requests are admitted without the KV checksum."""

ROOMS = 2**63
"""Rooms are signed 64-bit integers."""

INTERNAL_FIELDS = frozenset(
    {
        # Where a request runs is the pool's choice.
        *("routed_dp_rank", "data_parallel_rank", "disagg_prefill_dp_rank", "decode_tp_size", "bootstrap_pair_key"),
        # These reach into what other requests left behind, or past the count of the prompt's tokens.
        *("session_params", "input_embeds", "positional_embed_overrides", "need_wait_for_mm_inputs"),
        *("num_items_assigned", "encoder_urls"),
        # Who an answer goes to, and which adapter's KV is shared.
        *("http_worker_ipc", "lora_id"),
    }
)
"""SGLang takes them from anyone; they are meant for its own parts and for trusted routers."""


class Route(Enum):
    """What the door does about a path."""

    INFER = "infer"
    """A prompt: judged, and let through as far as the door is open."""
    HEALTH = "health"
    """Makes up a request inside SGLang: let through when the door is open or on canary, else 503."""
    OBSERVE = "observe"
    """Says something about the engine and changes nothing: always let through."""
    REFUSE = "refuse"
    """Anything else."""


class Why(str, Enum):
    """Why a request is refused."""

    INTERNAL_FIELD = "InternalField"
    HEALTH_CHECK_RID = "HealthCheckRid"
    FAKE_HOST = "FakeHost"
    UNKNOWN_PEER = "UnknownPeer"
    NO_ROOM = "NoRoom"
    BATCH = "Batch"
    NOT_JSON = "NotJson"
    ENCODED = "Encoded"
    TOO_LARGE = "TooLarge"
    CLOSED = "Closed"
    NO_PASS = "NoPass"  # noqa: S105 - a reason, no password
    NO_SUCH_PATH = "NoSuchPath"
    TOO_LONG = "TooLong"
    CANARY_RID = "CanaryRid"
    SEEN_BEFORE = "SeenBefore"
    BAD_NONCE = "BadNonce"


@dataclass(frozen=True)
class Refused:
    """What a client gets instead of an answer."""

    status: int
    why: Why
    sentence: str


@dataclass(frozen=True)
class Leg:
    """What the engine is of a pair."""

    disaggregated: bool
    peers: frozenset[str]
    """`host:port` of the admitted prefill engines."""


_INFER = ("/v1/completions", "/v1/chat/completions", "/generate")
_HEALTH = ("/health", "/health_generate", "/ready")
_OBSERVE = (
    *("/v1/models", "/model_info", "/get_model_info", "/server_info", "/get_server_info", "/v1/loads", "/loads"),
    *("/metrics", "/metrics/", "/openapi.json"),
)
_ROUTES = {
    **{("POST", path): Route.INFER for path in _INFER},
    **{("GET", path): Route.HEALTH for path in _HEALTH},
    **{("GET", path): Route.OBSERVE for path in _OBSERVE},
}


def route(method: str, path: str) -> Route:
    """Return what is done about a path. A list of what is let through: a new version's new paths are refused."""
    if method == "GET" and path.startswith("/v1/models/"):
        return Route.OBSERVE
    return _ROUTES.get((method, path), Route.REFUSE)


def judge(fields: Mapping[str, object], leg: Leg) -> Refused | None:
    """Return why a request with these fields may not go on; none when it may.

    Args:
        fields: of the body, or the attributes of SGLang's object; what is absent or null is not set.
        leg: what this engine is, and whom it may get KV from.
    """
    for name in INTERNAL_FIELDS:
        if fields.get(name) is not None:
            return _bad(Why.INTERNAL_FIELD, f"the field {name} is not for clients")
    rid = fields.get("rid")
    if any(isinstance(one, str) and one.startswith(HEALTH_CHECK) for one in (rid if isinstance(rid, list) else [rid])):
        return _bad(Why.HEALTH_CHECK_RID, f"a request id that begins with {HEALTH_CHECK} is not for clients")
    if _is_batch(fields):
        # One item could be taken and its partner refused: one leg then waits for the other until it times out.
        return _bad(Why.BATCH, "one prompt per request, please: a list of prompts cannot be refused as one")
    return _judge_pair(fields, leg)


def names(fields: Mapping[str, object]) -> list[tuple[str, bytes]]:
    """Return what no other request of this boot may be called: its room, and its id when the client gave one.

    As hashes: they are remembered, and a client can make its id as long as a body.
    """
    found = [("room", _single(fields.get("bootstrap_room"))), ("rid", _single(fields.get("rid")))]
    return [(what, hashlib.sha256(repr(name).encode()).digest()) for what, name in found if isinstance(name, str | int)]


def passes(fields: Mapping[str, object]) -> str | None:
    """Return the hash of the pass in the body; none when there is none."""
    shown = fields.get(PASS_FIELD)
    return hashlib.sha256(shown.encode(errors="replace")).hexdigest() if isinstance(shown, str) else None


def over_the_cap(tokens: int, longest: int) -> Refused:
    """Return the refusal of a prompt that is too long, in numbers of tokens."""
    return _bad(Why.TOO_LONG, f"the prompt has {tokens} tokens, and this pool takes at most {longest}")


def _judge_pair(fields: Mapping[str, object], leg: Leg) -> Refused | None:
    host, port, room = (_single(fields.get(f"bootstrap_{name}")) for name in ("host", "port", "room"))
    if host == FAKE_HOST:
        return _bad(Why.FAKE_HOST, "that bootstrap host stands for a transfer that never happens")
    if not leg.disaggregated:
        if (host, port, room) != (None, None, None):
            return _bad(Why.INTERNAL_FIELD, "bootstrap fields are not for this engine: it has no partner")
        return None
    if not isinstance(host, str) or type(port) is not int or f"{host}:{port}" not in leg.peers:
        return _bad(Why.UNKNOWN_PEER, "the bootstrap host and port are not those of an admitted prefill engine")
    if type(room) is not int or not 0 <= room < ROOMS:
        return _bad(Why.NO_ROOM, "the bootstrap room must be one whole number of 63 bits")
    return None


def _is_batch(fields: Mapping[str, object]) -> bool:
    """Whether there is more than one prompt: a list of texts, or of lists of token ids."""
    for name in ("prompt", "text", "input_ids"):
        value = fields.get(name)
        if isinstance(value, list) and len(value) > 1 and not all(type(item) is int for item in value):
            return True
    sampling = fields.get("sampling_params")
    return isinstance(sampling, list) and len(sampling) > 1


def _single(value: object) -> object:
    """Return the item of a list of one: routers send lists when the prompt is a list."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _bad(why: Why, sentence: str) -> Refused:
    return Refused(400, why, sentence)
