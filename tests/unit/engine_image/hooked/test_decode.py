"""What the hooks of a decode engine do, on a rank without a model, with what a prefill engine's hooks tell them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from kvfence_engine.integrity.modes import Mode, Modes
from kvfence_engine.state import Alarm, SharedState
from tests.unit.engine_image.hooked.fake_rank import PAGE, PAGES, Decode, Prefill, Request, modes

PROMPT = list(range(1, 3 * PAGE + 2))
OTHER = [token + 50 for token in PROMPT]
KV = PROMPT[0]

Start = Callable[..., Decode]
Metadata = tuple[Any, Any]


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Start:
    """Start a decode rank with these defences."""
    return lambda **on: Decode(modes(**on), SharedState.create(), monkeypatch)


@pytest.fixture
def handed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Metadata]:
    """What a prefill engine with all defences says of a prompt."""

    def handed(tokens: list[int] = PROMPT, **fields: Any) -> Metadata:
        with monkeypatch.context() as patch:
            rank = Prefill(modes(tagging=True, scrubbing=True, coverage=True), SharedState.create(), patch)
            request = rank.request(tokens, **fields)
            rank.allocated(request)
            rank.computed(request)
            return rank.handed_over(request)

    return handed


def begun(rank: Decode, metadata: Metadata, tokens: list[int] = PROMPT) -> Request:
    """Have a request decode that is as it should be."""
    request = rank.request(tokens)
    rank.allocated(request)
    rank.arrived(request, metadata, tokens[0])
    assert rank.begins(request) == [request]
    return request


def test_what_arrived_whole_is_verified_and_goes_on(handed: Callable[..., Metadata], start: Start) -> None:
    metadata = handed()
    rank = start(tagging=True, scrubbing=True, coverage=True)
    request = begun(rank, metadata)
    assert rank.found == {}
    assert request.holder.was_verified
    told = rank.integrity.tell()
    assert (told["pagesVerified"], told["pagesExpected"]) == (4, 4)


def test_pages_are_zeroed_before_anyone_is_told_of_them(start: Start) -> None:
    rank = start(scrubbing=True)
    request = rank.request(PROMPT)
    rank.allocated(request)
    assert not rank.allocator.cache.k_buffer[1][rank.slots(request)].any()
    assert rank.allocator.cache.k_buffer[1][(rank.pages(request)[-1] + 1) * PAGE :].all()


def test_without_a_hand_over_the_pages_count_as_unwritten(start: Start) -> None:
    rank = start(tagging=True)
    request = rank.request(PROMPT)
    rank.allocated(request)
    assert rank.begins(request) == []
    assert rank.found == {"UnwrittenPage": 4}
    assert rank.alarm.contained == 1


def test_only_what_was_handed_over_counts_as_written(handed: Callable[..., Metadata], start: Start) -> None:
    small, large = handed()
    rank = start(tagging=True)
    request = rank.request(PROMPT)
    rank.allocated(request)
    rank.arrived(request, (small * 0, large * 0), KV)  # the bytes are there, and nobody says whose
    assert rank.begins(request) == []
    assert rank.found == {"UnwrittenPage": 4}


def test_a_page_that_was_freed_is_nobodys(handed: Callable[..., Metadata], start: Start) -> None:
    metadata = handed()
    rank = start(tagging=True)
    request = begun(rank, metadata)
    row, lengths = rank.table[request.row].copy(), (request.kv.kv_committed_len, request.kv.kv_allocated_len)
    rank.release(request)
    rank.running_batch.reqs.clear()
    request.kv.req_pool_idx, (request.kv.kv_committed_len, request.kv.kv_allocated_len) = 1, lengths
    rank.table[1] = row
    assert rank.begins(request) == []
    assert rank.found == {"ForeignPage": 4}


def test_a_row_that_names_anothers_page_is_found_and_the_page_stays_the_others(
    handed: Callable[..., Metadata], start: Start
) -> None:
    metadata = handed()
    rank = start(tagging=True)
    other, request = begun(rank, metadata), rank.request(PROMPT)
    rank.allocated(request)
    rank.arrived(request, metadata, KV)
    (its, lost), (theirs, _) = rank.pages(request)[:2].copy(), rank.pages(other)[:2].copy()
    rank.table[request.row, :PAGE] = rank.table[other.row, :PAGE]
    assert rank.begins(request) == []
    assert rank.found == {"ForeignPage": 1}
    assert rank.alarm.escaped == ""
    assert theirs not in rank.allocator.free_pages
    assert {int(its), int(lost)} <= rank.allocator.free_pages  # what its row did not name any more too


def test_a_request_that_reads_anothers_page_already_is_found_with_the_next_finding(
    handed: Callable[..., Metadata], start: Start
) -> None:
    metadata = handed()
    rank = start(tagging=True)
    running, request = begun(rank, metadata), rank.request(PROMPT)
    rank.allocated(request)
    rank.arrived(request, metadata, KV)
    mine, theirs = rank.table[request.row, :PAGE].copy(), rank.table[running.row, :PAGE].copy()
    rank.table[request.row, :PAGE], rank.table[running.row, :PAGE] = theirs, mine
    assert rank.begins(request) == []
    assert running.to_finish is not None
    assert rank.alarm.escaped == "ForeignPage"
    assert rank.alarm.peer == "10.0.0.1:8998"


def test_a_page_that_the_allocator_gave_to_two_gets_nothing_of_the_second(
    handed: Callable[..., Metadata], start: Start
) -> None:
    metadata = handed()
    rank = start(tagging=True, scrubbing=True)
    first = begun(rank, metadata)
    page = int(rank.pages(first)[0])
    rank.allocator.free_pages.add(page)
    second = rank.request(OTHER)
    rank.allocated(second)
    assert page not in rank.pages(second)
    assert rank.allocator.cache.k_buffer[0][page * PAGE : (page + 1) * PAGE].all()
    assert rank.begins(second) == []
    assert rank.found["SharedPage"] == 1
    assert first.to_finish is None


@pytest.mark.parametrize(
    ("tokens", "fields", "kind"),
    [
        (PROMPT[:-1], {}, "cut"),
        (OTHER, {}, "other tokens"),
        (PROMPT, {"cache_salt": "b"}, "another namespace"),
        (PROMPT, {"bootstrap_room": 5}, "another room"),
    ],
)
def test_a_hand_over_of_something_else_is_found(
    handed: Callable[..., Metadata], start: Start, tokens: list[int], fields: dict[str, Any], kind: str
) -> None:
    metadata = handed(tokens, **fields)
    rank = start(coverage=True)
    request = rank.request(PROMPT)
    rank.allocated(request)
    rank.arrived(request, metadata, KV)
    assert rank.begins(request) == [], kind
    assert rank.found == {"Coverage": 1}


def test_bytes_that_changed_on_the_way_are_found(handed: Callable[..., Metadata], start: Start) -> None:
    metadata = handed()
    rank = start(scrubbing=True)
    request = rank.request(PROMPT)
    rank.allocated(request)
    rank.arrived(request, metadata, KV)
    rank.allocator.cache.k_buffer[0][rank.slots(request)[5]] = 0
    assert rank.begins(request) == []
    assert rank.found == {"OtherBytes": 1}


def test_pages_into_which_nothing_came_are_found_where_prefill_says_no_proof(
    handed: Callable[..., Metadata], start: Start
) -> None:
    small, large = handed()
    rank = start(scrubbing=True)
    request = rank.request(PROMPT)
    rank.allocated(request)
    rank.arrived(request, (small * 0, large * 0), None)
    assert rank.begins(request) == []
    assert rank.found == {"EmptyPage": 4}


def test_a_request_that_nobody_tagged_does_not_go_on(start: Start) -> None:
    rank = start(tagging=True)
    request = rank.request(PROMPT)
    rank.give(request, len(PROMPT))
    assert rank.begins(request) == []
    assert rank.alarm.escaped == "Unverified"


@pytest.mark.parametrize("drained", [True, False])
def test_pages_into_which_a_transfer_may_still_write_are_never_given_again(start: Start, *, drained: bool) -> None:
    rank = start(scrubbing=True)
    request = rank.request(PROMPT)
    rank.allocated(request)
    pages = {int(page) for page in rank.pages(request)}
    rank.times_out(request, drained=drained)
    assert (pages <= rank.allocator.free_pages) == drained
    assert rank.told.get("pagesRetired", 0) == (0 if drained else len(pages))
    assert rank.alarm.isolated == ""


def test_retired_pages_make_the_pool_smaller_and_too_many_close_the_engine(start: Start) -> None:
    rank = start(scrubbing=True)
    lost = 0
    while lost <= PAGES // 2:
        assert not rank.alarm.isolated
        assert rank.integrity.retired_tokens() == lost * PAGE
        request = rank.request(PROMPT)
        rank.allocated(request)
        rank.times_out(request, drained=False)
        lost = int(rank.told["pagesRetired"])
    assert rank.alarm.isolated == "TooManyRetired"


def test_what_was_put_back_is_verified_anew_in_its_new_pages(handed: Callable[..., Metadata], start: Start) -> None:
    metadata = handed()
    rank = start(tagging=True, scrubbing=True, coverage=True)
    request = begun(rank, metadata)
    rank.release(request)
    rank.running_batch.reqs.clear()
    rank.allocated(request)
    rank.allocator.cache.write(rank.slots(request), KV)
    rank.hook("common.restore_kv_cache")(None, request)
    assert rank.begins(request) == [request]
    assert rank.found == {}


def test_the_pages_that_a_decode_step_begins_are_its_requests(handed: Callable[..., Metadata], start: Start) -> None:
    metadata = handed()
    rank = start(tagging=True)
    request = begun(rank, metadata)
    for _ in range(2 * PAGE):
        rank.steps(request)
    assert len(rank.pages(request)) == 6
    rank.running_batch.reqs.clear()
    assert rank.begins(request) == [request]  # as if it had been put back without having moved
    assert rank.found == {}


def test_what_another_rank_found_ends_the_request_here_too(
    handed: Callable[..., Metadata], start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    metadata = handed()
    rank = start(tagging=True)
    request = rank.request(PROMPT)
    rank.allocated(request)
    rank.arrived(request, metadata, KV)
    utils = sys.modules["sglang.srt.disaggregation.utils"]
    monkeypatch.setattr(utils, "all_reduce_flags", lambda flags, _group, _most: [1 for _ in flags])
    assert rank.begins(request) == []
    assert rank.found == {}


def test_what_is_observed_alone_is_counted_and_ends_and_closes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    observed = Modes(Mode.OBSERVE, Mode.OBSERVE, Mode.OBSERVE)
    rank = Decode(observed, SharedState.create(), monkeypatch)
    request, untagged = rank.request(PROMPT), rank.request(PROMPT)
    rank.allocated(request)
    rank.give(untagged, len(PROMPT))
    assert rank.begins(request, untagged) == [request, untagged]
    assert rank.found == {"UnwrittenPage": 4, "Unverified": 1}
    assert rank.alarm == Alarm()
