"""Any pool at all, as a strategy: for the properties of what is decided."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from hypothesis import strategies as st

from kvfence.api.v1alpha1.pool import RoleType
from kvfence.api.v1alpha1.reasons import Reason
from kvfence.api.v1alpha1.status import PoolStatus
from kvfence.domain.engines import Boot, DoorState, Engine, Facts, Rank
from kvfence.domain.observed import Known, Observed, Proof, Role
from kvfence.domain.pods import Trouble
from kvfence.domain.verdicts import Check, Outcome, Verdict
from tests.unit.domain.pools_of_engines import IMAGE, REVISION, decode, nonces, pod, prefill, router, spec, with_door

T = TypeVar("T")
TYPES = {"prefill": RoleType.PREFILL, "decode": RoleType.DECODE}
OTHER_IMAGE = IMAGE.replace("a" * 64, "b" * 64)
PEERS = ("10.0.7.1:8998", "10.0.7.2:8998", "10.0.7.3:8998")
SOUND = Facts("0.5.23", kv_checksum=True, reserved_decode_tokens=512, auto_truncates=False, repeats_nonce=True)
SPECS = [
    spec(contextLength=context, integrity=integrity)
    for context in ({}, {"minimumTokens": 1000}, {"policy": "RequireFit"}, {"requestedTokens": 900})
    for integrity in ({}, {"kvChecksum": "Observe"})
]
STATUSES = [
    PoolStatus.model_validate(
        {
            "currentRevision": current,
            "contextLength": None if cap is None else {"requestedTokens": 4096, "advertisedTokens": cap},
        }
    )
    for current in (None, REVISION, REVISION, "another")
    for cap in (1003, None, 0, 500, 5000)
]
JUDGED = [
    tuple(Verdict(Check.MARKER_ISOLATION, outcome, "it", "it was seen.") for outcome in seen)
    for seen in ((Outcome.PASSED,), (Outcome.FAILED,), (Outcome.NOT_JUDGED,), (), tuple(Outcome), (Outcome.PASSED,) * 2)
]


def one_of(draw: st.DrawFn, usual: T, *others: T, odds: int = 12) -> T:
    """What is usual, and in one of so many cases one of the others: else hardly a pool would ever be proven."""
    which = draw(st.integers(0, max(odds, len(others) + 1) - 1))
    return others[which - 1] if 0 < which <= len(others) else usual


@st.composite
def odd_boots(draw: st.DrawFn, name: str, usual: int) -> Boot:
    ranks = []
    for index in range(one_of(draw, 1, 0, 2, odds=40)):
        tokens = one_of(draw, usual, 0, 8, 600, 1023, 2048, odds=30)
        limit = one_of(draw, max(0, tokens - 6), 0, 500, 2**40, odds=40)
        ranks.append(Rank(index, tokens, one_of(draw, 1, 16, 0, odds=40), limit))
    return Boot(
        nonces=(f"{name}/{one_of(draw, 1, 2)}",),
        door=draw(st.sampled_from(DoorState)),
        epoch=3,
        cap=one_of(draw, 1003, 0, 8, 500, 882, 5000, odds=12),
        peers=one_of(draw, PEERS[:2], (), PEERS, ("10.9.9.9:1",)),
        sglang="0.5.23",
        ranks=tuple(ranks),
        applied=one_of(draw, True, False),
    )


@st.composite
def engines(draw: st.DrawFn, role: str, number: int, door: DoorState) -> Engine:
    """Mostly one with nothing wrong: one that is odd keeps a whole pool from coming up."""
    if draw(st.integers(0, 3)):
        made = prefill(number, tokens=one_of(draw, 0, 900, odds=8)) if role == "prefill" else decode(number)
        if draw(st.integers(0, 39)) == 1:
            made = replace(made, pod=replace(made.pod, image_id=OTHER_IMAGE))
        door = one_of(draw, door, *DoorState, odds=40)
        if door is DoorState.CLOSED:
            return made
        caps, peers = one_of(draw, 1003, 1004, 882, 500), one_of(draw, PEERS[:1], PEERS[:2], ())
        made = with_door(made, door, caps, peers)
        if one_of(draw, False, True):
            return replace(made, boot=None, facts=None, silent="it is late", unheard=True)
        assert made.boot is not None
        return replace(made, boot=replace(made.boot, applied=one_of(draw, True, False, odds=20)))
    return draw(odd_engines(role, number))


@st.composite
def odd_engines(draw: st.DrawFn, role: str, number: int) -> Engine:
    trouble = one_of(draw, None, Trouble(Reason.ENGINE_FAILED, "It ended."))
    facts = pod(role, number, started=one_of(draw, True, False, odds=30), trouble=trouble)
    facts = replace(facts, ready=facts.started and one_of(draw, True, False, odds=3))
    facts = replace(facts, image_id=one_of(draw, IMAGE, OTHER_IMAGE, "", odds=20))
    made = Engine(replace(facts, ip=one_of(draw, facts.ip, None, odds=40)), TYPES[role], 8998)
    what = one_of(draw, "answers", "unheard", "silent", "no facts", odds=6)
    if what in ("unheard", "silent"):
        return replace(made, silent="it is silent", unheard=what == "unheard")
    made = replace(made, boot=draw(odd_boots(made.name, 1024 if role == "prefill" else 4096)))
    if what == "no facts":
        return made
    said = Facts(
        version=one_of(draw, SOUND.version, None, "0.5.20", "0.5.24", "x", odds=40),
        kv_checksum=one_of(draw, True, False, None, odds=40),
        reserved_decode_tokens=one_of(draw, 512, 0, None, odds=40),
        auto_truncates=one_of(draw, False, True, None, odds=40),
    )
    return replace(made, facts=said)


@st.composite
def observations(draw: st.DrawFn) -> Observed:
    """Any pool: also such as cannot come about, since what cannot be is where holes are."""
    door = draw(st.sampled_from([DoorState.OPEN, DoorState.CANARY, DoorState.CLOSED]))
    found = [draw(engines(role, number, door)) for role in TYPES for number in range(one_of(draw, 1, 2, 3, 0, odds=8))]
    names = [nonces(one) for one in found if one.boot is not None]
    usual, under = draw(st.sampled_from([JUDGED[0], ()])), draw(st.sampled_from([1003, 1003, 882, 500]))
    refused = draw(st.sampled_from([2, 40, 40]))
    proofs = {
        name: Proof(one_of(draw, under, 1003, 1004, 882, 8), one_of(draw, usual, *JUDGED, odds=50)) for name in names
    }
    count = {role: sum(one.pod.role == role for one in found) for role in TYPES}
    return Observed(
        spec=one_of(draw, *SPECS, odds=30),
        status=draw(st.sampled_from(STATUSES)),
        revision=REVISION,
        roles=tuple(
            Role(role, TYPES[role], max(1, count[role] + one_of(draw, 0, 1, -1, odds=30))) for role in sorted(TYPES)
        ),
        engines=tuple(sorted(found, key=lambda one: one.name)),
        leaving=one_of(draw, 0, 1),
        routers=tuple(router(number, ready=one_of(draw, True, False)) for number in range(one_of(draw, 1, 2, 0))),
        known=Known(
            proofs={name: proof for name, proof in proofs.items() if one_of(draw, True, False)},
            fronts=draw(st.sampled_from([(), (), (), *JUDGED[:1] * 4, *JUDGED])),
            refusals={name: "it refused" for name in names if one_of(draw, False, True, odds=refused)},
        ),
        taken=one_of(draw, (), ("Service chat",)),
        refused=one_of(draw, (), ("Service chat: it is too long",)),
        runs=one_of(draw, True, False, odds=4),
        serving=draw(st.booleans()),
        plugin_version="0.1.0",
        newest_plugin_version="0.1.0",
    )
