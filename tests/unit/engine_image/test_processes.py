"""What starts an engine refuses to when something is missing, in one line; and hooks that are not there are seen."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from kvfence_engine import launcher, settings, sources, versions
from kvfence_engine.hooks import Hook, HookError, Hooks, Kind
from kvfence_engine.integrity.modes import Mode, Modes, decode

PACKAGE = str(Path(launcher.__file__).resolve().parents[1])


def run(module: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    given = {name: value for name, value in os.environ.items() if name != settings.STATE}
    return subprocess.run(
        [sys.executable, "-m", f"kvfence_engine.{module}", *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=15,
        env=given | {"PYTHONPATH": PACKAGE} | variables,
    )


def test_an_engine_without_its_launcher_does_not_start() -> None:
    for variables in ({}, {settings.STATE: "/proc/1/fd/999999"}):
        done = run("engine", "--model-path", "x", **variables)
        assert done.returncode == 78
        assert "no launcher: start `python -m kvfence_engine.launcher`" in done.stderr


def test_the_plugin_is_named_only_where_plugins_are_named() -> None:
    def plugins(given: dict[str, str]) -> str | None:
        return launcher.environment(given, "s", "p", Modes()).get("SGLANG_PLUGINS")

    assert plugins({}) is None
    assert plugins({"SGLANG_PLUGINS": " "}) == " "
    assert plugins({"SGLANG_PLUGINS": "other"}) == "other,kvfence"
    assert plugins({"SGLANG_PLUGINS": "kvfence, other"}) == "kvfence, other"


def test_the_processes_are_told_whose_they_are_and_which_defences_are_on() -> None:
    modes = Modes(page_tagging=Mode.ENFORCE, coverage=Mode.OBSERVE)
    told = launcher.environment({"A": "b"}, "s", "p", modes)
    assert told == {"A": "b", settings.STATE: "s", settings.POOL: "p", settings.INTEGRITY: told[settings.INTEGRITY]}
    assert decode(told[settings.INTEGRITY]) == modes


WAITS = """
import signal, subprocess, sys
from kvfence_engine import launcher

class Keeper:
    def shut(self, door):
        print(door.value, flush=True)

signal.pthread_sigmask(signal.SIG_BLOCK, launcher.SIGNALS)
for seconds, child in ((60, "signal.pthread_sigmask(signal.SIG_SETMASK, ())"), (0.3, "pass")):
    for _ in range(int(sys.argv[1])):
        code = f"import signal, time; {child}; print('up', flush=True); time.sleep(60)"
        engine = subprocess.Popen([sys.executable, "-I", "-c", code])
        print(launcher.wait(engine, Keeper(), seconds), flush=True)
"""


def test_a_signal_to_leave_is_never_missed_and_an_engine_that_stays_is_killed() -> None:
    # Handlers missed one signal in some hundred; what matters is that none comes between a look and a wait.
    given = dict(os.environ) | {"PYTHONPATH": PACKAGE}
    with subprocess.Popen([sys.executable, "-c", WAITS, "8"], env=given, stdout=subprocess.PIPE, text=True) as waiting:
        assert waiting.stdout is not None
        for expected in (-signal.SIGTERM, -signal.SIGKILL):  # the second engine does not listen
            for _ in range(8):
                assert waiting.stdout.readline() == "up\n"
                waiting.terminate()
                assert waiting.stdout.readline() == "draining\n"
                assert waiting.stdout.readline() == f"{int(expected)}\n"
        assert waiting.wait(5) == 0


FLAGS: dict[str, object] = {
    "tokenizer_worker_num": 1,
    "nnodes": 1,
    "tp_size": 2,
    "pp_size": 1,
    "dp_size": 3,
    "grpc_port": None,
    "enable_http2": False,
}


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        ({"tokenizer_worker_num": 2}, "--tokenizer-worker-num"),
        ({"nnodes": 2}, "--nnodes"),
        ({"grpc_port": 0}, "--grpc-port"),
        ({"enable_http2": True}, "--enable-http2"),
        ({"encoder_only": True}, "--encoder-only"),
        ({"allow_auto_truncate": True}, "--allow-auto-truncate"),
    ],
)
def test_a_flag_that_leads_around_the_door_is_refused_by_name(flags: dict[str, object], named: str) -> None:
    why = versions.refuse_flags(FLAGS | flags)
    assert why is not None
    assert why.startswith(f"drop {named}: ")
    assert versions.refuse_flags(FLAGS) is None


def test_flags_that_are_not_there_are_not_taken_for_right() -> None:
    assert versions.refuse_flags({}) is not None


def test_a_setting_that_leads_around_the_door_is_refused_by_name() -> None:
    assert versions.refuse_settings({"SGLANG_RUST_SERVER": "0", "PATH": "/bin"}) is None
    assert "SGLANG_RUST_SERVER" in str(versions.refuse_settings({"SGLANG_RUST_SERVER": "1"}))


def test_only_a_version_that_was_proven_starts() -> None:
    assert versions.refuse_version("0.5.23") is None
    for other in ("0.5.19", "0.5.24", "0.5.23.post1", "0.5.23rc1", ""):
        assert "is not one that this kvfence-engine was proven with" in str(versions.refuse_version(other))


def test_ranks_are_counted_as_sglang_starts_them() -> None:
    assert versions.ranks(FLAGS) == 6
    assert versions.ranks(FLAGS | {"enable_dp_attention": True}) == 2
    assert versions.ranks({}) == 0


# --- hooks, in an SGLang that is made up ---


class HookType(Enum):
    """As SGLang's."""

    BEFORE = "before"
    AFTER = "after"
    AROUND = "around"


