"""`kvfence doctor` from its arguments to its exit code."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from kvfence import catalogue
from kvfence.api.v1alpha1.pool import RoleType
from kvfence.catalogue import packaged, signing
from kvfence.cli import collecting
from kvfence.cli.catalogues import catalogues
from kvfence.cli.cluster import Cluster
from kvfence.cli.collecting import Where
from kvfence.cli.kubectl import Kubectl
from kvfence.cli.program import run
from kvfence.cli.targets import PairOfUrls, Url
from kvfence.cli.threads import in_thread
from kvfence.domain.diagnosis.report import Report
from kvfence.domain.diagnosis.seen import EngineSeen, Seen
from kvfence.engine.web import Web
from tests.unit.cli.fake_kubectl import FakeKubectl
from tests.unit.engine.servers import serving

FIELD = Path(__file__).resolve().parents[2] / "field"
LOGS = sorted((FIELD / "logs").glob("*.log"))
BODIES = sorted((FIELD / "server_info").glob("*.json"))
CAPPED = str(LOGS[0])
ENTRY = min((Path(catalogue.__path__[0]) / "osv").glob("*.json"))
FIELDS = [
    "source", "rank", "version", "started", "kvPoolTokens", "contextLength", "maxInputTokens", "contextFits",
    "advertisableContext",
]  # fmt: skip


def doctor(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any], str]:
    status = run(["kvfence", "doctor", "--output", "json", *arguments])
    out, err = capsys.readouterr()
    return status, json.loads(out), err


def header(path: Path) -> dict[str, str]:
    lines = path.read_text(errors="replace").split("# ---", 1)[0].splitlines()
    return dict(line.removeprefix("# ").split(": ", 1) for line in lines if ": " in line)


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
def test_each_log_of_the_field_gives_the_answer_written_in_it(capsys: pytest.CaptureFixture[str], path: Path) -> None:
    expected = header(path)
    status, report, _ = doctor(capsys, str(path))
    engines = report["engines"]
    assert status in {0, 1, 2}
    assert all(list(engine) == FIELDS for engine in engines)
    pools = {engine["kvPoolTokens"] for engine in engines} - {None}
    if expected["expected.pool_tokens"] == "none":
        assert pools == set()
    else:
        assert int(expected["expected.pool_tokens"]) in pools
    contexts = {engine["contextLength"] for engine in engines} - {None}
    assert contexts == ({int(said)} if (said := expected["expected.context_len"]).isdecimal() else set())
    fits = {engine["contextFits"] for engine in engines}
    ready = not expected["startup"].startswith("failed")
    assert (False in fits) is (expected["expected.pool_lt_context"] == "true" and ready)
    if expected["expected.pool_lt_context"] == "unknown":
        assert fits <= {None}
    if not ready:
        assert [engine["started"] for engine in engines] == [False] * len(engines)


@pytest.mark.parametrize("path", BODIES, ids=lambda path: path.stem)
def test_each_body_of_the_field_gives_the_answer_of_the_index(capsys: pytest.CaptureFixture[str], path: Path) -> None:
    index = (FIELD / "server_info" / "INDEX.md").read_text()
    row = next(line for line in index.splitlines() if line.startswith(f"| {path.name[:3]} |")).split("|")
    pool, context, mismatch = row[3].strip(), row[4].strip(), row[6].strip()
    status, report, _ = doctor(capsys, str(path))
    (engine,) = report["engines"] if len(report["engines"]) == 1 else report["engines"][:1]
    assert engine["kvPoolTokens"] == (int(pool) if pool.isdecimal() else None)
    told = context.split(",")[0]
    assert engine["contextLength"] == (int(told) if told.isdecimal() else None)
    assert engine["contextFits"] is {"yes": False, "no": True, "unknown": None}[mismatch]
    assert status == 1 if mismatch == "yes" else status in {1, 2, 0}


def test_json_is_the_report_and_all_else_is_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    status, report, err = doctor(capsys, CAPPED)
    assert status == 1
    assert list(report) == ["engines", "findings"]
    assert [list(finding) for finding in report["findings"]] == [["id", "severity", "message", "fix"]]
    assert all(line.startswith("kvfence: ") for line in err.splitlines())
    run(["kvfence", "doctor", "-o", "json", CAPPED])
    assert capsys.readouterr().out == json.dumps(report, indent=2) + "\n"


def test_the_table_ends_in_a_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["kvfence", "doctor", CAPPED]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert any("38,141" in line and "131,072" in line and "NO" in line for line in lines)
    assert lines[-1] == "1 finding in 1 engine; begin with ContextAbovePool (high)."


def test_targets_keep_their_order(capsys: pytest.CaptureFixture[str]) -> None:
    names = [str(path) for path in reversed(LOGS[:12])]
    _, report, _ = doctor(capsys, *names)
    sources = [next(name for name in names if engine["source"].startswith(name)) for engine in report["engines"]]
    assert list(dict.fromkeys(sources)) == names


def test_a_compressed_log_is_read(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "server.log.gz"
    path.write_bytes(gzip.compress(Path(CAPPED).read_bytes()))
    _, report, _ = doctor(capsys, str(path))
    assert [engine["kvPoolTokens"] for engine in report["engines"]] == [38_141]


def test_a_pipe_is_read_and_may_hold_a_log_or_a_body() -> None:
    environment = {**os.environ, "PYTHONPATH": str(FIELD.parents[1] / "operator")}
    for path, pool in ((LOGS[0], 38_141), (BODIES[0], 326_223)):
        done = subprocess.run(
            [sys.executable, "-m", "kvfence.cli", "doctor", "-o", "json", "-"],
            input=path.read_bytes(),
            capture_output=True,
            check=False,
            env=environment,
        )
        (engine,) = json.loads(done.stdout)["engines"]
        assert (engine["source"], engine["kvPoolTokens"]) == ("standard input", pool)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0" * 5000,
        b"\xff\xfe" * 3000,
        b"{" * 50_000,
        b"[" * 50_000,
        b"{}",
        b"null",
        b"\x1f\x8b",
        random.Random(1).randbytes(9000),
    ],
)
def test_what_is_neither_log_nor_body_cannot_be_told(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "x\x1b[2J.log"
    path.write_bytes(content)
    status, report, err = doctor(capsys, str(path))
    assert status == 2
    assert all(engine["kvPoolTokens"] is None for engine in report["engines"])
    assert report["findings"] == []
    assert "\x1b" not in err
    assert run(["kvfence", "doctor", str(path)]) == 2
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert out.splitlines()[-1].startswith("Cannot tell")


def test_a_file_that_is_not_there_is_a_wrong_usage_and_a_folder_too(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for name, word in (
        (str(tmp_path / "no.log"), "no such file"),
        (str(tmp_path), "is a folder"),
        ("x" * 300, "no such"),
    ):
        assert run(["kvfence", "doctor", CAPPED, name]) == 3
        assert word in capsys.readouterr().err
    assert run(["kvfence", "doctor", "127.0.0.1:30000"]) == 3
    assert "A server is written http://127.0.0.1:30000" in capsys.readouterr().err


def test_a_file_that_goes_away_or_may_not_be_read_cannot_be_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(*_arguments: object, **_more: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refused)
    status, _, err = doctor(capsys, CAPPED)
    assert status == 2
    assert "Permission denied" in err


@pytest.mark.parametrize(
    "arguments",
    [
        ["-n", "inference", CAPPED],
        ["--context", "x", CAPPED],
        ["-n", "--all", "app=sglang"],
        ["--advisories", CAPPED, CAPPED],
        ["--advisory-key", CAPPED, CAPPED],
        ["--advisories", CAPPED, "--advisory-key", "no-such-file", CAPPED],
        ["-", "-"],
        ["http://a?b=c"],
    ],
)
def test_flags_that_make_no_sense_are_a_wrong_usage(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert run(["kvfence", "doctor", *arguments]) == 3
    assert capsys.readouterr().out == ""


def at_a_server(handler: Any, *arguments: str) -> int:
    """Run the doctor in a thread against a server that handles requests in this one."""

    async def serve() -> int:
        async with serving(handler) as server:
            names = [one.replace("SERVER", f"http://127.0.0.1:{server.port}") for one in arguments]
            return await asyncio.to_thread(run, ["kvfence", "doctor", "--output", "json", *names])

    return asyncio.run(serve())


async def prefill(request: web.Request) -> web.Response:
    if request.path == "/server_info":
        return web.Response(body=BODIES[0].read_bytes())
    return web.Response(status=404)


def test_a_server_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    at_a_server(prefill, "SERVER/v1")
    (engine,) = json.loads(capsys.readouterr().out)["engines"]
    assert engine["kvPoolTokens"] == 326_223


def test_the_key_goes_to_a_server_that_was_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    heads = []

    async def handler(request: web.Request) -> web.Response:
        heads.append(request.headers.get("Authorization"))
        return await prefill(request)

    monkeypatch.setenv("KVFENCE_API_KEY", "hunter2")
    at_a_server(handler, "SERVER")
    assert "Bearer hunter2" in heads
    assert "hunter2" not in "".join(capsys.readouterr())
    monkeypatch.setenv("KVFENCE_API_KEY", "hunter2\nX: y")
    heads.clear()
    assert at_a_server(handler, "SERVER") == 3
    assert heads == []
    assert "hunter2" not in "".join(capsys.readouterr())


def test_a_half_that_says_it_is_the_other_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    async def asked(*_arguments: object) -> tuple[Seen, ...]:
        return (EngineSeen("x", role=RoleType.PREFILL),)

    monkeypatch.setattr(collecting, "inspect", asked)
    server = Url("http://a")
    where = Where(Web(1.0), Cluster(Kubectl()))
    as_told, swapped = asyncio.run(collecting.collect([PairOfUrls(server, server)], where))
    assert isinstance(as_told, EngineSeen)
    assert isinstance(swapped, EngineSeen)
    assert as_told.notes == ()
    assert as_told.pair == swapped.pair == "http://a,http://a"
    assert "was named as decode and says that it is prefill" in swapped.notes[0]


def test_a_pair_has_its_halves_named(capsys: pytest.CaptureFixture[str]) -> None:
    at_a_server(prefill, "SERVER,SERVER")
    engines = json.loads(capsys.readouterr().out)["engines"]
    assert [engine["source"].rsplit(" ", 1)[1] for engine in engines] == ["(prefill)", "(decode)"]


def test_a_server_that_is_not_there_cannot_be_told(capsys: pytest.CaptureFixture[str]) -> None:
    status, report, err = doctor(capsys, "http://127.0.0.1:1")
    assert status == 2
    assert report["engines"][0]["kvPoolTokens"] is None
    assert "127.0.0.1:1" in err


def test_pods_are_a_target_like_any_other(capsys: pytest.CaptureFixture[str], kubectl: FakeKubectl) -> None:
    container = {"name": "engine", "command": ["sglang", "serve"]}
    metadata = {"name": "a-0", "namespace": "inference"}
    pod = {"metadata": metadata, "spec": {"containers": [container]}, "status": {"phase": "Running"}}
    kubectl.says("get pod a-0", pod)
    kubectl.says("logs a-0", Path(CAPPED).read_bytes())
    _, report, _ = doctor(capsys, "-n", "inference", "--context", "mine", "pod/a-0")
    assert [(engine["source"], engine["kvPoolTokens"]) for engine in report["engines"]] == [("pod/a-0", 38_141)]


def signed(folder: Path, date: datetime, *, spoiled: bool = False, entries: Sequence[Any] = ()) -> list[str]:
    """Write a list of advisories with its signature; return the flags for it."""
    key = Ed25519PrivateKey.generate()
    raw = json.dumps({"format": "kvfence-advisories/1", "date": date.isoformat(), "advisories": [*entries]}).encode()
    (folder / "more.json").write_bytes(raw + (b" " if spoiled else b""))
    (folder / "more.json.sig").write_bytes(signing.sign(raw, key))
    (folder / "key.pub").write_bytes(base64.b64encode(key.public_key().public_bytes_raw()))
    return ["--advisories", str(folder / "more.json"), "--advisory-key", str(folder / "key.pub")]


def ids(report: dict[str, Any]) -> list[str]:
    return [finding["id"] for finding in report["findings"]]


def test_advisories_of_ones_own_are_checked_and_what_is_wrong_with_them_is_a_finding(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    _, report, _ = doctor(capsys, CAPPED, *signed(tmp_path, now))
    assert "AdvisoriesIncomplete" not in ids(report)
    status, report, _ = doctor(capsys, CAPPED, *signed(tmp_path, now, spoiled=True))
    assert status == 1
    assert ids(report).count("AdvisoriesIncomplete") == 1
    assert "signature" in report["findings"][-1]["message"]
    assert "python -m kvfence.catalogue check" in report["findings"][-1]["fix"]
    _, report, _ = doctor(capsys, CAPPED, *signed(tmp_path, datetime(2020, 1, 1, tzinfo=UTC)))
    assert "30 days" in report["findings"][-1]["message"]
    assert run(["kvfence", "explain", "ChecksumOff", *signed(tmp_path, now, spoiled=True)]) == 0
    assert "signature" in capsys.readouterr().err
    assert run(["kvfence", "explain", "ChecksumOff", "--advisories", CAPPED]) == 3
    (folder := tmp_path / "more").mkdir()
    entry = {**json.loads(ENTRY.read_text()), "id": "ACME-2026-1"}
    assert run(["kvfence", "explain", "ACME-2026-1", *signed(folder, now, entries=[entry])]) == 0
    assert "ACME-2026-1 (advisories" in capsys.readouterr().out
    assert run(["kvfence", "explain", "ACME-2026-1"]) == 3


def test_advisories_that_came_with_kvfence_and_are_old_are_said_to_be_and_are_no_finding() -> None:
    date = packaged().date
    assert date is not None
    assert catalogues("", "", date + timedelta(days=30)).missing == ()
    old = catalogues("", "", date + timedelta(days=31))
    assert old.problems == ()
    assert any(str(date.date()) in one and one.endswith("pipx upgrade kvfence") for one in old.missing)
    assert old.noted_in(Report((), (), ("a",), ())).missing == ("a", *old.missing)


def test_work_that_blocks_is_left_behind_when_nobody_waits_for_it_any_more() -> None:
    never = threading.Event()

    async def given_up() -> None:
        async with asyncio.timeout(0.05):
            await in_thread(never.wait)

    began = time.monotonic()
    try:
        with pytest.raises(TimeoutError):
            asyncio.run(given_up())
        assert time.monotonic() - began < 5
    finally:
        never.set()
