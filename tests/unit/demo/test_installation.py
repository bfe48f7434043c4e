"""Images and names that people give, and what of the operator's log is shown."""

from __future__ import annotations

import json

import pytest

from e2e.demo.ground import VARIABLES, Images, named_images, split, without_images
from e2e.demo.installation import LOG_LINE_CHARACTERS, log_line, values
from e2e.errors import StageError

NAMED = {
    "OPERATOR_IMAGE": "registry.example:5000/kvfence/operator:1.0",
    "KVFENCE_ENGINE_IMAGE": "registry.example/kvfence/kvfence-engine:1.0",
    "ROUTER_IMAGE": "registry.example/kvfence/router:1.0",
}


def test_the_charts_values_are_the_images_that_were_named() -> None:
    images = named_images(NAMED)
    assert images is not None
    assert values(images) == [
        "--set-string=image.repository=registry.example:5000/kvfence/operator",
        "--set-string=image.tag=1.0",
        "--set-string=routerImage.repository=registry.example/kvfence/router",
        "--set-string=routerImage.tag=1.0",
        "--set-string=engineImage.repository=registry.example/kvfence/kvfence-engine",
        "--set-string=engineImage.pluginVersion=1.0",
    ]


def test_an_operator_that_was_made_anew_under_the_same_name_is_started_anew() -> None:
    images = Images("a:1", "b:1", "c:1", "sha256:12")
    assert values(images)[-1] == r"--set-string=podAnnotations.kvfence\.io/image=sha256:12"


def test_all_images_are_named_or_none() -> None:
    assert named_images({}) is None
    assert named_images(dict.fromkeys(VARIABLES, "")) is None
    for name in NAMED:
        with pytest.raises(StageError, match=f"missing: {name}, "):
            named_images(NAMED | {name: ""})


@pytest.mark.parametrize("image", ["operator", "registry.example:5000/operator", "operator@sha256:12", ":1"])
def test_an_image_without_a_tag_is_refused_by_its_variable(image: str) -> None:
    with pytest.raises(StageError, match="OPERATOR_IMAGE is "):
        named_images(NAMED | {"OPERATOR_IMAGE": image})
    with pytest.raises(StageError):
        split(image)


def test_a_cluster_without_kvfence_is_told_every_variable() -> None:
    said = str(without_images())
    assert all(name in said for name in (*VARIABLES, "SGLANG_IMAGE"))


def test_an_entry_of_the_log_is_one_short_line_without_its_traceback() -> None:
    entry = {
        "timestamp": "2026-11-30T20:14:45.699229+00:00",
        "severity": "error",
        "message": "Working on pool a/b failed",
        "exc_info": "Traceback (most recent call last):\n  File",
    }
    assert log_line(json.dumps(entry)) == "20:14:45 error: Working on pool a/b failed"
    assert log_line("not JSON") == "not JSON"
    assert log_line('"a"') == '"a"'
    assert len(log_line("x" * 5000)) == LOG_LINE_CHARACTERS + 3
