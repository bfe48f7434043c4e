"""`kvfence capacity`: what it prints, how it ends, and what it does with files that are not what they should be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kvfence.cli.program import run
from kvfence.domain.estimate import KNOWN

SOURCE = str(Path(__file__).resolve().parents[3] / "operator")
QWQ = ("--gpu", "A10G", "--model", "QwQ-32B", "--tp", "4", "--mem-fraction-static", "0.85")


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("NO_COLOR", "1"), ("COLUMNS", "120")):
        monkeypatch.setenv(name, value)


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = run(["kvfence", "capacity", *arguments])
    return status, *capsys.readouterr()


def as_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    status, out, err = said(capsys, *arguments, "-o", "json")
    assert err == ""
    return status, json.loads(out)


def written(folder: Path, said: object, name: str = "config.json") -> Path:
    path = folder / name
    path.write_text(said if isinstance(said, str) else json.dumps(said))
    return path


def test_the_table_says_the_pool_as_a_range_and_that_it_is_an_estimate(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = said(capsys, *QWQ)
    assert (status, err) == (0, "")
    assert out.startswith("Qwen/QwQ-32B on 4 x A10G: an estimate\n")
    (pool,) = [line.split() for line in out.splitlines() if line.startswith("tokens in a KV pool")]
    low, likely, high = (int(figure.replace(",", "")) for figure in pool[-3:])
    assert low < likely < 46_611 < high
    assert f"Likely {likely:,} tokens in each KV pool." in out
    assert "Only a measured pool counts" in out


def test_the_json_has_the_same_figures(capsys: pytest.CaptureFixture[str]) -> None:
    status, found = as_json(capsys, *QWQ)
    assert (status, found["verdict"], found["refused"]) == (0, "fits", None)
    assert found["kvBytesPerToken"] == {"low": 65536, "likely": 65536, "high": 65536}
    assert found["gpu"] == {"name": "A10G", "gib": 22.03, "count": 4}
    assert [one["role"] for one in found["roles"]] == ["unified", "prefill", "decode"]
    assert found["roles"][0]["kvPoolTokens"] == found["kvPoolTokens"]
    assert all(one["verdict"] is None for one in found["roles"])
    for figures in (found["kvPoolTokens"], found["weightsGib"], found["requestsAtOnce"][0]):
        assert set(figures) >= {"low", "likely", "high"}
    assert found["weightsGib"]["low"] > found["weightsGib"]["high"]


@pytest.mark.parametrize(
    ("length", "status", "verdict"), [(4096, 0, "fits"), (46611, 2, "cannot tell"), (131072, 1, "does not fit")]
)
def test_the_exit_code_says_whether_a_context_surely_fits(
    capsys: pytest.CaptureFixture[str], length: int, status: int, verdict: str
) -> None:
    assert said(capsys, *QWQ, "--context-length", str(length))[0] == status
    ended, found = as_json(capsys, *QWQ, "--context-length", str(length))
    assert (ended, found["verdict"], found["contextLength"]) == (status, verdict, length)


def test_a_reader_that_goes_away_is_not_a_context_that_does_not_fit() -> None:
    command = [sys.executable, "-c", "from kvfence.cli import main; raise SystemExit(main())", "capacity", *QWQ]
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as pipe:
        ended = subprocess.run(
            command, stdout=pipe, stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": SOURCE}, check=False
        )
    assert (ended.returncode, ended.stderr) == (141, b"")


def test_weights_that_leave_nothing_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = said(capsys, "--gpu", "H100", "--model", "Llama-3.1-70B-Instruct")
    assert status == 1
    assert "The weights leave no memory for a KV pool" in out


def test_weights_that_may_leave_nothing_cannot_be_told(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = said(capsys, "--gpu", "H100", "--model", "gpt-oss-120b")
    assert status == 2
    assert "Cannot tell whether the weights leave any memory" in out


def test_a_model_with_another_cache_is_refused_with_the_reason(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = str(written(tmp_path, {"architectures": ["Qwen3NextForCausalLM"], "linear_num_value_heads": 32}))
    status, out, err = said(capsys, "--gpu", "H100", "--model", path)
    assert (status, out) == (2, "")
    assert "No estimate for Qwen3NextForCausalLM: some of its layers are linear attention" in err
    status, found = as_json(capsys, "--gpu", "H100", "--model", path)
    assert (status, found["kvPoolTokens"], found["verdict"]) == (2, None, "cannot tell")
    assert found["refused"] in err


def test_a_config_file_and_its_folder_are_the_model_they_describe(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = written(tmp_path, KNOWN["Qwen/QwQ-32B"])
    _, known = as_json(capsys, *QWQ)
    for name in (str(path), str(tmp_path)):
        status, found = as_json(capsys, *QWQ, "--model", name)
        assert (status, found["kvPoolTokens"], found["model"]) == (0, known["kvPoolTokens"], name)


def test_the_index_beside_a_config_says_the_size_of_weights_that_the_config_does_not(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    quantised = {**KNOWN["Qwen/QwQ-32B"], "quantization_config": {"quant_method": "compressed-tensors"}}
    path = str(written(tmp_path, quantised))
    status, _, err = said(capsys, *QWQ, "--model", path)
    assert status == 2
    assert "--weights-gib" in err
    index = "model.safetensors.index.json"
    written(tmp_path, {"metadata": {"total_size": 20 * 1024**3}}, index)
    _, by_index = as_json(capsys, *QWQ, "--model", path)
    _, by_flag = as_json(capsys, *QWQ, "--model", path, "--weights-gib", "20")
    assert by_index["kvPoolTokens"] == by_flag["kvPoolTokens"]
    assert "as the index of the checkpoint says" in str(by_index["assumptions"])
    broken: tuple[object, ...] = (
        {},
        {"metadata": []},
        {"metadata": {"total_size": -1}},
        {"metadata": {"total_size": True}},
        "{",
    )
    for wrong in broken:
        written(tmp_path, wrong, index)
        assert said(capsys, *QWQ, "--model", path)[0] == 3


HOSTILE = {
    "nothing": "",
    "no JSON": "{",
    "a list": "[]",
    "a number": "1",
    "deep": "[" * 100_000,
    "long number": '{"architectures": ["LlamaForCausalLM"], "num_hidden_layers": ' + "9" * 10_000 + "}",
    "not a number": '{"architectures": ["LlamaForCausalLM"], "num_hidden_layers": NaN}',
    "empty": "{}",
    "for a terminal": '{"architectures": ["\\u001b[31mred\\u202e"], "index_topk": 1}',
    "large": '{"a": "' + "x" * (1 << 20) + '"}',
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_file_that_is_no_config_is_said_in_words(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, kind: str
) -> None:
    status, out, err = said(capsys, "--gpu", "H100", "--model", str(written(tmp_path, HOSTILE[kind])))
    assert (status, out) == (2 if kind == "for a terminal" else 3, "")
    assert err.isascii() or "\u202e" not in err
    assert "\x1b" not in err
    assert len(err) < 2_000
    assert kind != "large" or "is larger than 1,048,576 bytes" in err


@pytest.mark.timeout(10)
def test_bytes_that_are_no_text_and_files_that_never_end_are_not_read(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_bytes(b"\xff\xfe\x00")
    assert said(capsys, "--gpu", "H100", "--model", str(tmp_path))[0] == 3
    os.mkfifo(tmp_path / "pipe")
    for never in (str(tmp_path / "pipe"), "/dev/zero", "\0", "x" * 5_000):
        assert said(capsys, "--gpu", "H100", "--model", never)[0] == 3


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ((), "--model"),
        (("--model", "QwQ-32B"), "--gpu NAME or --gpu-memory-gib X is needed"),
        (("--model", "QwQ-32B", "--gpu", "H1000"), "For another one give --gpu-memory-gib"),
        (("--model", "QwQ-32", "--gpu", "H100"), "Did you mean Qwen/QwQ-32B"),
        (("--model", "QwQ-32B", "--gpu-memory-gib", "0"), "--gpu-memory-gib is a number above 0"),
        (("--model", "QwQ-32B", "--gpu-memory-gib", "nan"), "--gpu-memory-gib is a number above 0"),
        (("--model", "QwQ-32B", "--gpu-memory-gib", "inf"), "--gpu-memory-gib is a number above 0"),
        ((*QWQ, "--mem-fraction-static", "1.5"), "--mem-fraction-static is between 0 and 1"),
        ((*QWQ, "--mem-fraction-static", "nan"), "--mem-fraction-static is between 0 and 1"),
        ((*QWQ, "--weights-gib", "-1"), "--weights-gib is above 0"),
        ((*QWQ, "--kv-cache-dtype", "nvfp4"), "--kv-cache-dtype is one of auto"),
        ((*QWQ, "--tp", "0"), "--tp"),
        ((*QWQ, "--page-size", "0"), "--page-size"),
        ((*QWQ, "--context-length", "0"), "--context-length"),
    ],
)
def test_wrong_usage_is_said(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], why: str) -> None:
    status, out, err = said(capsys, *arguments)
    assert (status, out) == (3, "")
    assert why in err


def test_what_is_taken_for_granted_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = said(capsys, "--gpu", "H200", "--model", "gpt-oss-120b", "--dp", "2", "--context-length", "200000")
    for part in (
        "Each GPU has 139.80 GiB",
        "18 layers keep a window only",
        "--mem-fraction-static is the default of SGLang",
        "Each of the 2 data-parallel ranks has such a pool; one request uses one of them.",
        "The model itself has 131,072 tokens",
    ):
        assert part in " ".join(out.split())


def test_a_gpu_that_is_not_known_is_given_by_its_memory(capsys: pytest.CaptureFixture[str]) -> None:
    _, named = as_json(capsys, *QWQ)
    _, given = as_json(capsys, "--gpu-memory-gib", "22.03", *QWQ[2:])
    assert given["kvPoolTokens"] == named["kvPoolTokens"]
    assert given["gpu"]["name"] == "GPU"


def test_what_cuts_the_pool_cuts_the_estimate(capsys: pytest.CaptureFixture[str]) -> None:
    _, found = as_json(capsys, *QWQ, "--max-total-tokens", "1000", "--page-size", "64")
    assert found["kvPoolTokens"] == {"low": 960, "likely": 960, "high": 960}
    _, wide = as_json(capsys, *QWQ)
    _, narrow = as_json(capsys, *QWQ, "--kv-cache-dtype", "fp8_e5m2")
    assert narrow["kvPoolTokens"]["likely"] - 2 * wide["kvPoolTokens"]["likely"] in {0, 1}
    _, staged = as_json(capsys, *QWQ, "--pp", "2")
    assert staged["kvBytesPerToken"]["likely"] == 32_768
    _, apart = as_json(capsys, *QWQ, "--dp", "2", "--enable-dp-attention")
    assert apart["kvBytesPerToken"]["likely"] == 131_072
