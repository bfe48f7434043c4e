"""The operator's side of the door against the engine's: they may not import each other, so this holds them together."""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvfence.domain import asking
from kvfence.engine import admission as operators
from kvfence.engine import door
from kvfence.engine.admission import Admission, DoorState, Signer, encode
from kvfence.engine.door import DoorClient, DoorStatus, RankStatus, Refused, Unanswered
from kvfence.verify.pair_suite import Limits
from kvfence_engine import admission as engines
from kvfence_engine import doorkeeper, launcher, limits, requests, state
from kvfence_engine.control import BODY_LIMIT, Control
from kvfence_engine.doorkeeper import Doorkeeper, Identity
from kvfence_engine.state import Door, Rank, Server, SharedState

POOL, POD = "pool-uid", "pod-uid"
NAMES = st.text(min_size=1, max_size=40)
ADMISSIONS = st.builds(
    Admission,
    pool=NAMES,
    pod=NAMES,
    nonces=st.lists(NAMES, max_size=4).map(tuple),
    epoch=st.integers(1, 2**53 - 1),
    door=st.sampled_from(DoorState),
    cap=st.integers(8, 2**53 - 1),
    peers=st.lists(st.sampled_from(["10.0.0.1:8998", "fd00::1:8998", "engine-0.pool.svc:1"]), max_size=3).map(tuple),
    passes=st.lists(st.binary(min_size=32, max_size=32).map(bytes.hex), max_size=3).map(tuple),
    expires=st.integers(0, 2**53 - 1),
)


def as_the_engine_has_it(admission: Admission) -> engines.Admission:
    fields = {field.name: getattr(admission, field.name) for field in dataclasses.fields(admission)}
    return engines.Admission(**{**fields, "door": Door(admission.door.value)})


@settings(max_examples=200, deadline=None)
@given(ADMISSIONS)
def test_the_engine_reads_what_the_operator_writes_and_would_write_it_the_same(admission: Admission) -> None:
    same = as_the_engine_has_it(admission)
    assert engines.decode(encode(admission)) == same
    assert engines.encode(same) == encode(admission)


def test_both_have_the_same_fields_words_and_numbers() -> None:
    assert [f.name for f in dataclasses.fields(Admission)] == [f.name for f in dataclasses.fields(engines.Admission)]
    assert {one.name: one.value for one in DoorState} == {one.name: one.value for one in Door}
    assert operators.PREFIX == engines.PREFIX
    assert door.PORT == launcher.PORT
    assert door.MAX_RANKS == state.MAX_RANKS
    assert asking.PASS_FIELD == requests.PASS_FIELD
    assert asking.ROOMS == requests.ROOMS


def test_the_operator_waits_longer_than_the_launcher_does() -> None:
    assert door.ADMIT_SECONDS >= doorkeeper.APPLY_SECONDS + 5


@pytest.mark.parametrize("cap", [8, 1003, 1_048_576])
def test_both_mean_the_same_prompt_by_the_longest(cap: int) -> None:
    assert Limits(cap, cap, cap, cap, 1).longest == limits.longest_prompt(cap, own=cap - 6)


def test_an_admission_with_many_peers_and_passes_is_not_too_large() -> None:
    admission = Admission(
        POOL, POD, ("n" * 32,) * 257, 1, DoorState.CANARY, 1000, ("10.100.200.100:8998",) * 250, ("f" * 64,) * 250, 1
    )
    assert len(json.dumps(Signer.from_seed(bytes(32)).sign(admission))) < BODY_LIMIT


# --- over HTTP, with the launcher's own server ---


class Launcher:
    """The launcher's part in this process; its engine applies every cap at once."""

    def __init__(self, keys: Path) -> None:
        self.state = SharedState.create()
        self.keeper = Doorkeeper(self.state, Identity(POOL, POD, keys), lambda: None)
        control = Control(("127.0.0.1", 0), self.keeper)
        self._server = control._server  # it says which port it got
        self.port = self._server.server_address[1]
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._apply)

    def start(self) -> None:
        self.state.set_server(Server(1, "n-http", "0.5.23", ranks=2, serving=True))
        for index in (1, 0):
            self.state.set_rank(
                Rank(
                    index=index,
                    pid=2 + index,
                    nonce=f"n-rank-{index}",
                    pool_tokens=1024 + index,
                    page_size=16,
                    boot_input_limit=1018 + index,
                    input_limit=1018 + index,
                )
            )
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()
        self._server.shutdown()
        self._server.server_close()

    def _apply(self) -> None:
        while not self._over.wait(0.005):
            grant, server = self.state.grant(), self.state.server()
            assert server is not None
            for rank in self.state.ranks() if grant.epoch > server.epoch else ():
                limit = limits.input_limit(grant.cap, rank.boot_input_limit)
                self.state.set_rank(dataclasses.replace(rank, epoch=grant.epoch, input_limit=limit))
            self.state.set_server(dataclasses.replace(server, epoch=grant.epoch))


