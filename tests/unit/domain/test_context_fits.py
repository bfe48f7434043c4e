"""What the condition ContextFits says: which pod of which role has how much, and what to change."""

from __future__ import annotations

import dataclasses

import pytest

from kvfence.api.v1alpha1.conditions import ConditionStatus, ConditionType
from kvfence.api.v1alpha1.pool import ContextPolicy, RoleType
from kvfence.api.v1alpha1.reasons import Reason
from kvfence.domain.capacity import Capacity, Measured, Unmeasured, Wanted, first_offer, next_offer
from kvfence.domain.context_fits import context_fits
from kvfence.domain.findings import Finding
from tests.unit.domain.engines import decode, prefill, unknown

DEMO = Wanted(requested_tokens=4096)
TRUE, FALSE, UNKNOWN = ConditionStatus.TRUE, ConditionStatus.FALSE, ConditionStatus.UNKNOWN


def said(capacity: Capacity, wanted: Wanted = DEMO) -> Finding:
    finding = context_fits(capacity, wanted)
    assert finding.condition is ConditionType.CONTEXT_FITS
    assert finding.message.endswith(".")
    assert "  " not in finding.message
    return finding


def test_the_demo_says_what_is_on_offer_and_which_pool_holds_it() -> None:
    finding = said(first_offer(DEMO, (prefill(1024, context=4096), decode(4096, context=4096))))
    assert finding == Finding(
        ConditionType.CONTEXT_FITS,
        TRUE,
        Reason.CONTEXT_CAPPED,
        "1,003 of the 4,096 tokens asked for are on offer: pod prefill-0 (role prefill) has a KV pool of 1,024 tokens, "
        "of which 2 % stay free as headroom.",
    )
    assert finding.holds


LYING = dataclasses.replace(prefill(1024), max_input_tokens=2000)
SHY = dataclasses.replace(prefill(1024), max_input_tokens=500)
STRICT = dataclasses.replace(DEMO, policy=ContextPolicy.REQUIRE_FIT)


@pytest.mark.parametrize(
    ("pools", "wanted", "status", "reason", "words"),
    [
        ((prefill(5000), decode(5000)), DEMO, TRUE, Reason.REQUESTED_CONTEXT_FITS, ["All 4,096 tokens"]),
        (
            (prefill(5000), decode(2000)),
            dataclasses.replace(DEMO, reserve_tokens=10),
            TRUE,
            Reason.CONTEXT_CAPPED,
            ["pod decode-0 (role decode)", "2,000", "decode keeps 513 for requests under way", "10 are reserved"],
        ),
        (
            (prefill(5000), decode(5000)),
            dataclasses.replace(DEMO, model_tokens=1000),
            TRUE,
            Reason.CONTEXT_CAPPED,
            ["1,000 of the 4,096", "the model has 1,000 (model.maxContextTokens)"],
        ),
        ((SHY, decode(5000)), DEMO, TRUE, Reason.CONTEXT_CAPPED, ["506 of", "takes prompts shorter than 500 only"]),
        (
            (prefill(1024), decode(4096)),
            STRICT,
            FALSE,
            Reason.REQUESTED_CONTEXT_DOES_NOT_FIT,
            ["pod prefill-0 (role prefill) has a KV pool of 1,024", "RequireFit asks for 4,096", "to CapToFit"],
        ),
        (
            (prefill(1024, rank=2), decode(4096)),
            dataclasses.replace(DEMO, minimum_tokens=2000),
            FALSE,
            Reason.MINIMUM_CONTEXT_DOES_NOT_FIT,
            ["prefill-0 (role prefill, rank 2)", "1,024", "is 2,000", "lower contextLength.minimumTokens to 1,003"],
        ),
        (
            (prefill(5000), decode(5000)),
            dataclasses.replace(DEMO, minimum_tokens=2000, model_tokens=1000),
            FALSE,
            Reason.MINIMUM_CONTEXT_DOES_NOT_FIT,
            ["1,000 tokens fit", "model.maxContextTokens", "To go on, lower contextLength.minimumTokens"],
        ),
        (
            (prefill(5000), decode(515)),
            DEMO,
            FALSE,
            Reason.NO_CONTEXT_FITS,
            ["pod decode-0 (role decode)", "515", "more memory for KV"],
        ),
        ((LYING, decode(5000)), DEMO, FALSE, Reason.ENGINE_LIMIT_ABOVE_POOL, ["prefill-0", "1,999", "1,024", "Remove"]),
        (
            (prefill(5000, page=16), decode(5000)),
            DEMO,
            FALSE,
            Reason.PAGE_SIZES_DIFFER,
            ["decode-0", "prefill-0", "of 16", "--page-size once, in engine.sglang.args"],
        ),
        (
            (prefill(5000), unknown()),
            DEMO,
            UNKNOWN,
            Reason.POOLS_NOT_MEASURED,
            ["pod decode-9 (role decode): its door does not answer"],
        ),
        ((prefill(5000),), DEMO, UNKNOWN, Reason.POOLS_NOT_MEASURED, ["no engine of type Decode is there"]),
    ],
)
def test_a_person_can_act_on_it(
    pools: tuple[Measured | Unmeasured, ...], wanted: Wanted, status: ConditionStatus, reason: Reason, words: list[str]
) -> None:
    finding = said(first_offer(wanted, pools), wanted)
    assert (finding.status, finding.reason) == (status, reason)
    assert [word for word in words if word not in finding.message] == [], finding.message
    assert finding.holds == (status is TRUE)


def test_many_pods_that_are_not_known_do_not_make_a_long_message() -> None:
    pools = tuple(unknown(RoleType.DECODE, pod=str(number)) for number in range(100))
    finding = said(first_offer(DEMO, (prefill(5000), *pools)))
    assert "97 more" in finding.message
    assert len(finding.message) < 500


def test_a_cap_that_larger_pools_no_longer_explain_is_explained_by_the_revision() -> None:
    grown = (prefill(9000), decode(9000))
    assert "only goes down" in said(next_offer(DEMO, 1003, grown)).message
    higher = dataclasses.replace(DEMO, minimum_tokens=2000)
    refused = said(next_offer(higher, 1003, grown), higher)
    assert refused.reason is Reason.MINIMUM_CONTEXT_DOES_NOT_FIT
    assert "measured anew" in refused.message


def test_who_is_left_out_is_named_while_the_others_serve() -> None:
    wanted = dataclasses.replace(DEMO, minimum_tokens=1000)
    pools = (prefill(1024), prefill(900, pod="1"), decode(4096), unknown())
    finding = said(next_offer(wanted, 1003, pools), wanted)
    assert finding.holds
    assert "Left out for now: pod decode-9 (role decode): its door does not answer" in finding.message
    assert "pod prefill-1 (role prefill) has 900 tokens" in finding.message