@dataclass
class Registry:
    """Applies a hook, or only says so."""

    works: bool = True
    waiting: list[tuple[str, Callable[..., Any]]] = field(default_factory=list)

    def register(self, target: str, function: Callable[..., Any], _kind: HookType) -> None:
        self.waiting.append((target, function))

    def apply_hooks(self) -> None:
        for target, function in self.waiting if self.works else ():
            name = target.rsplit(".", 1)[1]
            setattr(Manager, name, function)


class Manager:
    """With a method to hook."""

    def generate(self) -> str:
        return "unhooked"


class Other(Manager):
    """With a method of its own."""

    def generate(self) -> str:
        return "its own"


HOOK = Hook("sglang.srt.made_up.Manager.generate", Kind.AROUND, lambda *_: "hooked")
KNOWN = {HOOK.target.removeprefix(sources.PACKAGE): sources.digest(Manager.generate)}


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Registry:
    made = Registry()
    monkeypatch.setattr(Manager, "generate", Manager.generate)
    for name in ("sglang", "sglang.srt", "sglang.srt.plugins"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    parts: dict[str, dict[str, object]] = {
        "sglang.srt.plugins.hook_registry": {"HookRegistry": made, "HookType": HookType},
        "sglang.srt.made_up": {"Manager": Manager},
    }
    for name, attributes in parts.items():
        module = types.ModuleType(name)
        vars(module).update(attributes)
        monkeypatch.setitem(sys.modules, name, module)
        monkeypatch.setattr(sys.modules[name.rpartition(".")[0]], name.rpartition(".")[2], module, raising=False)
    monkeypatch.setattr(sys.modules["sglang"], "srt", sys.modules["sglang.srt"], raising=False)
    monkeypatch.setattr(sys.modules["sglang.srt"], "plugins", sys.modules["sglang.srt.plugins"], raising=False)
    return made


def test_hooks_that_are_in_place_stay_unnoticed(registry: Registry) -> None:
    hooks = Hooks([HOOK], KNOWN)
    hooks.check()
    hooks.check(Manager())
    assert registry.waiting


def test_a_hook_that_was_not_applied_is_seen(registry: Registry) -> None:
    registry.works = False
    with pytest.raises(HookError, match=r"Manager\.generate was not applied"):
        Hooks([HOOK], KNOWN)


def test_a_target_that_is_gone_is_seen(registry: Registry) -> None:
    with pytest.raises(HookError, match=r"made_up\.Manager\.create is not there"):
        Hooks([Hook("sglang.srt.made_up.Manager.create", Kind.BEFORE, print)], KNOWN)
    with pytest.raises(HookError, match=r"no_module\.f is not there"):
        Hooks([Hook("sglang.srt.no_module.f", Kind.BEFORE, print)], KNOWN)
    assert registry.waiting == []


def test_a_function_that_is_not_the_releases_gets_no_hook(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    def generate(_: Manager) -> str:
        return "a vendor's"

    monkeypatch.setattr(Manager, "generate", generate)
    with pytest.raises(HookError, match=r"Manager\.generate is not what SGLang's release has there"):
        Hooks([HOOK], KNOWN)
    with pytest.raises(HookError, match="is not what SGLang's release has there"):
        Hooks([HOOK], {})
    assert registry.waiting == []


def test_a_function_without_source_gets_no_hook(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Manager, "generate", len)
    with pytest.raises(HookError, match=r"the source of sglang\.srt\.made_up\.Manager\.generate is not there"):
        Hooks([HOOK], KNOWN)
    assert registry.waiting == []


def test_what_another_plugin_wrapped_is_still_the_releases(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    original = Manager.generate

    @functools.wraps(original)
    def wrapped(manager: Manager) -> str:
        return original(manager)

    monkeypatch.setattr(Manager, "generate", wrapped)
    Hooks([HOOK], KNOWN).check(Manager())
    assert registry.works


def test_a_hook_that_somebody_replaced_is_seen(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    hooks = Hooks([HOOK], KNOWN)
    assert registry.works
    with pytest.raises(HookError, match="Other has a method of its own"):
        hooks.check(Other())
    monkeypatch.setattr(Manager, "generate", lambda _: "somebody's")
    with pytest.raises(HookError, match="was replaced"):
        hooks.check()
