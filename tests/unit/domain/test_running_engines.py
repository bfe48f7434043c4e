"""What the conditions EngineAllowed and IntegrityEnforced say of running engines; the worst word counts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kvfence.api.v1alpha1.conditions import ConditionStatus
from kvfence.api.v1alpha1.reasons import Reason
from kvfence.domain.decisions import Admit, decide
from kvfence.domain.engine_allowed import engine_allowed, version_of
from kvfence.domain.engines import Engine
from kvfence.domain.integrity import integrity_enforced, integrity_of
from kvfence.domain.observed import Observed
from tests.unit.domain.pools_of_engines import (
    CAP,
    decode,
    exchanged,
    pool,
    prefill,
    proven,
    restarted,
    serving,
    spec,
    starting,
)

TRUE, FALSE, UNKNOWN = ConditionStatus.TRUE, ConditionStatus.FALSE, ConditionStatus.UNKNOWN
IMAGE = "registry.example/sglang:v0.5.23"
OBSERVE = {"kvChecksum": "Observe"}


def says(one: Engine, **changes: object) -> Engine:
    assert one.facts is not None
    return replace(one, facts=replace(one.facts, **changes))  # type: ignore[arg-type]


def undeclared(observed: Observed) -> Observed:
    return replace(observed, spec=spec(engine={"sglang": {"image": IMAGE}}))


@pytest.mark.parametrize(
    ("observed", "status", "reason", "word"),
    [
        (replace(pool(), engines=()), TRUE, Reason.VERSION_ALLOWED, "engine.sglang.version is 0.5.23"),
        (undeclared(replace(pool(), engines=())), UNKNOWN, Reason.VERSION_NOT_KNOWN, "does not declare"),
        (undeclared(pool()), TRUE, Reason.VERSION_ALLOWED, "SGLang in pod decode-0 is 0.5.23"),
        (undeclared(pool(decode(), starting(prefill()))), TRUE, Reason.VERSION_ALLOWED, "decode-0"),
        (pool(decode(), says(prefill(), version=None)), UNKNOWN, Reason.VERSION_NOT_KNOWN, "Pod prefill-0"),
        (
            pool(says(decode(), version=None), says(prefill(), version="0.5.19")),
            FALSE,
            Reason.VERSION_TOO_OLD,
            "prefill-0",
        ),
        (pool(decode(), says(prefill(), version="0.5.24")), FALSE, Reason.VERSION_NOT_AS_DECLARED, "prefill-0"),
        (
            undeclared(pool(decode(), says(prefill(), version="\x1b[0m" + "9" * 9999))),
            FALSE,
            Reason.VERSION_UNREADABLE,
            "prefill-0",
        ),
    ],
)
def test_the_version_that_runs_counts_beside_the_one_that_is_declared(
    observed: Observed, status: ConditionStatus, reason: Reason, word: str
) -> None:
    finding = engine_allowed(observed)
    assert (finding.status, finding.reason) == (status, reason)
    assert word in finding.message
    assert finding.message.isprintable()
    assert len(finding.message) < 500


def test_what_is_declared_refuses_even_when_good_engines_run() -> None:
    old = replace(pool(), spec=spec(engine={"sglang": {"image": IMAGE, "version": "0.5.19"}}))
    assert engine_allowed(old).reason is Reason.VERSION_TOO_OLD


def of_image(one: Engine, image: str) -> Engine:
    return replace(one, pod=replace(one.pod, image_id=image))


def kept_out(observed: Observed) -> list[str]:
    return [e.name for e in observed.engines if version_of(e, observed).reason is Reason.IMAGES_DIFFER]


MOVED = "registry.example/sglang@sha256:" + "b" * 64


def test_an_engine_with_another_image_than_the_others_is_kept_out() -> None:
    other = exchanged(proven(pool()), of_image(prefill(0), MOVED))
    finding = engine_allowed(other)
    assert (finding.status, finding.reason) == (FALSE, Reason.IMAGES_DIFFER)
    assert finding.message.startswith("Pod prefill-0 runs another image than the pool's other engines")
    assert (decide(other).listed, decide(other).step) == ((), None)
    assert kept_out(exchanged(other, of_image(prefill(0), ""))) == [], "the kubelet has not said it yet"
    assert kept_out(pool(*(of_image(one, MOVED) for one in pool().engines))) == []


def test_the_image_of_those_that_serve_is_the_one_that_counts() -> None:
    moved = of_image(restarted(decode()), MOVED)  # the first by its name
    fresh = proven(exchanged(serving(), moved))
    assert kept_out(fresh) == ["decode-0"]
    assert decide(fresh).step is None or not isinstance(decide(fresh).step, Admit)
    assert decide(proven(exchanged(serving(), restarted(decode())))).step == Admit((restarted(decode()),), CAP)
    quiet = [replace(one, boot=None, facts=None, unheard=True) for one in serving().engines[1:]]
    assert kept_out(exchanged(fresh, *quiet)) == ["decode-0"], "what is not heard serves still"


def test_an_engine_that_has_not_started_says_nothing_of_the_others_image() -> None:
    loading = exchanged(pool(), of_image(starting(decode()), MOVED))
    assert kept_out(loading) == ["decode-0"]
    assert engine_allowed(loading).holds


@pytest.mark.parametrize(
    ("observed", "status", "reason", "word"),
    [
        (pool(), TRUE, Reason.DEFENCES_ENFORCED, "All ranks of all running engines (3) attest the KV checksum"),
        (
            replace(pool(), plugin_version="0.1.0.dev0"),
            TRUE,
            Reason.CHECKSUM_ENFORCED,
            "All running engines report it as on: 3 of 3.",
        ),
        (replace(pool(), engines=()), UNKNOWN, Reason.CHECKSUM_NOT_KNOWN, "No engine has said yet"),
        (pool(starting(decode())), UNKNOWN, Reason.CHECKSUM_NOT_KNOWN, "No engine has said yet"),
        (pool(decode(), says(prefill(), kv_checksum=False)), FALSE, Reason.CHECKSUM_OFF, "Pod prefill-0"),
        (pool(says(decode(), kv_checksum=False), prefill()), FALSE, Reason.CHECKSUM_OFF, "Pod decode-0"),
        (pool(decode(), says(prefill(), kv_checksum=None)), UNKNOWN, Reason.CHECKSUM_NOT_KNOWN, "Pod prefill-0"),
        (
            pool(says(decode(), kv_checksum=None), says(prefill(), kv_checksum=False)),
            FALSE,
            Reason.CHECKSUM_OFF,
            "Pod prefill-0",
        ),
        (pool(decode(), says(prefill(), auto_truncates=True)), FALSE, Reason.PROMPTS_TRUNCATED, "Pod prefill-0"),
        (pool(decode(), says(prefill(), auto_truncates=None)), UNKNOWN, Reason.PROMPTS_TRUNCATED, "Pod prefill-0"),
    ],
)
def test_every_running_engine_has_to_report_its_checksum_as_on(
    observed: Observed, status: ConditionStatus, reason: Reason, word: str
) -> None:
    finding = integrity_enforced(observed)
    assert (finding.status, finding.reason) == (status, reason)
    assert word in finding.message


def test_when_it_is_observed_only_it_is_counted_and_truncating_is_refused_still() -> None:
    engines = (decode(), says(prefill(), kv_checksum=False), says(prefill(1), kv_checksum=None))
    observed = replace(pool(*engines), spec=spec(integrity=OBSERVE))
    finding = integrity_enforced(observed)
    assert (finding.status, finding.reason) == (TRUE, Reason.CHECKSUM_OBSERVED)
    assert "1 of 3 engines report it as on" in finding.message
    cutting = replace(observed, engines=(*observed.engines, says(prefill(2), auto_truncates=True)))
    assert integrity_enforced(cutting).reason is Reason.PROMPTS_TRUNCATED


def test_an_engine_that_does_not_answer_is_not_judged_as_sound() -> None:
    assert not integrity_of(starting(prefill()), pool()).holds
