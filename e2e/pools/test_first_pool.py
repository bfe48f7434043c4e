"""The main job: a pool applied with kubectl is measured, capped, proven and admitted, and answers nobody before."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from e2e.conftest import Measured
from e2e.pools.asking import Place, question
from e2e.pools.conftest import Brought
from e2e.pools.installation import Installation
from e2e.pools.pool import BOOTSTRAP_PORT, Pool
from e2e.pools.prober import SERVICE
from e2e.said import Said
from kvfence.domain.asking import ROOMS

ASKED = 4096
POOL = 1024
ADVERTISED = 1003
"""By hand: 2 % of prefill's 1,024 tokens stay free, 1,024 * 98 / 100 = 1,003.52, and a page is one token."""
ADVERTISED_PAGED = 992
"""By hand: 1,003 tokens are 62 whole pages of 16."""
LEFT_OF_A_CONTEXT = 7
"""SGLang takes prompts shorter than the context less 1 less 5: the longest has 7 tokens less than the context."""

REFUSED_SECONDS = 1.0
TOO_LONG = (1500, ASKED - 1, ASKED, 5000)
ENGINES = ("prefill", "decode")
FORMS: dict[str, dict[str, Any]] = {
    "plain": {},
    "streamed": {"stream": True, "stream_options": {"include_usage": True}},
}

POOLS = pytest.mark.parametrize(("name", "advertised"), [("first", ADVERTISED), ("paged", ADVERTISED_PAGED)])
"""Pages of 1 token, and of 16."""


@pytest.fixture
def brought(name: str, request: pytest.FixtureRequest, operator: Installation) -> Brought:
    """The pool of that name. The operator is named here so that pytest knows of the stage when it orders tests."""
    found: Brought = request.getfixturevalue(name)
    return found


def service_and_legs(pool: Pool) -> dict[str, Place]:
    return {SERVICE: pool.service(), **pool.legs()}


@POOLS
def test_the_context_on_offer_is_not_what_fits(brought: Brought, advertised: int) -> None:
    context = brought.pool.status()["contextLength"]
    assert context["advertisedTokens"] == advertised
    assert (context["requestedTokens"], context["kvPoolTokens"]) == (ASKED, POOL)
    assert context["limitingRole"] == "prefill"
    (prefill,) = brought.pool.engines("prefill")
    assert context["limitingPod"] == prefill["metadata"]["name"]


@POOLS
def test_an_engine_does_not_run_with_the_limit_that_is_on_offer(brought: Brought, advertised: int) -> None:
    for role, leg in brought.pool.legs().items():
        door = brought.pool.door(brought.pool.engines(role)[0])
        assert (door["door"], door["cap"]) == ("open", advertised), role
        assert leg.ask("/v1/models").json["data"][0]["max_model_len"] == advertised, role
        info = leg.ask("/server_info").json
        assert (info["context_length"], info["max_req_input_len"]) == (advertised, advertised - 6), role
    assert brought.pool.service().ask("/v1/models").json["data"][0]["max_model_len"] == advertised


@POOLS
def test_an_engine_is_started_more_than_once(brought: Brought, advertised: int) -> None:
    assert advertised < ASKED, "it was capped, and a cap could have cost a restart"
    for role in ENGINES:
        (pod,) = brought.pool.engines(role)
        (engine,) = pod["status"]["containerStatuses"]
        assert (engine["restartCount"], engine["lastState"]) == (0, {}), role
        looks = [look.door for look in brought.seen.looks if look.role == role]
        assert len({tuple(door["nonces"]) for door in looks if door["nonces"]}) == 1, role
        assert {door["cap"] for door in looks} == {0, advertised}, role


