"""Where torch comes from, and what is said when that place is wrong."""

from __future__ import annotations

import platform
import subprocess
import traceback
from pathlib import Path

import pytest

from e2e.engines import environment
from e2e.engines.environment import SETTING, TORCH, EngineSetupError

WHEEL = f"torch-{TORCH}+cpu-cp311-cp311-manylinux_2_28_{platform.machine()}.whl"


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No setting, and a folder beside the checkout that is not there."""
    monkeypatch.delenv(SETTING, raising=False)
    monkeypatch.setattr(environment, "BESIDE_CHECKOUT", tmp_path / "beside")
    return tmp_path


def folder_with(folder: Path, name: str = WHEEL) -> Path:
    folder.mkdir()
    (folder / name).touch()
    return folder


def test_without_a_setting_torch_comes_from_the_ordinary_index() -> None:
    assert environment.torch_source().options == ()


def test_the_folder_beside_the_checkout_is_taken_when_it_has_the_wheel(tmp_path: Path) -> None:
    folder_with(tmp_path / "beside")
    assert str(tmp_path / "beside") in environment.torch_source().options


def test_a_folder_beside_the_checkout_without_the_wheel_is_passed_over(tmp_path: Path) -> None:
    folder_with(tmp_path / "beside", WHEEL.replace("cp311", "cp312"))
    assert environment.torch_source().options == ()


def test_the_setting_goes_before_the_folder_beside_the_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder_with(tmp_path / "beside")
    monkeypatch.setenv(SETTING, str(folder_with(tmp_path / "named")))
    assert str(tmp_path / "named") in environment.torch_source().options


def test_the_setting_may_be_an_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SETTING, "https://packages.example/cpu")
    assert environment.torch_source().options == ("--index", "https://packages.example/cpu")


@pytest.mark.parametrize("name", ["missing", "empty", "pypi.example/simple"])
def test_a_setting_that_names_no_wheel_says_what_it_must_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(SETTING, name)
    with pytest.raises(EngineSetupError, match=rf"{SETTING} must be a folder that holds torch-{TORCH}.*or the URL"):
        environment.torch_source()


def test_the_address_of_an_index_which_may_hold_a_password_stands_in_no_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[str] = []

    def run(command: tuple[str, ...], **_: object) -> subprocess.CompletedProcess[bytes]:
        asked.append(" ".join(command))
        return subprocess.CompletedProcess(command, 1 if "--index" in command else 0, b"", b"")

    monkeypatch.setattr(subprocess, "run", run)
    address = "https://ann:" + "hunter2@packages.example/cpu"
    monkeypatch.setenv(SETTING, address)
    with pytest.raises(EngineSetupError) as caught:
        environment._build(tmp_path / "engine", environment.torch_source())
    assert f"--index {address}" in asked[-1]  # else this test tries nothing
    said = f"`uv pip` failed: exit code 1\nTorch was to come from the index of {SETTING}; {SETTING} says where."
    assert str(caught.value) == said
    everything = capsys.readouterr().err + "".join(traceback.format_exception(caught.value))
    assert "hunter2" not in everything
    assert "packages.example" not in everything


def test_the_same_wheel_in_another_folder_is_the_same_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = []
    for folder in ("one", "two"):
        monkeypatch.setenv(SETTING, str(folder_with(tmp_path / folder)))
        named.append(environment.torch_source().identity)
    assert named[0] == named[1]


def test_a_version_without_a_lock_is_refused() -> None:
    with pytest.raises(EngineSetupError, match=r"no lock for SGLang 0\.5\.1; there are 0\.5\.23, 0\.5\.19"):
        environment.older("0.5.1")


@pytest.mark.parametrize("version", [environment.VERSION, *environment.OLDER_VERSIONS])
def test_each_lock_pins_every_package_with_a_hash_and_holds_nothing_of_cuda(version: str) -> None:
    lines = (environment.HERE / f"requirements-{version}.txt").read_text().replace("\\\n", "").splitlines()
    packages = [line for line in lines if line and not line.startswith("#")]
    assert packages
    assert all("==" in line and "--hash=sha256:" in line for line in packages)
    names = {line.split("==")[0].strip() for line in packages}
    assert not {name for name in names if name.startswith(("nvidia", "cuda", "triton", "torch-"))}
    assert "torch" not in names
