"""The signing key is made once, never replaced and never shown."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import pytest

from kvfence.controller.keys import SECRET_NAME, Keys, KeyUnusableError, signing_keys
from kvfence.engine.admission import Signer
from kvfence.kube.client import Object
from kvfence.kube.errors import Forbidden
from kvfence.kube.kinds import SECRET
from tests.unit.controller.fake_kubernetes import FakeKubernetes

SEED, OTHER = bytes(range(32)), bytes(range(1, 33))


def twice(raw: bytes) -> str:
    return base64.b64encode(base64.b64encode(raw)).decode()


def secret(**data: str) -> dict[str, Any]:
    metadata = {"name": SECRET_NAME, "namespace": "kvfence"}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": data}


def keys_of(kubernetes: FakeKubernetes) -> Keys:
    return asyncio.run(signing_keys(kubernetes, "kvfence"))


def test_the_key_is_made_once_and_the_same_for_each_operator_that_comes() -> None:
    kubernetes = FakeKubernetes()
    first, second = keys_of(kubernetes), keys_of(kubernetes)
    assert kubernetes.wrote == [("create", "Secret", SECRET_NAME)]
    assert first.public == second.public == {"current": first.signer.public_bytes}
    (made,) = kubernetes.all(SECRET)
    seed = base64.b64decode(base64.b64decode(made["data"]["current"]))
    assert Signer.from_seed(seed).public_bytes == first.signer.public_bytes
    assert made["metadata"]["labels"] == {"app.kubernetes.io/managed-by": "kvfence"}
    assert "ownerReferences" not in made["metadata"], "it outlives every pool"


def test_two_installations_have_two_keys() -> None:
    assert keys_of(FakeKubernetes()).public != keys_of(FakeKubernetes()).public


def test_the_key_of_an_operator_that_was_faster_is_taken() -> None:
    class Race(FakeKubernetes):
        async def create(self, obj: Object) -> Object | None:
            self.put(secret(current=twice(SEED)))
            return await super().create(obj)

    kubernetes = Race()
    assert keys_of(kubernetes).public == {"current": Signer.from_seed(SEED).public_bytes}
    assert len(kubernetes.all(SECRET)) == 1


def test_a_rotation_gives_out_the_next_key_and_signs_with_the_current_one() -> None:
    kubernetes = FakeKubernetes()
    kubernetes.put(secret(current=twice(SEED), next=twice(OTHER), note=twice(b"of somebody")))
    keys = keys_of(kubernetes)
    current, following = (Signer.from_seed(seed).public_bytes for seed in (SEED, OTHER))
    assert keys.public == {"current": current, "next": following}
    assert keys.signer.public_bytes == current


def test_a_key_with_a_line_break_behind_it_is_read() -> None:
    kubernetes = FakeKubernetes()
    kubernetes.put(secret(current=base64.b64encode(base64.b64encode(SEED) + b"\n").decode()))
    assert keys_of(kubernetes).signer.public_bytes == Signer.from_seed(SEED).public_bytes


@pytest.mark.parametrize(
    ("data", "named"),
    [
        ({}, "current"),
        ({"current": ""}, "current"),
        ({"current": "?"}, "current"),
        ({"current": base64.b64encode(SEED).decode()}, "current"),
        ({"current": twice(SEED[:31])}, "current"),
        ({"current": twice(SEED + b"x")}, "current"),
        ({"current": twice(SEED), "next": twice(b"short")}, "next"),
        ({"next": twice(SEED)}, "current"),
    ],
)
def test_a_secret_without_a_usable_key_is_named_and_not_replaced(data: dict[str, str], named: str) -> None:
    kubernetes = FakeKubernetes()
    kubernetes.put(secret(**data))
    with pytest.raises(KeyUnusableError, match=f"Secret {SECRET_NAME} has no signing key under {named}") as raised:
        keys_of(kubernetes)
    assert kubernetes.writes == 0
    assert not any(value and value in str(raised.value) for value in data.values() if len(value) > 1)


def test_a_secret_without_data_is_no_key() -> None:
    kubernetes = FakeKubernetes()
    kubernetes.put({key: value for key, value in secret().items() if key != "data"})
    with pytest.raises(KeyUnusableError):
        keys_of(kubernetes)


def test_an_api_server_that_says_no_is_not_taken_for_an_absent_key() -> None:
    kubernetes = FakeKubernetes()
    kubernetes.fail["get Secret"] = Forbidden(403, "Forbidden", "cannot get Secret kvfence/kvfence-signing-key: no")
    with pytest.raises(Forbidden):
        keys_of(kubernetes)
    assert kubernetes.writes == 0


def test_nothing_that_is_printed_shows_a_private_key() -> None:
    kubernetes = FakeKubernetes()
    kubernetes.put(secret(current=twice(SEED)))
    keys = keys_of(kubernetes)
    for shown in (repr(keys), str(keys), f"{keys.signer!r}"):
        for form in (SEED.hex(), base64.b64encode(SEED).decode(), twice(SEED), repr(SEED)):
            assert form not in shown
