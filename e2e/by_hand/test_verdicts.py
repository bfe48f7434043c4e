"""What the commands say of servers started by hand, right and wrong, is right."""

from __future__ import annotations

from typing import Any

import pytest

from e2e.by_hand import cast, scenes, table
from e2e.by_hand.cast import CONTEXT, SMALL_POOL
from e2e.by_hand.conftest import Played
from e2e.by_hand.playing import Seen
from e2e.by_hand.scenes import Scene
from e2e.product.layers import CHECKOUT
from kvfence.domain.verdicts import Check

PAGE = CHECKOUT / "docs" / "verdicts.md"
SCENES = {scene.name: scene for scene in scenes.SCENES}
INCIDENT = "KVF-2026-0001"
NO_PD = (scenes.ALONE, scenes.ALONE_SHORT)
NOT_CAPPED = (scenes.OLD_PAIR, scenes.APART_PAIR, scenes.TRUNCATING_PAIR)


def findings(seen: Seen) -> dict[str, dict[str, Any]]:
    """What the doctor found, by id; of several of one kind the first."""
    return {one["id"]: one for one in reversed(seen.doctor.json["findings"])}


def checks(seen: Seen) -> dict[str, dict[str, Any]]:
    """What the canary judged, by name."""
    return {one["name"]: one for one in seen.canary.json["checks"]}


def verdicts(seen: Seen) -> dict[str, str]:
    return {name: check["verdict"] for name, check in checks(seen).items()}


@pytest.mark.parametrize("scene", NOT_CAPPED, ids=lambda scene: scene.name)
def test_a_pair_that_offers_more_than_prefill_holds_is_found(played: Played, scene: Scene) -> None:
    seen = played.seen[scene.name]
    assert seen.doctor.status == 1, seen.doctor.err
    leaks = scene is scenes.OLD_PAIR
    assert findings(seen)["ContextAbovePool"]["severity"] == ("critical" if leaks else "high")
    prefill, decode = seen.doctor.json["engines"]
    assert (prefill["kvPoolTokens"], prefill["contextLength"], prefill["maxInputTokens"]) == (SMALL_POOL, CONTEXT, 1018)
    assert (prefill["contextFits"], prefill["advertisableContext"]) == (False, SMALL_POOL)
    assert (decode["kvPoolTokens"], decode["contextLength"], decode["contextFits"]) == (CONTEXT, CONTEXT, True)
    assert decode["advertisableContext"] == CONTEXT - 512 - 1, "decode keeps 512 tokens and a page back"


def test_the_leak_of_the_old_version_is_an_advisory_and_its_marker_is_printed(played: Played) -> None:
    seen = played.seen[scenes.OLD_PAIR.name]
    assert findings(seen)[INCIDENT]["severity"] == "critical"
    overlong = checks(seen)[Check.OVERLONG_PROMPT]
    assert (seen.canary.status, overlong["verdict"]) == (1, "fail")
    assert any("marker" in line for line in overlong["evidence"]), overlong


@pytest.mark.parametrize("scene", [scenes.APART_PAIR, scenes.SGLANG_ROUTER], ids=lambda scene: scene.name)
def test_a_prompt_that_hangs_where_the_pools_are_apart_fails(played: Played, scene: Scene) -> None:
    seen = played.seen[scene.name]
    assert (seen.canary.status, verdicts(seen)[Check.OVERLONG_PROMPT]) == (1, "fail")


def test_a_prompt_that_is_cut_on_one_leg_is_found_and_fails(played: Played) -> None:
    seen = played.seen[scenes.TRUNCATING_PAIR.name]
    assert "AutoTruncateInPair" in findings(seen)
    assert (seen.canary.status, verdicts(seen)[Check.OVERLONG_PROMPT]) == (1, "fail")


@pytest.mark.parametrize("scene", [scenes.CAPPED_PAIR, scenes.DOOR_PAIR], ids=lambda scene: scene.name)
def test_a_pair_that_offers_what_fits_passes(played: Played, scene: Scene) -> None:
    seen = played.seen[scene.name]
    assert "ContextAbovePool" not in findings(seen)
    passed = (Check.MARKER_ISOLATION, Check.OVERLONG_PROMPT, Check.PROMPT_TOKENS, Check.STREAM_ERRORS)
    assert {verdicts(seen)[check] for check in passed} == {"pass"}


def test_a_client_that_names_the_fake_host_or_a_health_check_passes_on_a_plain_pair_and_not_the_door(
    played: Played,
) -> None:
    plain, door = (verdicts(played.seen[scene.name]) for scene in (scenes.CAPPED_PAIR, scenes.DOOR_PAIR))
    assert plain[Check.FAKE_TRANSFER] == "fail"
    assert (door[Check.FAKE_TRANSFER], door[Check.HEALTH_CHECK_RID]) == ("pass", "pass")


def test_a_server_whose_pool_holds_its_context_is_clean(played: Played) -> None:
    seen = played.seen[scenes.ALONE.name]
    assert (seen.doctor.status, seen.doctor.json["findings"]) == (0, [])
    assert seen.canary.status in (0, 2)
    assert all(check["verdict"] == "pass" or check["reason"] for check in checks(seen).values())


def test_a_server_alone_that_shows_its_key_is_told_so_without_the_key(played: Played) -> None:
    seen = played.seen[scenes.ALONE_SHORT.name]
    assert {"ContextAbovePool", "KeysShown"} <= findings(seen).keys()
    assert set(verdicts(seen).values()) == {"pass"}, "a server without PD refuses what its pool does not hold"
    for ran in (seen.doctor, seen.canary):
        assert cast.KEY not in ran.out + ran.err


def test_of_a_server_that_wants_a_key_nothing_can_be_told_without_it(played: Played) -> None:
    seen = played.seen[scenes.WITHOUT_THE_KEY.name]
    assert (seen.doctor.status, seen.canary.status) == (2, 2)
    assert "KVFENCE_API_KEY" in seen.doctor.err + seen.doctor.out


@pytest.mark.parametrize("scene", [scenes.SMG, scenes.SGLANG_ROUTER], ids=lambda scene: scene.name)
def test_a_router_that_anybody_may_steer_is_found(played: Played, scene: Scene) -> None:
    assert "ControlPlaneOpen" in findings(played.seen[scene.name])


def test_pairs_that_a_router_never_makes_are_told(played: Played) -> None:
    pairing = checks(played.seen[scenes.SMG.name])[Check.ROUTER_PAIRING]
    assert pairing["verdict"] != "broken"
    assert pairing["evidence"], pairing


@pytest.mark.parametrize("scene", SCENES.values(), ids=SCENES)
def test_no_check_is_broken_and_no_command_fails_of_itself(played: Played, scene: Scene) -> None:
    seen = played.seen[scene.name]
    assert seen.doctor.status in (0, 1, 2), seen.doctor.err
    assert seen.canary.status in (0, 1, 2), seen.canary.err
    assert "broken" not in verdicts(seen).values()


def test_the_page_of_verdicts_is_what_was_seen(played: Played) -> None:
    assert table.unlike(PAGE.read_text(), played.seen.values()) == [], "python -m e2e.by_hand >docs/verdicts.md"
