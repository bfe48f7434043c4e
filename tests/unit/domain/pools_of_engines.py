"""Pools as they are observed, for the tests of what is decided about them: of 2 prefill and 1 decode engine.

The prefill engines hold 1,024 tokens and decode 4,096, and 4,096 were asked for.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from kvfence.api.v1alpha1.pool import PoolSpec, RoleType
from kvfence.api.v1alpha1.status import PoolStatus
from kvfence.domain.decisions import Admit, ProveFronts, ProvePairs, Step
from kvfence.domain.engines import Attested, Boot, DoorState, Engine, Facts, Rank
from kvfence.domain.observed import Nonces, Observed, Proof, Role
from kvfence.domain.pods import PodFacts, Trouble
from kvfence.domain.verdicts import Check, Outcome, Verdict
from kvfence.engine.attestation import COUNTS

REVISION = "abcdefghij"
PREFILL_TOKENS, DECODE_TOKENS, REQUESTED = 1024, 4096, 4096
CAP = 1003
"""98 % of 1,024."""
IMAGE = "registry.example/sglang@sha256:" + "a" * 64
PASSED = (Verdict(Check.MARKER_ISOLATION, Outcome.PASSED, "a pair"),)
FAILED = (Verdict(Check.MARKER_ISOLATION, Outcome.FAILED, "a pair", "a pair: a marker crossed. Let nobody in."),)
NOT_JUDGED = (Verdict(Check.MARKER_ISOLATION, Outcome.NOT_JUDGED, "a pair", "a pair: no answer. It is tried again."),)
FRONT_PASSED = (Verdict(Check.FRONT_DOOR, Outcome.PASSED, "the front"),)
FRONT_FAILED = (Verdict(Check.FRONT_DOOR, Outcome.FAILED, "the front", "the front: /workers is there. Look."),)
FRONT_NOT_JUDGED = (Verdict(Check.FRONT_DOOR, Outcome.NOT_JUDGED, "the front", "the front: late. It is tried again."),)


def spec(**parts: Any) -> PoolSpec:
    """The demo's spec; `contextLength={...}` and the like add to a part of it, or take its place."""
    made: dict[str, Any] = {
        "model": {"servedName": "tiny", "uri": "file:///models/tiny"},
        "engine": {"sglang": {"image": IMAGE, "version": "0.5.23"}},
        "roles": [{"name": "prefill", "type": "Prefill", "replicas": 2}, {"name": "decode", "type": "Decode"}],
        "contextLength": {"requestedTokens": REQUESTED},
    }
    for name, part in parts.items():
        made[name] = made.get(name, {}) | part if isinstance(part, dict) else part
    return PoolSpec.model_validate(made)


def pod(role: str, number: int = 0, *, started: bool = True, trouble: Trouble | None = None) -> PodFacts:
    """A pod with an address."""
    name = f"{role}-{number}"
    ip = f"10.0.{len(role)}.{number + 1}"
    return PodFacts(name, f"uid-{name}", role, ip, False, started, started, IMAGE, trouble)


def attested(**changes: Any) -> Attested:
    """What a rank says whose defences are all enforced, and work."""
    made = Attested(
        version="0.1.0",
        self_tested=True,
        modes=dict.fromkeys(("pageTagging", "pageScrubbing", "coverage"), "Enforce"),
        nonces=(),
        counts=dict.fromkeys(COUNTS, 0),
        found={},
    )
    return replace(made, **changes)


def boot(name: str, tokens: int, *, page: int = 1, start: int = 1, ranks: int = 1) -> Boot:
    """The start number `start` of an engine: closed, and never told anything."""
    limit = max(0, min(REQUESTED - 1, tokens - 1) - 5)
    return Boot(
        nonces=tuple(f"{name}/{start}/{part}" for part in range(ranks + 1)),
        door=DoorState.CLOSED,
        epoch=0,
        cap=0,
        peers=(),
        sglang="0.5.23",
        ranks=tuple(Rank(index, tokens, page, limit, attested()) for index in range(ranks)),
    )


def engine(kind: RoleType, number: int = 0, *, tokens: int = 0, page: int = 1, start: int = 1) -> Engine:
    """An engine that has started and answers, its door closed."""
    role = kind.value.lower()
    size = tokens or {RoleType.PREFILL: PREFILL_TOKENS, RoleType.DECODE: DECODE_TOKENS}[kind]
    facts = Facts("0.5.23", kv_checksum=True, reserved_decode_tokens=512, auto_truncates=False, repeats_nonce=True)
    made = boot(f"{role}-{number}", size, page=page, start=start)
    return Engine(pod(role, number), kind, 8998, made, facts)


def prefill(number: int = 0, **given: Any) -> Engine:
    """A prefill engine."""
    return engine(RoleType.PREFILL, number, **given)


