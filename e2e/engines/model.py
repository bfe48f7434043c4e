"""The copy model, built once and kept in the cache. What it is and why: `copy_model.py`."""

from __future__ import annotations

from pathlib import Path

from e2e import cache, progress
from e2e.commands import run
from e2e.engines import environment

HERE = Path(__file__).resolve().parent
SHIM = HERE / "shim"
MAX_POSITIONS = 65536


def model() -> Path:
    """Return the folder with the copy model; writes it when there is none yet (5 to 10 s, 27 MB).

    Raises:
        StageError: with the output of the script that failed.
    """
    script = HERE / "copy_model.py"
    python = environment.environment() / "bin" / "python"

    def build(folder: Path) -> None:
        settings = {"PYTHONPATH": str(SHIM), "SGLANG_USE_CPU_ENGINE": "1"}
        with progress.step("writing the copy model", "about 10 s"):
            run(str(python), str(script), str(folder), str(MAX_POSITIONS), settings=settings)

    # The shim only lets the script import; an edit of it changes no weight. A new lock could.
    inputs: dict[str, str | Path] = {
        "script": script,
        "lock": HERE / f"requirements-{environment.VERSION}.txt",
        "positions": str(MAX_POSITIONS),
    }
    return cache.built("copy-model", inputs, build)
