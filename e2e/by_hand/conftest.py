"""One run over all scenes, which all tests of this folder look at."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from e2e.by_hand import command, console, playing, scenes
from e2e.by_hand.command import Ran
from e2e.by_hand.console import Shown
from e2e.by_hand.playing import Seen, Up
from e2e.conftest import Aloud
from e2e.product.layers import CHECKOUT

INSTALL = "pipx install ."
"""Of the guide; `command.install` does it as pipx does, from what is cached."""

GUIDE = CHECKOUT / "docs" / "check-your-own.md"


@dataclass(frozen=True)
class Played:
    """All that was seen."""

    seen: dict[str, Seen]
    """By the scene's name."""
    guide: tuple[tuple[Shown, Ran], ...]
    """Each command of the guide but the first, which installs; and what it did on the pair with the leak."""
    logs: Path


@pytest.fixture(scope="session")
def played(tmp_path_factory: pytest.TempPathFactory, aloud: Aloud) -> Played:
    """Start everything by hand, group by group, and run the commands on it."""
    logs = tmp_path_factory.mktemp("by-hand")
    seen: dict[str, Seen] = {}
    guide: list[tuple[Shown, Ran]] = []
    with aloud():
        kvfence = command.install(tmp_path_factory.mktemp("installed"))
        for up in playing.groups(logs):
            if scenes.OLD_PAIR in up.group.scenes:
                guide += read_aloud(up, kvfence, tmp_path_factory.mktemp("reader"))
            seen |= {one.scene.name: one for one in playing.play(up, kvfence, logs)}
    return Played(seen, tuple(guide), logs)


def read_aloud(up: Up, kvfence: command.Installed, where: Path) -> list[tuple[Shown, Ran]]:
    """Run the guide's commands in a folder that has the reader's logs, on the pair with the leak."""
    for leg in scenes.OLD_PAIR.engines:
        (where / f"{leg.role.value}.log").write_bytes(up.servers[leg.name].log.read_bytes())
    addresses = reader_s(up)
    back = {ours: theirs for theirs, ours in addresses.items()}
    ran: list[tuple[Shown, Ran]] = []
    for shown in console.shown(GUIDE.read_text()):
        if shown.line == INSTALL:
            continue
        did = kvfence.shell(console.with_addresses(shown.line, addresses), where)
        out, err = (console.with_addresses(text, back) for text in (did.out, did.err))
        ran.append((shown, Ran(shown.line, did.status, out, err, did.seconds)))
    return ran


def reader_s(up: Up) -> dict[str, str]:
    """Return the guide's addresses, each with that of a server that is up."""
    prefill, decode = (up.servers[leg.name].url for leg in scenes.OLD_PAIR.engines)
    alone = up.servers[scenes.ALONE.engines[0].name].url
    return {"http://10.0.0.11:30000": prefill, "http://10.0.0.12:30000": decode, "http://10.0.0.13:30000": alone}