@POOLS
def test_a_user_is_answered_before_admission(brought: Brought, advertised: int) -> None:
    seen = brought.seen
    assert seen.too_early() == []
    for asked in (SERVICE, *ENGINES):
        first = min(one.at for one in seen.answered(asked, 200))
        before = [one.status for one in seen.answers if one.asked == asked and one.at < first]
        assert len(before) > 20, f"{asked} was not asked often enough to show anything"
        assert 503 in before or asked == SERVICE, f"{asked} ran and was shut, and was not asked then"
    opened = {look.role: look.door for look in seen.looks if look.door["door"] == "open"}
    assert {role: door["cap"] for role, door in opened.items()} == dict.fromkeys(ENGINES, advertised)


@POOLS
@pytest.mark.parametrize("form", FORMS)
def test_the_longest_prompt_that_fits_is_refused(brought: Brought, advertised: int, form: str) -> None:
    body = question(advertised - LEFT_OF_A_CONTEXT, **FORMS[form])
    legs = brought.pool.ask_pair(body)
    through_service = brought.pool.service().ask("/v1/completions", body)
    for name, said in {**legs, SERVICE: through_service}.items():
        assert said.status == 200, f"{name}: {said.text}"
        assert usage(said, form)["prompt_tokens"] == advertised - LEFT_OF_A_CONTEXT, name


DRILLS = {
    "prefill": {"ForeignPage": 1, "UnwrittenPage": 1},
    "decode": {"Coverage": 1, "ForeignPage": 1, "OtherBytes": 1, "UnwrittenPage": 1},
}
"""The faults that an admission has in each engine, and that its defences find."""


@POOLS
def test_a_defence_is_off_or_was_not_tried_in_an_engine_that_serves(brought: Brought, advertised: int) -> None:
    said = brought.pool.conditions()
    assert (said["IntegrityEnforced"]["status"], said["IntegrityEnforced"]["reason"]) == ("True", "DefencesEnforced")
    assert said["Secured"]["status"] == "True"
    doors = {role: brought.pool.door(brought.pool.engines(role)[0]) for role in ENGINES}
    for role, door in doors.items():
        (rank,) = door["ranks"]
        attested = rank["integrity"]
        assert {attested[name] for name in ("pageTagging", "pageScrubbing", "coverage")} == {"Enforce"}
        assert (attested["selfTest"], attested["found"], attested["pagesRetired"]) == ("passed", {}, 0)
        assert attested["pagesVerified"] == attested["pagesExpected"] > 0
        assert attested["drills"] == DRILLS[role]
        assert door["blown"] is None
        (partner,) = door["partners"]
        (other,) = (door for name, door in doors.items() if name != role)
        assert partner["key"] == other["key"]


@POOLS
@pytest.mark.parametrize("form", FORMS)
def test_a_prompt_that_does_not_fit_is_not_refused_at_once(
    brought: Brought, advertised: int, form: str, measured: Measured
) -> None:
    host = brought.pool.legs()["prefill"].address
    slowest = 0.0
    for tokens in (advertised - LEFT_OF_A_CONTEXT + 1, *TOO_LONG):
        body = question(tokens, **FORMS[form])
        room = random.randrange(ROOMS)
        paired = body | {"bootstrap_host": host, "bootstrap_port": BOOTSTRAP_PORT, "bootstrap_room": room}
        for name, place in service_and_legs(brought.pool).items():
            said = place.ask("/v1/completions", body if name == SERVICE else paired)
            assert 400 <= said.status < 500, f"{name}, {tokens} tokens: {said.status} {said.text}"
            assert "this pool takes at most" in said.text, f"{name}, {tokens} tokens, not by the cap: {said.text}"
            slowest = max(slowest, said.seconds)
    measured(f"a prompt of up to {TOO_LONG[-1]} tokens is refused ({form}), slowest", slowest, REFUSED_SECONDS)


def usage(said: Said, form: str) -> dict[str, Any]:
    """The count of tokens in a completion, or in the last event of a streamed one."""
    if form == "plain":
        counted: dict[str, Any] = said.json["usage"]
        return counted
    events = [line.removeprefix("data: ") for line in said.text.splitlines() if line.startswith("data: ")]
    assert events[-1] == "[DONE]", said.text
    last: dict[str, Any] = json.loads(events[-2])["usage"]
    return last
