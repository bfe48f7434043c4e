"""What routers say of themselves: smg and sglang-router.

A router that lists its workers to anybody who asks lets anybody enrol one too, and prompts of users then go there: the
two have one rule. Enrolling is never tried.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from yarl import URL

from kvfence.domain.diagnosis.seen import Product
from kvfence.engine import fields

if TYPE_CHECKING:
    from collections.abc import Mapping

WORKERS_LIMIT = 1024
"""Workers of a list that are kept."""

_URL = re.compile(r"(?:https?|grpcs?)://[^\s@/?#]+(?:/[^\s@?#]*)?")
"""Without a user and a query: those may hold keys."""


def is_workers(body: Mapping[str, Any]) -> bool:
    """Whether an object looks like `GET /workers` of a router."""
    listed = body.get("workers")
    if not isinstance(listed, list):
        return False
    return "stats" in body or "total" in body or any(isinstance(one, dict) and "url" in one for one in listed)


def addresses(body: Mapping[str, Any]) -> tuple[tuple[str, ...], int]:
    """Return where the workers are, and how many of them have no address that we can read, or are over the limit."""
    listed = body.get("workers")
    workers = listed if isinstance(listed, list) else []
    urls = [fields.text(one.get("url")) if isinstance(one, dict) else None for one in workers]
    found = dict.fromkeys(url for url in urls if url is not None and is_address(url))
    kept = tuple(found)[:WORKERS_LIMIT]
    return kept, sum(url not in kept for url in urls)


def is_address(url: str) -> bool:
    """Whether it is the address of a server, and the same one to each of the readers that we have for it."""
    if not _URL.fullmatch(url):
        return False
    try:
        host, port = urlsplit(url).hostname, urlsplit(url).port
        read = URL(url)
    except ValueError:
        return False
    return bool(host) and read.host == host and (port is None or read.port == port)


def made_workers(body: Mapping[str, Any]) -> Product | None:
    """Return whose list of workers this is; none where it does not show."""
    listed = body.get("workers")
    workers = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    if any("pd_pairing" in one or "engine_load" in one for one in workers):
        return Product.SMG
    return Product.SGLANG_ROUTER if any("metadata" in one and "labels" not in one for one in workers) else None


def made_models(body: Mapping[str, Any]) -> Product | None:
    """Return which router's `/v1/models` this is: smg 1.13 and sglang-router 0.3.2 own models and know no lengths."""
    listed = body.get("data")
    for one in listed if isinstance(listed, list) else ():
        if isinstance(one, dict) and "max_model_len" not in one:
            owner = fields.text(one.get("owned_by"))
            if owner in _OWNERS:
                return _OWNERS[owner]
    return None


_OWNERS = {"self_hosted": Product.SMG, "local": Product.SGLANG_ROUTER}
