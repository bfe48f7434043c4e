"""What a running SGLang says of its own configuration: `GET /server_info` and `GET /v1/models`.

`/server_info` has the server's keys in it, in clear: they are never kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kvfence.engine import attestation, fields
from kvfence.engine.bodies.keys import without_keys
from kvfence.engine.web import Unanswered, unanswered

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kvfence.engine.web import Web

__all__ = ["ServerFacts", "Unanswered", "fetch", "parse"]

SECONDS = 10.0
"""For each of the two. `/server_info` asks all schedulers, which answer between two batches."""


@dataclass(frozen=True)
class ServerFacts:
    """What the server says. None stands for what it does not say, or says in another type: a guess would be a defect.

    Older versions have some of it elsewhere (`internal_states`); that counts as not said.
    """

    version: str | None
    kv_checksum: bool | None
    """`disaggregation_enable_kv_checksum`."""
    disaggregation_mode: str | None
    """`prefill`, `decode`, or `null` for a server without a partner."""
    context_length: int | None
    """In tokens, as are the others."""
    page_size: int | None
    max_input_tokens: int | None
    """`max_req_input_len`: prompts must be shorter."""
    reserved_decode_tokens: int | None
    """`num_reserved_decode_tokens`."""
    allow_auto_truncate: bool | None
    served_models: tuple[str, ...]
    """Of `/v1/models`; empty when it lists none that can be read."""
    settings: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """By SGLang's names and without key material, for advisories; of a list whether something is in it."""


def parse(server_info: bytes, models: bytes) -> ServerFacts:
    """Return what the two bodies say.

    Raises:
        ValueError: when one of them is not a JSON object.
    """
    said = fields.read_object(server_info, "/server_info")
    listed = fields.read_object(models, "/v1/models").get("data")
    return ServerFacts(
        version=fields.text(said.get("version")),
        kv_checksum=fields.truth(said.get("disaggregation_enable_kv_checksum")),
        disaggregation_mode=fields.text(said.get("disaggregation_mode")),
        context_length=fields.number(said.get("context_length")),
        page_size=fields.number(said.get("page_size")),
        max_input_tokens=fields.number(said.get("max_req_input_len")),
        reserved_decode_tokens=fields.number(said.get("num_reserved_decode_tokens")),
        allow_auto_truncate=fields.truth(said.get("allow_auto_truncate")),
        settings=_settings(said),
        served_models=_names(listed),
    )


async def fetch(web: Web, base_url: str, nonce: str = "") -> ServerFacts | Unanswered:
    """Ask a server.

    Args:
        web: an open session.
        base_url: without a slash at its end.
        nonce: of `attestation.draw`: its ranks repeat it in the launcher's status. Nothing for a server that is not
            behind a door.
    """
    bodies = []
    for path in (f"/server_info?{attestation.NONCE}={nonce}" if nonce else "/server_info", "/v1/models"):
        reply = await web.fetch("GET", f"{base_url}{path}", None, SECONDS)
        if reply.fault is not None or reply.status != 200:
            return unanswered(f"GET {path.partition('?')[0]} of the engine", reply)
        bodies.append(reply.body)
    try:
        return parse(*bodies)
    except ValueError as error:
        return Unanswered(f"the engine's {error}")


def _settings(said: Mapping[str, Any]) -> dict[str, Any]:
    """Return single values; of lists and objects whether something is in them, which is what conditions ask."""
    single = {name: bool(value) if isinstance(value, dict | list) else value for name, value in said.items()}
    kept, _ = without_keys({n: v for n, v in single.items() if not isinstance(v, str) or len(v) <= fields.NAME_LIMIT})
    return kept


def _names(listed: object) -> tuple[str, ...]:
    if not isinstance(listed, list):
        return ()
    ids = (fields.text(one.get("id")) for one in listed if isinstance(one, dict))
    return tuple(name for name in ids if name)
