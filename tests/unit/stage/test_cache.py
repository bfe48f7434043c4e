"""What is built once is built again exactly when an input changes, and half a build never passes for a whole one."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from e2e import cache

ROOT = Path(__file__).resolve().parents[3]
TEXTS = st.dictionaries(st.text(max_size=4), st.text(max_size=4), max_size=3)


class Builder:
    """Counts how often it is asked, and keeps what it found in the folder that it was given."""

    def __init__(self) -> None:
        self.calls = 0
        self.found: list[str] = []

    def __call__(self, folder: Path) -> None:
        self.calls += 1
        self.found = [path.name for path in folder.iterdir()]
        (folder / "result").write_text(f"build {self.calls}")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    (folder / "inner").mkdir(parents=True)
    (folder / "a.txt").write_text("a")
    (folder / "inner" / "b.txt").write_text("b")
    return folder


def aged(place: Path, hours: int) -> None:
    then = time.time() - 3600 * hours
    os.utime(place, (then, then))


@given(TEXTS, TEXTS)
@example({"a": "bc"}, {"ab": "c"})
@example({"a": ""}, {})
@example({"a": "1"}, {"b": "1"})
@example({"a": "1", "b": "2"}, {"a": "2", "b": "1"})
def test_two_keys_are_equal_exactly_when_all_texts_are(one: dict[str, str], other: dict[str, str]) -> None:
    assert (cache.key(one) == cache.key(other)) == (one == other)


def test_the_order_of_the_inputs_does_not_matter() -> None:
    assert cache.key({"a": "1", "b": "2"}) == cache.key({"b": "2", "a": "1"})


def test_a_key_fits_a_file_name() -> None:
    assert len(cache.key({})) == 16
    assert set(cache.key({"a": "x"})) <= set("0123456789abcdef")


def test_the_key_follows_the_bytes_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "input"
    file.write_bytes(b"one\xff")
    before = cache.key({"input": file})
    file.write_bytes(b"two\xff")
    changed = cache.key({"input": file})
    file.write_bytes(b"one\xff")
    assert changed != before
    assert cache.key({"input": file}) == before


def test_the_key_follows_the_bytes_of_every_file_in_a_folder(source: Path) -> None:
    keys = {cache.key({"source": source})}
    (source / "a.txt").write_text("changed")
    keys.add(cache.key({"source": source}))
    (source / "inner" / "b.txt").write_text("changed")
    keys.add(cache.key({"source": source}))
    assert len(keys) == 3


def test_the_key_follows_the_names_of_the_files_in_a_folder(source: Path) -> None:
    keys = [cache.key({"source": source})]
    (source / "inner" / "b.txt").rename(source / "b.txt")
    keys.append(cache.key({"source": source}))
    (source / "b.txt").rename(source / "c.txt")
    keys.append(cache.key({"source": source}))
    (source / "empty").touch()
    keys.append(cache.key({"source": source}))
    assert len(set(keys)) == 4


def test_the_key_does_not_follow_what_python_compiles_beside_its_sources(source: Path) -> None:
    before = cache.key({"source": source})
    for folder in (source / "__pycache__", source / "inner" / "__pycache__"):
        folder.mkdir()
        (folder / "a.cpython-311.pyc").write_bytes(b"compiled")
    assert cache.key({"source": source}) == before


def test_the_key_does_not_follow_the_place_of_the_checkout(source: Path) -> None:
    before = cache.key({"source": source})
    assert cache.key({"source": source.rename(source.with_name("elsewhere"))}) == before


def test_the_same_inputs_are_built_once() -> None:
    build = Builder()
    first = cache.built("thing", {"version": "1"}, build)
    second = cache.built("thing", {"version": "1"}, build)
    assert (build.calls, first) == (1, second)
    assert (first / "result").read_text() == "build 1"


def test_other_inputs_and_another_kind_are_built_apart() -> None:
    build = Builder()
    places = {
        cache.built("thing", {"version": "1"}, build),
        cache.built("thing", {"version": "2"}, build),
        cache.built("other", {"version": "1"}, build),
    }
    assert (build.calls, len(places)) == (3, 3)


@pytest.mark.parametrize("reason", [RuntimeError("no compiler"), KeyboardInterrupt()])
def test_a_build_that_failed_is_built_again(reason: BaseException) -> None:
    def fail(folder: Path) -> None:
        (folder / "half").touch()
        raise reason

    build = Builder()
    with pytest.raises(type(reason)):
        cache.built("thing", {"version": "1"}, fail)
    place = cache.built("thing", {"version": "1"}, build)
    assert (build.calls, build.found) == (1, [])
    assert [path.name for path in place.iterdir()] == ["result"]


def in_another_process(script: str) -> subprocess.Popen[bytes]:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.Popen([sys.executable, "-c", script], env=environment)


def test_a_build_that_was_killed_is_built_again() -> None:
    killed = in_another_process(
        "import os, pathlib, signal\n"
        "from e2e import cache\n"
        "def build(folder):\n"
        "    (folder / 'half').touch()\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "cache.built('thing', {'version': '1'}, build)\n"
    )
    assert killed.wait(10) == -9
    assert list(cache.root().rglob("half")) != []  # else this test tries nothing
    build = Builder()
    place = cache.built("thing", {"version": "1"}, build)
    assert (build.calls, build.found) == (1, [])
    assert [path.name for path in place.iterdir()] == ["result"]


def test_two_processes_that_want_the_same_at_once_build_it_once(tmp_path: Path) -> None:
    # Each says that it is there; the build ends only after both have, and leaves the other time to begin its own.
    script = (
        "import os, pathlib, time\n"
        "from e2e import cache\n"
        f"notes = pathlib.Path({str(tmp_path)!r})\n"
        "def build(folder):\n"
        "    with (notes / 'builds').open('a') as log: log.write('x')\n"
        "    while len(list(notes.glob('there-*'))) < 2: time.sleep(0.005)\n"
        "    time.sleep(0.1)\n"
        "(notes / f'there-{os.getpid()}').touch()\n"
        "cache.built('thing', {'version': '1'}, build)\n"
    )
    both = [in_another_process(script) for _ in range(2)]
    assert [one.wait(15) for one in both] == [0, 0]
    assert (tmp_path / "builds").read_text() == "x"


def test_a_few_results_of_each_kind_stay_and_the_new_one_is_among_them() -> None:
    other_kind = cache.built("other", {}, Builder())
    places = []
    for version in range(cache.KEPT_PER_KIND + 2):
        places.append(cache.built("thing", {"version": str(version)}, Builder()))
        aged(places[-1], hours=10 - version)
    assert [place.exists() for place in places] == [False, False] + [True] * cache.KEPT_PER_KIND
    assert other_kind.exists()


def test_a_result_that_was_just_used_stays_before_one_that_was_built_later() -> None:
    first = cache.built("thing", {"version": "1"}, Builder())
    aged(first, hours=2)
    second = cache.built("thing", {"version": "2"}, Builder())
    aged(second, hours=1)
    cache.built("thing", {"version": "1"}, Builder())
    third = cache.built("thing", {"version": "3"}, Builder())
    assert [place.exists() for place in (first, second, third)] == [True, False, True]


def test_the_cache_lies_where_its_own_variable_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KVFENCE_STAGE_CACHE", str(tmp_path / "here"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "not-here"))
    assert cache.root() == tmp_path / "here"


def test_else_the_cache_lies_in_the_folder_for_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KVFENCE_STAGE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.root() == tmp_path / "kvfence-stage"


@pytest.mark.parametrize("named", [None, ""])
def test_else_it_lies_in_the_home_folder(named: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("KVFENCE_STAGE_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
        if named is not None:
            monkeypatch.setenv(variable, named)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache.root() == tmp_path / ".cache" / "kvfence-stage"


@pytest.mark.parametrize(
    ("variable", "place"), [("KVFENCE_STAGE_CACHE", "mine"), ("XDG_CACHE_HOME", "mine/kvfence-stage")]
)
def test_a_relative_place_is_made_absolute_since_commands_on_the_node_start_elsewhere(
    variable: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KVFENCE_STAGE_CACHE")
    monkeypatch.setenv(variable, "mine")
    monkeypatch.chdir(tmp_path)
    assert cache.root() == tmp_path / place


def test_a_failed_build_leaves_no_folder_and_a_killed_one_is_cleared_by_the_next(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KVFENCE_STAGE_CACHE", str(tmp_path))
    killed = tmp_path / "thing" / "0123456789abcdef.part"
    killed.mkdir(parents=True)
    (killed / "half").touch()

    def fail(folder: Path) -> None:
        (folder / "big").touch()
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        cache.built("thing", {"a": "1"}, fail)
    assert list((tmp_path / "thing").iterdir()) == []


def test_what_is_used_now_is_never_among_the_forgotten_even_if_the_clock_steps_back(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KVFENCE_STAGE_CACHE", str(tmp_path))
    for number in range(cache.KEPT_PER_KIND):
        os.utime(cache.built("thing", {"a": str(number)}, lambda _: None), (2**33, 2**33))
    assert cache.built("thing", {"a": "now"}, lambda _: None).is_dir()
    assert len(list((tmp_path / "thing").iterdir())) == cache.KEPT_PER_KIND
