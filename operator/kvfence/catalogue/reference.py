"""Writes the reference of advisories, in Markdown, from the catalogue."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kvfence.catalogue.catalogue import Catalogue
    from kvfence.domain.advisories import Advisory

HEAD = """# Advisories

Generated from `operator/kvfence/catalogue` by `make generate`. Edit the files in `osv/`, not this one.

Known faults of SGLang, vLLM, their routers and transfer backends, as of {date}. An advisory applies to a server when
its package and version are affected and the condition holds, by what the running server says. A version that is no
release (a development version, a release candidate, a local build) is unknown, never new enough; so is a condition on
what was not told. Where no fix is known, the range is open, and the condition says how to get out of it.
"""

ADDING = """## Adding your own

A document with entries in the shape of OSV 1.x, signed with an Ed25519 key:

    {"format": "kvfence-advisories/1", "date": "2026-11-30T00:00:00Z", "advisories": [...]}

    openssl genpkey -algorithm ed25519 -out private.pem
    openssl pkey -in private.pem -pubout -out public.pem
    python -m kvfence.catalogue sign more.json --key private.pem > more.json.sig
    python -m kvfence.catalogue check more.json --signature more.json.sig --public-key public.pem

An entry that cannot be read is left out and said; with a bad signature nothing is taken, and that is said too. A
document older than 30 days is a finding. An entry with the id of one above takes its place if its `modified` is later.

An entry's ranges are of type ECOSYSTEM and of packages on PyPI. What OSV has no place for is under
`database_specific.kvfence`: `severity` (critical, high, medium, low), `whatToDo`, perhaps `condition`, and perhaps
`closedInPools`: how pools of kvfence are safe from it whatever their release. A condition is one of

| condition | holds |
|---|---|
| `{"all": [...]}`, `{"any": [...]}`, `{"not": {...}}` | as the conditions in it do |
| `{"role": ["Prefill", "Decode", "Unified"]}` | for engines of one of these roles |
| `{"backend": ["nixl"]}` | where KV travels by one of these |
| `{"setting": "dcp_size", "greater": 1}` | when the setting, by SGLang's name, is a greater number |
| `{"setting": "load_format", "equals": "gguf"}` | when it is that, whatever the case of letters |
| `{"setting": "enable_lmcache", "truthy": true}` | when it is not false, zero or empty |
| `{"setting": "api_key", "present": true}` | when it is told and not null |
| `{"environment": "PYTHONHASHSEED", "present": true}` | as with settings, for a variable of the engine |
| `{"asked": "images are sent"}` | is what no server tells: always unknown |
"""

LEFT_OUT_HEAD = """## Left out

Read, and not in the catalogue:
"""


def reference(catalogue: Catalogue, left_out: Iterable[tuple[str, str]]) -> str:
    """Return the document."""
    assert catalogue.date is not None
    ordered = sorted(catalogue.advisories, key=lambda one: (one.affected[0].package, one.severity.order, one.id))
    rows = [
        f"| [{one.id}](#{one.id.lower()}) | {one.severity} | {', '.join(each.package for each in one.affected)} "
        f"| {_cell(one.summary)} |"
        for one in ordered
    ]
    parts = [HEAD.format(date=catalogue.date.date()), "| id | severity | of | |\n|---|---|---|---|"]
    parts += ["\n".join(rows) + "\n", "\n".join(map(_section, ordered)), ADDING, LEFT_OUT_HEAD]
    parts += [
        "\n".join(["| what | why |", "|---|---|", *(f"| {_cell(one)} | {_cell(why)} |" for one, why in left_out)])
    ]
    return "\n".join(parts) + "\n"


def _section(one: Advisory) -> str:
    lines = [f"## {one.id}\n", f"**{one.summary}**\n", one.details, ""]
    lines += [f"- severity: {one.severity}"]
    lines += [f"- {each.package}: {each}" for each in one.affected]
    lines += [f"- only if {one.condition}"] if one.condition is not None else []
    lines += [f"- also called {', '.join(one.aliases)}"] if one.aliases else []
    lines += [f"- withdrawn on {one.withdrawn.date()}"] if one.withdrawn is not None else []
    lines += [f"- in pools of kvfence it is closed: {one.closed_in_pools}"] if one.closed_in_pools else []
    lines += [f"- what to do: {one.what_to_do}", f"- read: {' '.join(f'<{each}>' for each in one.references)}", ""]
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
