"""What the hooks of a prefill engine do, on a rank without a model."""

from __future__ import annotations

import pytest

from kvfence_engine.integrity import handover
from kvfence_engine.state import SharedState
from tests.unit.engine_image.hooked.fake_rank import PAGE, ROOM, Prefill, modes

PROMPT = list(range(1, 3 * PAGE + 2))
OTHER = [token + 50 for token in PROMPT]


@pytest.fixture
def rank(monkeypatch: pytest.MonkeyPatch) -> Prefill:
    return Prefill(modes(tagging=True, scrubbing=True, coverage=True), SharedState.create(), monkeypatch)


def test_a_prompt_is_verified_and_handed_over_with_what_decode_needs_to_judge_it(rank: Prefill) -> None:
    request = rank.request(PROMPT)
    rank.allocated(request)
    rank.computed(request)
    small, large = rank.handed_over(request)
    told = handover.read(small[handover.INT32_SLOTS].tolist(), large[handover.UINT64_SLOTS].tolist(), ROOM)
    assert told is not None
    assert (told.start, told.end, told.tokens) == (0, len(PROMPT), len(PROMPT))
    assert told.proof > 0
    assert request.to_finish is None
    assert rank.integrity.tell()["requestsVerified"] == 1


def test_a_prefix_of_its_own_prompt_is_shared(rank: Prefill) -> None:
    before, request = rank.request(PROMPT), rank.request(PROMPT)
    rank.allocated(before)
    rank.allocated(request, rank.slots(before)[: 2 * PAGE])
    assert request.to_finish is None


@pytest.mark.parametrize("other", [{"cache_salt": "a"}, {"extra_key": "a"}])
def test_a_prefix_of_another_namespace_is_found_before_it_is_read(rank: Prefill, other: dict[str, str]) -> None:
    before, request = rank.request(PROMPT, **other), rank.request(PROMPT)
    rank.allocated(before)
    rank.allocated(request, rank.slots(before)[: 2 * PAGE])
    assert rank.found == {"ForeignPage": 2}
    assert request.to_finish is not None
    assert request.skip_radix_cache_insert
    assert rank.alarm.contained == 1


def test_a_page_that_became_anothers_in_the_forward_pass_is_found_before_anything_is_sent(rank: Prefill) -> None:
    request, other = rank.request(PROMPT), rank.request(OTHER)
    rank.allocated(request)
    rank.allocated(other)
    rank.table[request.row, :PAGE] = rank.table[other.row, :PAGE]
    rank.computed(request)
    assert rank.found == {"ForeignPage": 1}
    assert request.to_finish is not None


def test_what_is_joined_to_one_text_does_not_share_a_prefix(rank: Prefill) -> None:
    with_adapter = rank.request(PROMPT, extra_key="ab", lora_id="b")  # as SGLang joins "a" and "b"
    without = rank.request(PROMPT, extra_key="ab")
    assert with_adapter.extra_key != without.extra_key
