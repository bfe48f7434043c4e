"""A launcher as Kubernetes runs it: found in whatever folder it was put, and what it leaves for people when it ends."""

from __future__ import annotations

import base64
import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import kvfence_engine
from kvfence_engine import __main__ as program
from kvfence_engine.admission import Admission
from kvfence_engine.termination import KILLED, TerminationLog
from tests.unit.engine_image.conftest import Operator

PACKAGE = Path(kvfence_engine.__file__).parent

SAYS = """
import json, os, sys
print(json.dumps({"path": os.environ["PYTHONPATH"], "first": sys.path[1], "argv": sys.argv[1:]}), flush=True)
__version__ = "0.5.19"
"""

ADMITTED = """
import os, time
from dataclasses import replace
from kvfence_engine.state import Rank, Server, SharedState

state = SharedState.open(os.environ["KVFENCE_STATE"])
server, rank = Server(1, "http", "0.5.23", ranks=1, serving=True), Rank(0, 2, "rank", 1024, 16, 1018, 1018)
state.set_server(server)
state.set_rank(rank)
while not (epoch := state.grant().epoch):
    time.sleep(0.01)
state.set_rank(replace(rank, epoch=epoch, input_limit=900))
state.set_server(replace(server, epoch=epoch))
while state.grant().door.value != "open":
    time.sleep(0.01)
print("the prompt of a user", flush=True)
os._exit(int(os.environ["ENDS_WITH"]))
"""


@pytest.fixture
def injected(tmp_path: Path) -> Path:
    """A folder as the init container leaves it."""
    folder = tmp_path / "injected"
    shutil.copytree(PACKAGE, folder / "kvfence_engine", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def sglang(folder: Path, code: str) -> str:
    """Make an SGLang of this one file, and return what goes on PYTHONPATH."""
    (folder / "sglang").mkdir(parents=True)
    (folder / "sglang" / "__init__.py").write_text(code)
    return str(folder)


def command(injected: Path, *arguments: str) -> list[str]:
    own = ["--pool", "pool-uid", "--pod", "pod-uid", "--keys", str(injected.parent / "keys"), "--listen", "127.0.0.1"]
    # -B stands for a folder that is mounted read-only: nothing is written beside the source
    return [sys.executable, "-B", str(injected / "kvfence_engine"), *own, "--drain-seconds", "5", *arguments]


def run(injected: Path, *arguments: str, path: str = "", model: str = "x") -> subprocess.CompletedProcess[str]:
    plain = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        command(injected, "--port", "0", *arguments, "--", "--model-path", "first", "--model-path", model),
        check=False,
        capture_output=True,
        text=True,
        timeout=15,
        cwd=injected.parent,
        env=plain | ({"PYTHONPATH": path} if path else {}),
    )


def test_a_folder_is_run_as_a_program_and_the_engine_finds_it_ahead_of_what_the_image_has(
    injected: Path, tmp_path: Path
) -> None:
    image = sglang(tmp_path / "image", SAYS)
    done = run(injected, path=f"{image}:/somewhere/else")
    said = json.loads(done.stdout)
    assert said["path"] == f"{injected}:{image}:/somewhere/else"
    assert said["first"] == str(injected), "after the working directory, which -m puts first"
    assert said["argv"][-2:] == ["--model-path", "x"]
    assert list(injected.rglob("*.pyc")) == []


def test_an_image_without_import_path_of_its_own_gets_no_empty_entry(injected: Path, tmp_path: Path) -> None:
    # An empty entry stands for the working directory.
    sglang(tmp_path, SAYS)  # which is that of `run`, where -m finds it
    assert json.loads(run(injected).stdout)["path"] == str(injected)


