"""An admission is taken when it is genuine, for this boot and newer than the last; anything else is refused by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvfence_engine import admission
from kvfence_engine.admission import Admission, Boot, Reason, Refusal
from kvfence_engine.state import Door, Grant
from tests.unit.engine_image.conftest import BOOT, Operator

Admit = Callable[..., Admission]
HELD = Grant(Door.OPEN, 5, 900)


def judged(operator: Operator, admitted: Admission, boot: Boot = BOOT, grant: Grant | None = None) -> object:
    message = admission.encode(admitted)
    found = admission.judge(message, operator.sign(message), [operator.public], boot, grant or Grant())
    return found.reason if isinstance(found, Refusal) else found


def test_one_that_fits_is_taken(operator: Operator, admit: Admit) -> None:
    assert judged(operator, admit()) == admit()
    assert admission.granted(admit()) == Grant(Door.OPEN, 1, 1000, ("10.0.0.1:8998",), ())


FOREIGN: dict[str, tuple[dict[str, Any], Reason]] = {
    "another pool": ({"pool": "other"}, Reason.FOREIGN_POOL),
    "another pod": ({"pod": "other"}, Reason.FOREIGN_POD),
    "the boot before": ({"nonces": ("n-http", "n-rank-0", "n-rank-9")}, Reason.FOREIGN_BOOT),
    "one rank less": ({"nonces": ("n-http", "n-rank-0")}, Reason.FOREIGN_BOOT),
    "the ranks in another order": ({"nonces": ("n-http", "n-rank-1", "n-rank-0")}, Reason.FOREIGN_BOOT),
    "more than the pool holds": ({"cap": 1025}, Reason.CAP_ABOVE_POOL),
}


@pytest.mark.parametrize(("changes", "reason"), FOREIGN.values(), ids=FOREIGN.keys())
def test_one_for_somebody_else_is_refused(
    operator: Operator, admit: Admit, changes: dict[str, Any], reason: Reason
) -> None:
    assert judged(operator, admit(**changes)) is reason


LATE: dict[str, tuple[dict[str, Any], Grant, Reason | None]] = {
    "replayed": ({"epoch": 5, "cap": 900}, HELD, Reason.OLD_EPOCH),
    "overtaken": ({"epoch": 4, "cap": 900}, HELD, Reason.OLD_EPOCH),
    "the next": ({"epoch": 6, "cap": 900}, HELD, None),
    "lowering": ({"epoch": 6, "cap": 500}, HELD, None),
    "raising": ({"epoch": 6, "cap": 901}, HELD, Reason.CAP_RAISED),
    "after draining began": ({"epoch": 6, "cap": 900}, Grant(Door.DRAINING, 5, 900), Reason.FINAL),
    "after a taint": ({"epoch": 6, "cap": 900}, Grant(Door.TAINTED, 5, 900), Reason.FINAL),
}


@pytest.mark.parametrize(("changes", "grant", "reason"), LATE.values(), ids=LATE.keys())
def test_epoch_and_cap_go_one_way(
    operator: Operator, admit: Admit, changes: dict[str, Any], grant: Grant, reason: Reason | None
) -> None:
    assert judged(operator, admit(**changes), grant=grant) == (reason or admit(**changes))


def test_nothing_is_taken_before_every_process_said_who_it_is(operator: Operator, admit: Admit) -> None:
    starting = Boot(BOOT.pool, BOOT.pod, (), 0)
    assert judged(operator, admit(), starting) is Reason.NOT_MEASURED
    assert judged(operator, admit(nonces=()), starting) is Reason.NOT_MEASURED


def test_two_keys_are_good_during_a_rotation_and_a_third_never(operator: Operator, admit: Admit) -> None:
    new, stranger, message = Operator(), Operator(), admission.encode(admit())
    keys = [operator.public, new.public]
    for signer in (operator, new):
        assert admission.judge(message, signer.sign(message), keys, BOOT, Grant()) == admit()
    for signature in (stranger.sign(message), b"", bytes(64), operator.key.sign(message)):  # the last: without PREFIX
        refused = admission.judge(message, signature, keys, BOOT, Grant())
        assert isinstance(refused, Refusal)
        assert refused.reason is Reason.FORGED
    refused = admission.judge(message, operator.sign(message), [], BOOT, Grant())
    assert isinstance(refused, Refusal)
    assert refused.reason is Reason.NO_KEYS


def test_one_ends_when_it_says(admit: Admit) -> None:
    assert admission.expired(admit(expires=1000), 1000.0) is None
    late = admission.expired(admit(expires=1000), 1060.4)
    assert late == Refusal(Reason.EXPIRED, "the admission ended 60 s ago by this engine's clock")


@given(st.data())
def test_whatever_byte_is_changed_it_is_forged(data: st.DataObject) -> None:
    operator = Operator()
    message = admission.encode(Admission("p", "q", ("n",), 1, Door.OPEN, 100, ("h:1",), ("cd" * 32,), 1_800_000_000))
    at = data.draw(st.integers(0, len(message) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda value: value != message[at]))
    changed = message[:at] + bytes([byte]) + message[at + 1 :]
    refused = admission.judge(changed, operator.sign(message), [operator.public], BOOT, Grant())
    assert isinstance(refused, Refusal)
    assert refused.reason is Reason.FORGED


TEXT = st.text(min_size=1, max_size=20)
ADMISSIONS = st.builds(
    Admission,
    pool=TEXT,
    pod=TEXT,
    nonces=st.lists(TEXT, max_size=4).map(tuple),
    epoch=st.integers(1, 2**53 - 1),
    door=st.sampled_from(Door),
    cap=st.integers(admission.SMALLEST_CAP, 2**53 - 1),
    peers=st.lists(st.sampled_from(["10.0.0.1:8998", "p-0.p.ns.svc:1", "fd00::1:65535"]), max_size=3).map(tuple),
    passes=st.lists(st.sampled_from(["ab" * 32, "0" * 64]), max_size=3).map(tuple),
    expires=st.integers(0, 2**53 - 1),
)


@given(ADMISSIONS)
def test_what_is_written_is_read(admitted: Admission) -> None:
    assert admission.decode(admission.encode(admitted)) == admitted


def with_fields(admitted: Admission, **fields: object) -> bytes:
    return json.dumps(json.loads(admission.encode(admitted)) | fields, sort_keys=True, separators=(",", ":")).encode()


OTHER_FORMS: dict[str, Callable[[Admission], bytes]] = {
    "with a space": lambda a: admission.encode(a).replace(b",", b", ", 1),
    "with a key twice": lambda a: admission.encode(a).replace(b'{"cap":1000', b'{"cap":8,"cap":1000', 1),
    "with a further field": lambda a: with_fields(a, admin=True),
    "with a field missing": lambda a: admission.encode(a).replace(b'"cap":1000,', b"", 1),
    "with true for a number": lambda a: with_fields(a, epoch=True),
    "with a float": lambda a: with_fields(a, cap=1000.0),
    "with a negative epoch": lambda a: with_fields(a, epoch=-1),
    "with an epoch beyond all others": lambda a: with_fields(a, epoch=2**53),
    "with a cap that leaves no prompt": lambda a: with_fields(a, cap=7),
    "with a text for the nonces": lambda a: with_fields(a, nonces="n-http"),
    "with a peer without port": lambda a: with_fields(a, peers=["10.0.0.1"]),
    "with a pass that is no hash": lambda a: with_fields(a, passes=["secret"]),
    "with a door that is none": lambda a: with_fields(a, door="ajar"),
    "nothing": lambda _: b"",
    "no JSON": lambda _: b"\xff",
    "a list": lambda _: b"[]",
    "nested without end": lambda _: b"[" * 100_000,
}


@pytest.mark.parametrize("form", OTHER_FORMS.values(), ids=OTHER_FORMS.keys())
def test_another_form_is_refused_even_when_it_is_signed(
    operator: Operator, admit: Admit, form: Callable[[Admission], bytes]
) -> None:
    message = form(admit())
    refused = admission.judge(message, operator.sign(message), [operator.public], BOOT, Grant())
    assert isinstance(refused, Refusal)
    assert refused.reason is Reason.MALFORMED
    with pytest.raises(ValueError, match=r"."):
        admission.decode(message)
