"""Reads an advisory from a document in the shape of OSV 1.x (https://ossf.github.io/osv-schema/): strict and total.

What cannot be judged is refused and not skipped: a range that is left out would make the advisory apply to less.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Any

from kvfence.domain.advisories import reading
from kvfence.domain.advisories.advisory import Advisory
from kvfence.domain.advisories.parsing_conditions import condition
from kvfence.domain.advisories.parsing_ranges import affected
from kvfence.domain.severity import Severity

if TYPE_CHECKING:
    from collections.abc import Mapping

IDENTIFIER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
MOST_ALIASES = 32
MOST_REFERENCES = 32
SUMMARY_LENGTH = 300
TEXT_LENGTH = 8192
"""Characters of details and of what to do."""
ADDRESS = re.compile(r"https://[\x21-\x7e]{1,500}")
REFERENCE_TYPES = frozenset(
    {"ADVISORY", "ARTICLE", "DETECTION", "DISCUSSION", "REPORT", "FIX", "INTRODUCED", "PACKAGE", "EVIDENCE", "WEB"}
)
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)")

FOR_PEOPLE = frozenset({"schema_version", "published", "related", "upstream", "credits", "severity"})
"""Fields of OSV that nothing here is decided by. `severity` has vectors of CVSS; the word is in our own section."""
FIELDS = FOR_PEOPLE | {
    "id", "modified", "withdrawn", "aliases", "summary", "details", "affected", "references", "database_specific"
}  # fmt: skip
SECTION = "kvfence"
SECTION_FIELDS = frozenset({"severity", "condition", "whatToDo", "closedInPools"})


def parse(document: Mapping[str, Any]) -> Advisory:
    """Return the advisory that a document says.

    Raises:
        ValueError: it is none, or says something that cannot be judged here. The message is one plain sentence, names
            the entry by its id where it has one, and quotes little of it.
    """
    name = identified(document)
    try:
        return _advisory(document, name)
    except ValueError as error:
        raise ValueError(f"Advisory {name or 'without an id'}: {error}.") from error


def identified(document: object) -> str | None:
    """Return the id of a document; none when it has none that can be one."""
    found = document.get("id") if isinstance(document, dict) else None
    return found if isinstance(found, str) and IDENTIFIER.fullmatch(found) else None


def moment(value: object, what: str) -> datetime:
    """Return a time as RFC 3339 writes it.

    Raises:
        ValueError: it is none.
    """
    if isinstance(value, str) and TIME.fullmatch(value):
        try:
            return datetime.fromisoformat(value)
        except ValueError:
            pass  # no such day or hour: said below
    raise ValueError(f"{what} is not a time such as 2026-11-30T00:00:00Z")


def _advisory(document: Mapping[str, Any], name: str | None) -> Advisory:
    entry = reading.fields(document, "it", FIELDS)
    if name is None:
        raise ValueError("its id is missing, or has other characters than letters, digits, dots, dashes")
    schema = entry.get("schema_version", "1.0.0")  # OSV: without it, the first one
    if not isinstance(schema, str) or not schema.startswith("1."):
        raise ValueError("its schema_version is not 1.x")
    section = reading.fields(
        reading.of_mapping(entry.get("database_specific"), "database_specific").get(SECTION),
        f"database_specific.{SECTION}",
        SECTION_FIELDS,
    )
    return Advisory(
        id=name,
        aliases=_identifiers(entry.get("aliases", [])),
        summary=reading.line(entry.get("summary"), "summary", SUMMARY_LENGTH),
        details=reading.prose(entry.get("details"), "details", TEXT_LENGTH),
        severity=_severity(section.get("severity")),
        affected=affected(entry.get("affected")),
        condition=condition(section["condition"]) if "condition" in section else None,
        what_to_do=reading.prose(section.get("whatToDo"), "whatToDo", TEXT_LENGTH),
        references=_references(entry.get("references")),
        modified=moment(entry.get("modified"), "modified"),
        closed_in_pools=_prose_or_nothing(section, "closedInPools"),
        withdrawn=moment(entry["withdrawn"], "withdrawn") if "withdrawn" in entry else None,
    )


def _prose_or_nothing(section: Mapping[str, Any], name: str) -> str:
    return reading.prose(section[name], name, TEXT_LENGTH) if name in section else ""


def _severity(value: object) -> Severity:
    words = ", ".join(Severity)
    if not isinstance(value, str) or value not in set(Severity):
        raise ValueError(f"the severity in database_specific.{SECTION} is none of {words}")
    return Severity(value)


def _identifiers(value: object) -> tuple[str, ...]:
    found = reading.of_list(value, "aliases", MOST_ALIASES, least=0)
    if not all(isinstance(one, str) and IDENTIFIER.fullmatch(one) for one in found):
        raise ValueError("one of its aliases is no id")
    return tuple(map(str, found))


def _references(value: object) -> tuple[str, ...]:
    addresses = []
    for item in reading.of_list(value, "references", MOST_REFERENCES):
        one = reading.fields(item, "a reference", frozenset({"type", "url"}))
        kind = one.get("type")
        if not isinstance(kind, str) or kind not in REFERENCE_TYPES:
            raise ValueError("a reference has a type that OSV does not know")
        address = one.get("url")
        if not isinstance(address, str) or not ADDRESS.fullmatch(address):
            raise ValueError("a reference has an address that does not begin with https://")
        addresses.append(address)
    return tuple(addresses)
