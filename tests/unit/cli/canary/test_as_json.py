from __future__ import annotations

import json
from dataclasses import replace

from kvfence.cli.canary.as_json import as_json
from tests.unit.cli.canary.reports import ALL, LEAKED, PASSED, report


def test_the_shape_is_as_documented() -> None:
    said = json.loads(as_json(ALL))
    assert list(said) == [
        "target",
        "began",
        "interrupted",
        "checks",
        "leftOut",
        "notes",
        "requests",
        "tokens",
        "seconds",
        "exitCode",
    ]
    assert said["target"]["kind"] == "pair"
    assert said["target"]["servers"][0] == {
        "name": "prefill",
        "url": "http://10.0.0.1:30000",
        "version": "0.5.19",
        "kvPoolTokens": 1024,
        "contextLength": 4096,
        "maxInputTokens": 1018,
        "pageSize": 16,
    }
    assert [check["verdict"] for check in said["checks"]] == ["pass", "fail", "notJudged", "broken"]
    assert said["checks"][1] == {
        "name": "OverlongPrompt",
        "verdict": "fail",
        "reason": "A prompt that did not fit was answered.",
        "evidence": [LEAKED],
        "requests": 20,
        "tokens": 50000,
        "seconds": 9.5,
        "detectionProbability": None,
    }
    assert said["leftOut"] == [{"name": "RouterPairing", "reason": "not a router"}]
    assert (said["requests"], said["tokens"], said["seconds"], said["exitCode"]) == (60, 62000, 12.75, 1)
    assert said["began"] == "2026-11-30T22:45:07Z"


def test_how_well_a_pass_saw_is_told_at_several_rates() -> None:
    (check,) = json.loads(as_json(report(PASSED)))["checks"]
    told = check["detectionProbability"]
    assert (told["rounds"], told["atOnce"], told["sensitivity"]) == (10, 4, 1.0)
    assert [point["oneIn"] for point in told["curve"]] == [2, 10, 100, 1000, 10000]
    assert told["curve"][1] == {"oneIn": 10, "independent": 0.985219, "atLeast": 0.651322}


def test_a_target_that_could_not_be_examined_is_told_as_not_known() -> None:
    said = json.loads(as_json(replace(ALL, target=None)))
    assert said["target"] == {"name": ALL.name, "kind": None, "model": None, "servers": []}
