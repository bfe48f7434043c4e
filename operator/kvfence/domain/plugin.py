"""What a version of kvfence-engine can do. Pure."""

from __future__ import annotations

from packaging.version import InvalidVersion, Version

FIRST_WITH_PAGE_DEFENCES = "0.1.0.dev1"
"""Of kvfence-engine: page tagging, page scrubbing, coverage and the fuse. An older one does not know their flags."""


def is_older(version: str, than: str) -> bool:
    """Return whether a version comes before another; one that cannot be compared counts as older when it differs."""
    try:
        return Version(version) < Version(than)
    except InvalidVersion:
        return version != than


def has_page_defences(version: str) -> bool:
    """Return whether a kvfence-engine of this version has defences of pages."""
    return not is_older(version, FIRST_WITH_PAGE_DEFENCES)
