"""The lists of flags: what they promise of each other. What they refuse is tested against the real API server."""

from __future__ import annotations

from itertools import combinations

from kvfence.api.v1alpha1 import owned

GROUPS = (owned.FROM_FIELDS, owned.OF_THE_POD, owned.MULTI_NODE, owned.AROUND_THE_DOOR, owned.SHARED)


def test_a_flag_is_in_one_list() -> None:
    for one, other in combinations(GROUPS, 2):
        assert set(one).isdisjoint(other)


def test_a_flag_is_written_as_on_the_command_line() -> None:
    flags = [flag for group in GROUPS for flag in group]
    assert all(flag.startswith("--") and flag == flag.lower() and "=" not in flag and "'" not in flag for flag in flags)
    assert len(flags) == len(set(flags))
