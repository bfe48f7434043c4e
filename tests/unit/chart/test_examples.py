"""The examples: accepted by the models, and what their texts say of them is so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.engines import environment, layers
from e2e.engines.servers import Place, Ports, Role, Server, launch
from kvfence.api.v1alpha1.pool import InferencePool, RoleType
from kvfence.domain.capacity import INPUT_MARGIN, Measured, Offered, PoolId, Wanted, first_offer

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = sorted((ROOT / "examples").glob("*/*.yaml"))
FIRST = ROOT / "examples" / "01-first-pool"
SET_BY_KVFENCE = {
    "PYTHONPATH",  # the stage's image has it
    "SGLANG_HOST_IP",
    "SGLANG_DISAGGREGATION_WAITING_TIMEOUT",
    "SGLANG_DISAGGREGATION_BOOTSTRAP_TIMEOUT",
}


def read(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(path.read_text())
    return loaded


def cap(prefill_tokens: int) -> int:
    """What the first pool offers when its prefill engine has a KV pool of so many tokens."""
    wanted = Wanted.of(InferencePool.model_validate(read(FIRST / "pool.yaml")).spec)
    pools = (
        Measured(PoolId("prefill", "p"), RoleType.PREFILL, prefill_tokens, 1, prefill_tokens - INPUT_MARGIN),
        Measured(PoolId("decode", "d"), RoleType.DECODE, 4096, 1, 4096 - INPUT_MARGIN, 512),
    )
    offered = first_offer(wanted, pools)
    assert isinstance(offered, Offered)
    return offered.tokens


def split_flags(words: list[str]) -> dict[str, str]:
    """Flags by name, whether written as `--a b` or as `--a=b`."""
    flags: dict[str, str] = {}
    for word in [part for one in words for part in one.split("=", 1)]:
        if word.startswith("--"):
            flags[word] = ""
        else:
            flags[list(flags)[-1]] = word
    return flags


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_an_example_is_a_pool(path: Path) -> None:
    example = read(path)
    InferencePool.model_validate(example)
    assert (example["apiVersion"], example["kind"]) == ("kvfence.io/v1alpha1", "InferencePool")
    assert "namespace" not in example["metadata"], "kubectl --namespace says where"


def test_there_are_examples() -> None:
    assert {path.name for path in EXAMPLES} >= {"pool.yaml", "pool-gpu.yaml"}


def test_the_first_pool_offers_what_its_text_says() -> None:
    assert cap(1024) == 1003
    text = (FIRST / "README.md").read_text()
    longest_prompt = 1003 - INPUT_MARGIN - 1
    for number in ("1,003", str(longest_prompt), f"{cap(2048):,}"):
        assert number in text
    assert longest_prompt == 996


@pytest.mark.parametrize("role", [Role.PREFILL, Role.DECODE])
def test_the_first_pool_starts_engines_as_the_stage_does(role: Role) -> None:
    spec = read(FIRST / "pool.yaml")["spec"]
    mine = next(one for one in spec["roles"] if one["type"] == role.value.capitalize())
    pool_tokens = {Role.PREFILL: 1024, Role.DECODE: 4096}[role]
    stage = launch(
        Server("any", role, pool_tokens=pool_tokens),
        Place("python3", "/models/tiny", (), "any", "any"),
        Ports(),
    )
    wanted = split_flags(list(stage.argv[3:]))
    given = split_flags(spec["engine"]["sglang"]["args"] + mine["args"])
    by_kvfence = {
        *("--model-path", "--served-model-name", "--host", "--port", "--context-length", "--skip-server-warmup"),
        *("--disaggregation-mode", "--disaggregation-transfer-backend", "--disaggregation-bootstrap-port"),
    }
    alone_in_its_pod = {"--nccl-port"}
    assert given == {name: value for name, value in wanted.items() if name not in by_kvfence | alone_in_its_pod}
    env = {one["name"]: one["value"] for one in spec["engine"]["sglang"]["env"]}
    assert env == {name: value for name, value in stage.env.items() if name not in SET_BY_KVFENCE}
    assert spec["disaggregation"]["transferTimeoutSeconds"] == 15


def test_the_first_pool_has_the_image_of_the_stage() -> None:
    sglang = read(FIRST / "pool.yaml")["spec"]["engine"]["sglang"]
    assert sglang["image"] == layers.IMAGES[environment.VERSION]
    assert sglang["version"] == environment.VERSION


def test_the_variant_for_gpus_says_that_it_was_not_run() -> None:
    assert (FIRST / "pool-gpu.yaml").read_text().startswith("# NOT RUN")
    assert "Not run here" in (FIRST / "README.md").read_text()
    limits = [
        one["template"]["spec"]["containers"][0]["resources"]["limits"]
        for one in read(FIRST / "pool-gpu.yaml")["spec"]["roles"]
    ]
    assert limits == [{"nvidia.com/gpu": 1}] * 2
