"""What no file of the repository may say: where one machine keeps things, which registry it reached, a secret."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

# The patterns are put together from parts, so that this file passes its own test.
REGISTRIES = ("pypi", "pythonhosted", "(?:proxy|sum)[.]golang", "goproxy", "npmjs", "crates", "deb[.]debian", "maven")
FOLDERS = ("work", "root", "home", "Users", "opt/wheels", "tmp/w")
FORBIDDEN = {
    "a registry's host": re.compile(rf"\b(?:{'|'.join(REGISTRIES)})[.](?:org|com|io|cn)\b", re.IGNORECASE),
    "a path of one machine": re.compile(rf"(?<![\w.}}])/(?:{'|'.join(FOLDERS)})/[\w.]"),
    "a password in a URL": re.compile(r"\b[a-z+]+://[^\s/:@'\"{}]+:[^\s/:@'\"{}]+@"),
    "a private key": re.compile("-----BEGIN " + "[A-Z ]*PRIVATE KEY-----"),
    "an access token": re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|AKIA[A-Z0-9]{16}|hf_[A-Za-z0-9]{30,})\b"),
}
# Links for readers go to these; whatever is fetched comes through a client's own settings, so no other host is named.
READERS_HOSTS = {"www.apache.org", "github.com", "keepachangelog.com", "semver.org", "ossf.github.io"}
# Names rather than addresses: of XML in a plot, and in a warning within recorded logs.
READERS_HOSTS |= {"www.w3.org", "fastapi.tiangolo.com"}
# Not hosts that anything is fetched from: names for examples, inside a cluster, in an API group.
NO_HOST = re.compile(r"(?:^|\.)(?:example|test|invalid|localhost|local|svc|example\.com|example\.org|kvfence\.io)$")
URL = re.compile(r"\bhttps?://([A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,})")


def said(text: str) -> list[str]:
    """Return what the text says that it may not, one phrase each."""
    found = [f"{what}: {match.group()}" for what, pattern in FORBIDDEN.items() for match in pattern.finditer(text)]
    hosts = {host for host in URL.findall(text) if host not in READERS_HOSTS and not NO_HOST.search(host)}
    return found + [f"a host that is not in READERS_HOSTS: {host}" for host in sorted(hosts)]


@pytest.mark.parametrize(
    "line",
    [
        "--index-url https://" + "pypi" + ".org/simple",
        "files.pythonhosted" + ".org",
        "GOPROXY=proxy.golang" + ".org,direct",
        "http://deb" + ".debian" + ".org/debian",
        "cache = '/" + "root/.cache'",
        "see /" + "work/shared/notes",
        "/home" + "/ann/kvfence",
        "https://ann:" + "secret@mirror.example",
        "-----BEGIN " + "EC PRIVATE KEY-----",
        "token: hf_" + "a" * 34,
        "curl https://" + "downloads.somewhere.dev/tool.tar.gz",
    ],
)
def test_a_planted_line_is_seen(line: str) -> None:
    assert said(line)


@pytest.mark.parametrize(
    "line",
    [
        "https://" + "127.0.0.1:6443/healthz and http://" + "pool.ns.svc/v1/models",
        "golang.org/x/net v0.40.0",
        "https://github.com/sgl-project/sglang/issues/1",
        "$HOME/.cache, /var/lib/kubelet, ../shared/wheels, {folder}/root/etc",
        "http://" + "{host}:{port}/v1",
    ],
)
def test_an_ordinary_line_passes(line: str) -> None:
    assert said(line) == []


def test_no_file_says_what_it_may_not(root: Path, files: list[Path]) -> None:
    found = [
        f"{name}: {phrase}"
        for name in files
        if b"\0" not in (data := (root / name).read_bytes())
        for phrase in said(data.decode())
    ]
    assert files
    assert found == []
