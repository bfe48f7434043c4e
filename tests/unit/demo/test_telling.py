"""Output of the demo: plain lines where there is no terminal, 100 columns, and kubectl's own output as it is."""

from __future__ import annotations

import io
import time

import pytest
from rich.console import Console

from e2e.demo import telling
from e2e.demo.ending import shortened
from e2e.demo.telling import Teller


def teller() -> tuple[Teller, io.StringIO]:
    written = io.StringIO()
    return Teller(Console(file=written, force_terminal=False)), written


def test_a_line_has_its_time_and_what_is_long_goes_on_below_it() -> None:
    tells, written = teller()
    tells.line("short")
    tells.line(" ".join(["word"] * 40), ("a detail",))
    lines = written.getvalue().splitlines()
    assert lines[0] == "  0.0 s  short"
    assert max(map(len, lines)) <= 100
    assert all(line.startswith(" " * telling.MARGIN) for line in lines[2:])
    assert lines[-1] == " " * telling.MARGIN + "a detail"


def test_markup_and_long_commands_are_written_as_they_are() -> None:
    tells, written = teller()
    tells.command("kubectl get pods --output=jsonpath={.items[*].metadata.name} " + "x" * 100)
    tells.shell("kubectl get x", "[bold]not markup[/bold] " + "y" * 100)
    lines = written.getvalue().splitlines()
    assert len(lines) == 3
    assert "[*]" in lines[0]
    assert lines[2].startswith("[bold]not markup[/bold] yyy")


def test_without_a_terminal_what_is_waited_for_is_said_now_and_then_on_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    tells, written = teller()
    with tells.waiting():
        for _ in range(100):
            now[0] += 0.5
            tells.still("engines load")
    lines = written.getvalue().splitlines()
    assert [line.split()[0] for line in lines] == ["15.0", "30.0", "45.0"]
    assert all(line.endswith("... engines load") for line in lines)
    assert "\x1b" not in written.getvalue()


def test_a_terminal_without_colours_gets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    written = io.StringIO()
    tells = Teller(Console(file=written, force_terminal=True, width=200, highlight=False))
    tells.line("a line", style="green")
    tells.say("said")
    assert "\x1b[3" not in written.getvalue()


DESCRIBED = """Name:         first-pool
Spec:
  Model:
    Served Name:  tiny
Status:
  Conditions:
    Last Transition Time:  2026-11-30T19:54:08Z
    Message:               The pool serves: as it was asked for.
    Observed Generation:   1
    Reason:                Serving
    Status:                True
    Type:                  Ready
    Last Transition Time:  2026-11-30T19:47:19Z
    Message:               Nothing waits for a person.
    Observed Generation:   1
    Reason:                Progressing
    Status:                False
    Type:                  Stalled
  Context Length:
    Advertised Tokens:  1003
Events:
  Type     Reason     Age   From                 Message
  Normal   Admitted   11m   kvfence.io/operator  Users' requests are let in.
"""


def test_of_a_description_conditions_and_events_are_shown() -> None:
    assert shortened(DESCRIBED).splitlines() == [
        "  Conditions:",
        "    Ready              True   Serving              The pool serves: as it was asked for.",
        "    Stalled            False  Progressing          Nothing waits for a person.",
        "Events:",
        "  Type     Reason     Age   From                 Message",
        "  Normal   Admitted   11m   kvfence.io/operator  Users' requests are let in.",
    ]


def test_a_description_without_a_status_is_no_mistake() -> None:
    assert shortened("Name: x\nEvents:  <none>\n") == "Events:  <none>"
