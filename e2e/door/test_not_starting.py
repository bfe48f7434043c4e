"""An engine in which the door would be missing somewhere does not start, and its last line says why."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from e2e.door.engines import Engine, Injection, launched
from e2e.engines.servers import Server

END_SECONDS = 120.0

STEAL = '''
def steal():
    """Takes a function that kvfence hooks out of SGLang, in every process."""
    from sglang.srt.managers.tokenizer_manager import TokenizerManager

    del TokenizerManager._validate_one_request
'''
THIEF_TOOK = "sglang.srt.managers.tokenizer_manager.TokenizerManager._validate_one_request"
BREAK = '''
import multiprocessing


def steal():
    """Hides kvfence's plugin from the scheduler process, as a broken import there would."""
    if multiprocessing.parent_process() is not None:
        import kvfence_engine.plugin

        kvfence_engine.plugin.install.__code__ = (lambda: None).__code__
'''


def plugin(folder: Path, name: str, code: str) -> Path:
    """Make a plugin of SGLang that comes before ours."""
    info = folder / f"{name}-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[sglang.srt.plugins]\n{name} = {name}:steal\n")
    (folder / f"{name}.py").write_text(code)
    return folder


@pytest.fixture(scope="module")
def engines(injection: Injection, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Engine]:
    """All of them started at the same time, and waited for."""
    logs = tmp_path_factory.mktemp("logs")
    with ExitStack() as kept:

        def start(server: Server, first: Path | None = None) -> Engine:
            (engine,) = kept.enter_context(launched(injection, logs, server, first=first))
            return engine

        found = {
            "hook": start(Server("hook"), plugin(logs / "hook", "aaa_thief", STEAL)),
            "rank": start(Server("rank"), plugin(logs / "rank", "aaa_hider", BREAK)),
            "workers": start(Server("workers", extra=("--tokenizer-worker-num", "2"))),
            "version": start(Server("version", version="0.5.19")),
        }
        deadline = time.monotonic() + END_SECONDS
        for engine in found.values():
            engine.process.wait(max(1.0, deadline - time.monotonic()))
        return found


WHY = {
    "hook": f"main: HookError: {THIEF_TOOK} is not there",
    "rank": "http: 0 of 1 ranks have the door: the plugin did not load there",
    "workers": "main: drop --tokenizer-worker-num: further HTTP workers load no plugins",
    "version": "main: SGLang 0.5.19 is not one that this kvfence-engine was proven with: 0.5.23",
}


@pytest.mark.parametrize(("name", "why"), WHY.items(), ids=WHY.keys())
def test_an_engine_without_its_door_ends_and_says_why(engines: dict[str, Engine], name: str, why: str) -> None:
    engine = engines[name]
    assert engine.process.returncode == 78, engine.tail()
    last = engine.log.read_text(errors="replace").splitlines()[-1]
    assert last.startswith(f"kvfence-engine: the engine did not run: {why}")
    assert engine.termination_log.read_text() == f"{last}\n"
