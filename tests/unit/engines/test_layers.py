"""The engine images take Debian from wherever this machine does, and from nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from e2e.engines import layers
from e2e.engines.environment import EngineSetupError

DEBIAN = {
    "sources.list": "deb http://mirror.example/debian bookworm main\n",
    "sources.list.d/debian.sources": "Types: deb\nURIs: http://mirror.example\nSuites: bookworm\nComponents: main\n",
    "sources.list.d/0000debian.sources": "Types: deb\nSuites: bookworm bookworm-updates\nComponents: main\n",
}
OTHER = {
    "sources.list.d/sdk.list": "deb https://packages.example/apt cloud-sdk-bookworm main\n",
    "sources.list.d/engine.list": "deb https://packages.example/linux bookworm stable\n",
    "sources.list.d/node.sources": "Suites: nodistro\nComponents: main\n",
}


def write(folder: Path, files: dict[str, str]) -> None:
    (folder / "sources.list.d").mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)


@pytest.mark.parametrize("name", DEBIAN)
def test_debians_list_is_found_under_each_of_its_names_and_others_are_left_out(tmp_path: Path, name: str) -> None:
    write(tmp_path, OTHER | {name: DEBIAN[name]})
    assert layers.apt_sources(tmp_path) == [tmp_path / name]


def test_without_debians_list_it_is_said_what_to_write(tmp_path: Path) -> None:
    write(tmp_path, OTHER)
    with pytest.raises(EngineSetupError, match=r"no list in .* names Debian's bookworm .* write one, such as"):
        layers.apt_sources(tmp_path)


def test_an_engine_image_gives_its_python_and_its_packages_to_whatever_runs_in_it() -> None:
    for version, path in (("0.5.23", "/opt/shim"), ("0.5.19", "/opt/shim:/opt/sglang-0.5.19")):
        settings = dict(one.split("=", 1) for one in layers.settings(version))
        assert settings["PYTHONPATH"] == path
        assert settings["PATH"].split(":")[0] == "/opt/venv/bin"
        assert settings["PATH"].endswith(":/bin"), "the rest of the path stays"
