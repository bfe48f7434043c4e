"""Engines are asked for evidence of their defences with a nonce, and partners are told of each other's boots."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kvfence_engine.integrity.classes import Finding
from tests.unit.controller.virtual_time import run
from tests.unit.controller.world import World

MakeWorld = Callable[..., World]


def test_every_boot_is_asked_with_a_nonce_of_its_own_and_only_once(world: World) -> None:
    async def go() -> None:
        await world.settle()
        asked = [url for url in world.wire.asked if "/server_info" in url]
        assert len(asked) == 2
        assert all("kvfence_nonce=" in url for url in asked)
        assert len({url.partition("kvfence_nonce=")[2] for url in asked}) == 2
        assert world.conditions()["IntegrityEnforced"] == ("True", "DefencesEnforced")
        assert world.conditions()["Secured"] == ("True", "AllDefencesEnforced")

    run(go())


@pytest.mark.parametrize(
    ("change", "condition"),
    [
        ({"attests": False}, ("False", "PageDefenceNotAttested")),
        ({"defences": "Observe"}, ("False", "PageDefenceOff")),
        ({"repeats": False}, ("Unknown", "PageDefenceNotAttested")),
    ],
)
def test_an_engine_without_evidence_is_not_let_in(
    make_world: MakeWorld, change: dict[str, Any], condition: tuple[str, str]
) -> None:
    world = make_world()

    async def go() -> None:
        world.held.add("decode")
        await world.settle()
        world.held.clear()
        world.kubelet()
        (decode,) = world.engines("decode")
        for name, value in change.items():
            setattr(decode, name, value)
        decode.boot()
        await world.look()
        await world.look()
        assert world.conditions()["IntegrityEnforced"] == condition
        assert decode.door == "closed"

    run(go())


def test_a_rank_that_repeats_the_nonce_later_is_taken_then(make_world: MakeWorld) -> None:
    world = make_world()

    async def go() -> None:
        world.held.add("decode")
        await world.settle()
        world.held.clear()
        world.kubelet()
        (decode,) = world.engines("decode")
        decode.repeats = False
        await world.look()
        assert world.conditions()["IntegrityEnforced"][0] == "Unknown"
        decode.repeats = True
        await world.settle()
        assert world.conditions()["Ready"] == ("True", "Serving")

    run(go())


def test_each_leg_is_told_the_others_of_this_boot(make_world: MakeWorld) -> None:
    world = make_world(prefill=2)

    async def go() -> None:
        await world.settle()
        (decode,), prefills = world.engines("decode"), world.engines("prefill")
        of_decode = {(one.peer, one.key) for one in decode.grant.partners}
        assert {key for _, key in of_decode} == {one.status()["key"] for one in prefills}
        assert all(peer.endswith(":8998") for peer, _ in of_decode)
        for one in prefills:
            ((control, peer, key),) = [(p.control, p.peer, p.key) for p in one.grant.partners]
            assert (peer, key) == ("", decode.status()["key"])
            assert control.endswith(":8901")

    run(go())


def test_a_tainted_engine_leaves_the_routers_list_and_its_words_say_why(make_world: MakeWorld) -> None:
    world = make_world(prefill=2)

    async def go() -> None:
        await world.settle()
        listed = len(world.workers())
        tainted = world.engines("prefill")[0]
        tainted.blow(Finding.ESCAPED, "ForeignPage", "rank 0")
        await world.look()
        assert len(world.workers()) == listed - 1
        await world.settle()
        assert tainted.door == "tainted"
        assert world.conditions()["RolesReady"] == ("False", "DoorTainted")
        assert "Escaped: ForeignPage, rank 0" in world.message("RolesReady")

    run(go())


def test_what_the_defences_stopped_is_said_and_cuts_nobody(world: World) -> None:
    async def go() -> None:
        await world.settle()
        (decode,) = world.engines("decode")
        decode.found = {"ForeignPage": 1, "Coverage": 4}
        decode.repeat("00" * 16)
        await world.look()
        assert world.conditions()["IntegrityEnforced"] == ("True", "WrongPagesFound")
        assert world.conditions()["Ready"] == ("True", "Serving")
        assert decode.door == "open"

    run(go())