SIGNER = Signer.from_seed(bytes(range(32)))


@pytest.fixture
def boot(tmp_path: Path) -> Iterator[Launcher]:
    (tmp_path / "current").write_text(base64.b64encode(SIGNER.public_bytes).decode() + "\n")
    made = Launcher(tmp_path)
    yield made
    made.stop()


def admission(epoch: int = 1, **changes: object) -> Admission:
    fits = Admission(
        pool=POOL,
        pod=POD,
        nonces=("n-http", "n-rank-0", "n-rank-1"),
        epoch=epoch,
        door=DoorState.CANARY,
        cap=1000,
        peers=("10.0.0.1:8998",),
        passes=("f" * 64,),
        expires=int(time.time()) + 60,
    )
    return dataclasses.replace(fits, **changes)  # type: ignore[arg-type]


def status(boot: Launcher) -> DoorStatus | Unanswered:
    async def ask() -> DoorStatus | Unanswered:
        async with DoorClient(port=boot.port) as client:
            return await client.status("127.0.0.1")

    return asyncio.run(ask())


def admit(boot: Launcher, admission: Admission, signer: Signer = SIGNER) -> DoorStatus | Refused | Unanswered:
    async def ask() -> DoorStatus | Refused | Unanswered:
        async with DoorClient(port=boot.port) as client:
            return await client.admit("127.0.0.1", signer.sign(admission))

    return asyncio.run(ask())


def test_a_launcher_is_understood_before_its_engine_has_started(boot: Launcher) -> None:
    said = status(boot)
    assert isinstance(said, DoorStatus), said
    assert (said.pool, said.pod, said.door, said.started) == (POOL, POD, DoorState.CLOSED, False)
    assert (said.nonces, said.ranks, said.sglang, said.cap, said.epoch) == ((), (), None, 0, 0)


def test_a_launcher_is_understood_when_an_admission_is_applied(boot: Launcher) -> None:
    boot.start()
    said = admit(boot, admission())
    assert isinstance(said, DoorStatus), said
    assert said == status(boot)
    assert (said.door, said.epoch, said.cap, said.peers) == (DoorState.CANARY, 1, 1000, ("10.0.0.1:8998",))
    assert (said.started, said.sglang, said.fault) == (True, "0.5.23", None)
    assert said.ranks == (
        RankStatus(0, "n-rank-0", 1024, 16, 1018, 994, 1),
        RankStatus(1, "n-rank-1", 1025, 16, 1019, 994, 1),
    )


def test_a_grant_counts_for_the_operator_when_the_launcher_itself_says_that_it_is_applied(boot: Launcher) -> None:
    """The launcher tells it before, and without a word of its own that it is not applied yet."""
    boot.state.set_server(Server(1, "n-http", "0.5.23", ranks=1, serving=True))
    boot.state.set_rank(Rank(0, 2, "n-rank-0", 1024, 16, 1018, 1018))
    granted = state.Grant(Door.OPEN, epoch=2, cap=1000)
    boot.state.set_grant(granted)
    server, rank = boot.state.server(), boot.state.ranks()[0]
    assert server is not None
    seen = []
    for server_epoch, rank_epoch, limit in [(1, 1, 1018), (1, 2, 994), (2, 1, 994), (2, 2, 1000), (2, 2, 994)]:
        boot.state.set_server(dataclasses.replace(server, epoch=server_epoch))
        boot.state.set_rank(dataclasses.replace(rank, epoch=rank_epoch, input_limit=limit))
        said = status(boot)
        assert isinstance(said, DoorStatus), said
        assert (said.door, said.epoch, said.cap) == (DoorState.OPEN, 2, 1000)
        assert said.applied == boot.keeper._is_applied(granted)
        seen.append(said.applied)
    assert seen == [False] * 4 + [True]


def test_a_fault_is_understood(boot: Launcher) -> None:
    boot.state.set_fault("main: HookError: it is not there")
    said = status(boot)
    assert isinstance(said, DoorStatus)
    assert said.fault == "main: HookError: it is not there"


def test_refusals_are_understood(boot: Launcher) -> None:
    boot.start()
    assert isinstance(admit(boot, admission(epoch=5)), DoorStatus)
    refused = {
        "OldEpoch": admit(boot, admission(epoch=5)),
        "CapRaised": admit(boot, admission(epoch=6, cap=1001)),
        "ForeignBoot": admit(boot, admission(epoch=6, nonces=("another",))),
        "ForeignPool": admit(boot, admission(epoch=6, pool="another")),
        "Expired": admit(boot, admission(epoch=6, expires=1)),
        "Malformed": admit(boot, admission(epoch=6, cap=7)),
        "Forged": admit(boot, admission(epoch=6), Signer.from_seed(bytes(32))),
    }
    for reason, said in refused.items():
        assert isinstance(said, Refused), said
        assert said.reason == reason
        assert said.message