def decode(number: int = 0, **given: Any) -> Engine:
    """A decode engine."""
    return engine(RoleType.DECODE, number, **given)


def starting(one: Engine, trouble: Trouble | None = None) -> Engine:
    """The same engine before its startup probe passed."""
    facts = replace(one.pod, started=False, ready=False, trouble=trouble)
    return replace(one, pod=facts, boot=None, facts=None)


def restarted(one: Engine, start: int = 2) -> Engine:
    """The same engine after its container was started anew."""
    assert one.boot is not None
    rank = one.boot.ranks[0]
    return replace(one, boot=boot(one.name, rank.pool_tokens, page=rank.page_size, start=start))


def with_door(one: Engine, door: DoorState, cap: int = CAP, peers: tuple[str, ...] = ()) -> Engine:
    """The same boot after an admission."""
    assert one.boot is not None
    told = replace(one.boot, door=door, cap=cap, peers=peers, epoch=one.boot.epoch + 1, applied=True)
    return replace(one, boot=told)


def router(number: int = 0, *, ready: bool = True, trouble: Trouble | None = None) -> PodFacts:
    """A router's pod."""
    return replace(pod("router", number, trouble=trouble), ready=ready)


def pool(*engines: Engine, **changes: Any) -> Observed:
    """A pool whose engines run, with a router that is ready; nothing was proven, and nobody let in."""
    given = engines or (decode(), prefill(0), prefill(1))
    made = Observed(
        spec=spec(),
        status=PoolStatus(),
        revision=REVISION,
        roles=(Role("decode", RoleType.DECODE, 1), Role("prefill", RoleType.PREFILL, 2)),
        engines=tuple(sorted(given, key=lambda one: one.name)),
        routers=(router(),),
        runs=True,
        plugin_version="0.1.0",
        newest_plugin_version="0.1.0",
    )
    return replace(made, **changes)


def serving(*engines: Engine, **changes: Any) -> Observed:
    """A pool that was admitted, all of it open and as it should be."""
    made = pool(*engines)
    opened = tuple(with_door(one, DoorState.OPEN, peers=made.peers) if one.boot else one for one in made.engines)
    status = PoolStatus.model_validate(
        {
            "currentRevision": REVISION,
            "contextLength": {"requestedTokens": REQUESTED, "advertisedTokens": CAP},
        }
    )
    return replace(replace(made, engines=opened, status=status, serving=True), **changes)


def exchanged(observed: Observed, *engines: Engine) -> Observed:
    """The pool with these in place of the engines of their names, or beside the others."""
    by_name = {one.name: one for one in (*observed.engines, *engines)}
    return replace(observed, engines=tuple(by_name[name] for name in sorted(by_name)))


def named(engines: Iterable[Engine]) -> list[str]:
    """Names of the engines' pods, in the order that they are in."""
    return [one.name for one in engines]


def nonces(one: Engine) -> Nonces:
    """Of its boot."""
    assert one.boot is not None
    return one.boot.nonces


def proven(
    observed: Observed, *engines: Engine, verdicts: tuple[Verdict, ...] = PASSED, cap: int | None = None
) -> Observed:
    """The pool after checks on these engines, or on all, under the cap that holds, or the demo's."""
    under = cap or observed.applied_tokens or CAP
    told = {nonces(one): Proof(under, verdicts) for one in engines or observed.engines if one.boot is not None}
    return replace(observed, known=replace(observed.known, proofs={**observed.known.proofs, **told}))


def with_fronts(observed: Observed, verdicts: tuple[Verdict, ...] = FRONT_PASSED) -> Observed:
    """The pool after checks on its fronts."""
    return replace(observed, known=replace(observed.known, fronts=verdicts))


def done(observed: Observed, step: Step) -> Observed:
    """The pool after a step in which nothing went wrong, as `controller.jobs` does it."""
    match step:
        case ProvePairs(pairs, cap):
            engines = tuple({one.name: one for pair in pairs for one in pair if not one.is_open}.values())
            return proven(_told(observed, engines, DoorState.CANARY, cap), *engines, cap=cap)
        case ProveFronts(engines, _, cap):
            closed = tuple(one for one in engines if not one.is_open)
            return with_fronts(_told(observed, closed, DoorState.CANARY, cap))
        case Admit(engines, cap):
            return _told(observed, engines, DoorState.OPEN, cap)


def _told(observed: Observed, engines: tuple[Engine, ...], door: DoorState, cap: int) -> Observed:
    told = (with_door(one, door, cap, observed.peers) for one in engines)
    return exchanged(observed, *told)


def told(step: Step | None) -> tuple[Engine, ...]:
    """Every engine whose door a step may tell something, or whose engine it asks."""
    match step:
        case ProvePairs(pairs, _):
            return tuple(one for pair in pairs for one in pair)
        case ProveFronts(engines, _, _) | Admit(engines, _):
            return engines
        case None:
            return ()
