from __future__ import annotations

import pytest

from kvfence.api.v1alpha1.pool import RoleType
from kvfence.domain.diagnosis.seen import Product
from kvfence.engine.bodies.metrics import metrics
from tests.unit.engine.bodies.recorded import METRICS, VLLM_METRICS


def test_sglang_tells_its_pool_its_context_and_its_role() -> None:
    said = metrics(METRICS)
    assert said is not None
    assert (dict(said.pools), said.context, said.role, said.product) == (
        {0: 4096},
        4096,
        RoleType.UNIFIED,
        Product.SGLANG,
    )


def test_each_rank_of_vllm_has_its_blocks_times_their_size() -> None:
    said = metrics(VLLM_METRICS)
    assert said is not None
    assert (dict(said.pools), said.product) == ({0: 16000, 1: 14400}, Product.VLLM)


@pytest.mark.parametrize("label", [b'sliding_window="1024"', b'mamba_block_size="512"'])
def test_blocks_that_kinds_of_layers_share_are_no_pool_in_tokens(label: bytes) -> None:
    said = metrics(b'vllm:cache_config_info{block_size="16",num_gpu_blocks="1000",' + label + b"} 1.0\n")
    assert said is not None
    assert not said.pools
    assert said.notes


def test_a_large_number_as_prometheus_writes_it_is_whole() -> None:
    said = metrics(b'sglang:max_total_num_tokens{dp_rank="3"} 1.048576e+06\n')
    assert said is not None
    assert dict(said.pools) == {3: 1048576}


def test_ranks_within_one_pool_say_the_same_or_nothing_is_told() -> None:
    agreeing = METRICS + METRICS.replace(b'tp_rank="0"', b'tp_rank="1"')
    said = metrics(agreeing)
    assert said is not None
    assert dict(said.pools) == {0: 4096}
    said = metrics(agreeing + b"sglang:max_total_num_tokens 5.0\n")
    assert said is not None
    assert not said.pools
    assert said.notes


def test_the_part_for_sliding_windows_is_no_pool() -> None:
    said = metrics(b"sglang:max_total_num_tokens_swa 512.0\n")
    assert said is not None
    assert not said.pools
    assert said.sliding


@pytest.mark.parametrize(
    "text", [b"", b"\xff\xfe", b"sglang:max_total_num_tokens nan\n", b"vllm:cache_config_info{", b"other 1\n"]
)
def test_what_cannot_be_read_tells_nothing(text: bytes) -> None:
    said = metrics(text)
    assert said is None or not said.pools


def test_a_label_that_never_ends_is_read_in_no_time() -> None:
    said = metrics(b'vllm:cache_config_info{a="' + b"\\" * 60_000 + b"\n")
    assert said is None
