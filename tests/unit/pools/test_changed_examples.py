"""Pools of the end-to-end tests are the first example with changes, and nothing else of it changes."""

from __future__ import annotations

import yaml

from e2e.pools.pool import EXAMPLE, example


def role(pool: dict[str, object], name: str) -> dict[str, object]:
    (found,) = [one for one in pool["spec"]["roles"] if one["name"] == name]  # type: ignore[index]
    assert isinstance(found, dict)
    return found


def test_without_changes_it_is_the_example_with_another_name() -> None:
    plain = yaml.safe_load(EXAMPLE.read_text())
    plain["metadata"]["name"] = "other"
    assert example("other") == plain


def test_a_flag_is_replaced_added_or_taken_away() -> None:
    flags = {"--page-size": "16", "--sleep-on-idle": None, "--device": "cuda", "--new": "1", "--bare": ""}
    args = example("one", {"engine": {"sglang": {"args": flags}}})["spec"]["engine"]["sglang"]["args"]
    assert [one for one in args if one.partition("=")[0] in flags] == [
        "--page-size=16",
        "--device=cuda",
        "--new=1",
        "--bare",
    ]
    assert "--attention-backend=torch_native" in args


def test_things_in_lists_are_changed_by_their_names() -> None:
    pool = example("one", {"roles": {"prefill": {"replicas": 2}, "decode": {"args": {"--max-total-tokens": "2048"}}}})
    assert (role(pool, "prefill")["replicas"], role(pool, "decode")["replicas"]) == (2, 1)
    assert role(pool, "prefill")["args"] == ["--max-total-tokens=1024"]
    assert "--max-total-tokens=2048" in str(role(pool, "decode")["args"])
    assert [one["name"] for one in pool["spec"]["roles"]] == ["prefill", "decode"]


def test_a_field_is_set_or_removed() -> None:
    context = {"contextLength": {"policy": "RequireFit"}, "disaggregation": None}
    spec = example("one", context)["spec"]
    assert spec["contextLength"] == {"requestedTokens": 4096, "policy": "RequireFit"}
    assert "disaggregation" not in spec