def test_modules_of_this_package_stand_in_nobodys_way(injected: Path) -> None:
    code = f"""
import runpy, sys
sys.argv[1:] = ["--help"]
sys.path.insert(0, {str(injected / "kvfence_engine")!r})
try:
    runpy.run_path({str(injected / "kvfence_engine")!r}, run_name="__main__")
except SystemExit:
    pass
sys.path_importer_cache.clear()
import importlib.util
print(importlib.util.find_spec("doorkeeper"), importlib.util.find_spec("kvfence_engine").origin)
"""
    done = subprocess.run([sys.executable, "-I", "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == f"None {injected}/kvfence_engine/__init__.py"


def test_a_python_that_is_too_old_is_said_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(program, "OLDEST", (99,))
    assert program.main([]) == 78
    assert "the oldest that will do is 3.10" in capsys.readouterr().err


# --- what Kubernetes shows ---

NOT_RUN = {
    "no SGLang": (None, "main: there is no SGLang in this image: ", " as a Python package for python3"),
    "a folder of that name": ("", "main: there is no SGLang in this image: ", " as a Python package for python3"),
    "an old SGLang": (
        SAYS,
        "main: SGLang 0.5.19 is not one that this kvfence-engine was proven with: ",
        "0.5.23",
    ),
    "an SGLang without torch": (
        "import torch_of_this_test",
        "main: SGLang cannot be imported in this image: ",
        "No module named 'torch_of_this_test'",
    ),
}


@pytest.mark.parametrize(("code", "start", "end"), NOT_RUN.values(), ids=NOT_RUN.keys())
def test_an_image_that_will_not_do_is_said_in_one_line_and_in_the_termination_log(
    injected: Path, tmp_path: Path, code: str | None, start: str, end: str
) -> None:
    path = sglang(tmp_path / "image", code) if code is not None else ""
    log = tmp_path / "termination-log"
    done = run(injected, "--termination-log", str(log), path=path)
    assert done.returncode == 78
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"kvfence-engine: the engine did not run: {start}")
    assert line.endswith(end)
    assert log.read_text() == f"{line}\n"


def test_a_model_that_is_not_there_is_said_before_sglang_loads_for_it(injected: Path, tmp_path: Path) -> None:
    image = sglang(tmp_path / "image", '__version__ = "0.5.23"')
    (line,) = run(injected, path=image, model="/no/such/folder").stderr.splitlines()
    assert line.endswith(
        "main: there is no model at /no/such/folder in this container: correct model.uri, or mount what it names"
    )
    for there in (str(tmp_path), "organisation/model"):
        assert "No module named 'sglang.srt'" in run(injected, path=image, model=there).stderr, "it goes on"


def test_an_engine_that_ends_by_itself_before_admission_leaves_the_word_to_its_log(
    injected: Path, tmp_path: Path
) -> None:
    image = sglang(tmp_path / "image", "raise SystemExit('no such model')")
    log = tmp_path / "termination-log"
    log.touch()
    done = run(injected, "--termination-log", str(log), path=image)
    assert done.returncode == 1
    assert log.read_text() == ""


@pytest.mark.parametrize("log", ["missing/log", "."])
def test_a_termination_log_that_cannot_be_written_changes_no_status(injected: Path, tmp_path: Path, log: str) -> None:
    done = run(injected, "--termination-log", str(tmp_path / log))
    assert done.returncode == 78
    first, last = done.stderr.splitlines()
    assert first.startswith("kvfence-engine: cannot write the termination log: ")
    assert "there is no SGLang" in last


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (3, "kvfence-engine: SGLang ended with status 3 after it had been admitted; see the log of the container\n"),
        (0, ""),
    ],
)
def test_of_an_engine_that_had_been_admitted_no_line_of_its_log_is_shown(
    injected: Path, tmp_path: Path, operator: Operator, admit: Callable[..., Admission], status: int, said: str
) -> None:
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "current").write_text(base64.b64encode(operator.public).decode())
    path, log, port = sglang(tmp_path / "image", ADMITTED), tmp_path / "termination-log", free_port()
    with subprocess.Popen(
        command(injected, "--port", str(port), "--termination-log", str(log), "--", "x"),
        stdout=subprocess.PIPE,
        env=dict(os.environ) | {"PYTHONPATH": path, "ENDS_WITH": str(status)},
    ) as launcher:
        when_started(port)
        post(port, operator.body(admit(nonces=("http", "rank"), door="open")))
        assert launcher.communicate(timeout=10)[0] == b"the prompt of a user\n"
    assert launcher.returncode == status
    assert log.read_text() == said


def test_a_launcher_that_is_killed_after_an_admission_has_left_its_line(tmp_path: Path) -> None:
    path = tmp_path / "termination-log"
    log = TerminationLog(path)
    assert not path.exists()
    log.admitted()
    assert path.read_text() == f"{KILLED}\n"
    log.ended(78, "a fault with words that nobody has checked")
    assert "after it had been admitted" in path.read_text()
    assert "words" not in path.read_text()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def when_started(port: int) -> None:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", "/started")
            if connection.getresponse().status == 200:
                return
        except OSError:
            pass
        finally:
            connection.close()
        time.sleep(0.02)
    raise AssertionError("the launcher did not start")


def post(port: int, body: bytes) -> None:
    """Send an admission; the engine of these tests may be gone before the answer is."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("POST", "/admission", body)
        connection.getresponse().read()
    except (OSError, http.client.HTTPException):
        pass
    finally:
        connection.close()
