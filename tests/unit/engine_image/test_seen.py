"""What was seen once, against a slow obvious reference: a list of the names in the order in which they came."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kvfence_engine.seen import KEPT, SeenOnce

NAMES = st.sampled_from([bytes([number]) for number in range(6)])


@given(kept=st.integers(1, 4), steps=st.lists(st.tuples(st.booleans(), NAMES), max_size=40))
def test_the_last_names_are_known(kept: int, steps: list[tuple[bool, bytes]]) -> None:
    seen, came = SeenOnce(kept), list[bytes]()
    for is_added, name in steps:
        assert seen.has(name) == (name in came)
        if is_added:
            seen.add(name)
            came = (came if name in came else [*came, name])[-kept:]


def test_as_many_are_kept_as_the_module_says() -> None:
    seen = SeenOnce()
    names = [number.to_bytes(4, "big") for number in range(KEPT + 1)]
    for name in names:
        seen.add(name)
    assert [seen.has(name) for name in (names[0], names[1], names[-1])] == [False, True, True]
