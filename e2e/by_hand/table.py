"""The page with all verdicts, written from a run. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvfence.domain.verdicts import Check

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from e2e.by_hand.playing import Seen

CHECKS = (
    Check.MARKER_ISOLATION,
    Check.OVERLONG_PROMPT,
    Check.PROMPT_TOKENS,
    Check.STREAM_ERRORS,
    Check.FAKE_TRANSFER,
    Check.HEALTH_CHECK_RID,
    Check.ABORT_REUSE,
    Check.SALT_ISOLATION,
    Check.PAIR_IDENTITY,
    Check.ROUTER_PAIRING,
)
"""Of `kvfence canary`, in the order of its columns."""

DOCTOR = {0: "nothing found", 1: "findings", 2: "cannot tell"}
CANARY = {0: "pass", 1: "**fail**", 2: "not all judged"}
VERDICTS = {"pass": "pass", "fail": "**FAIL**", "notJudged": "?", "broken": "broken"}

HEAD = """# What the two commands say of real servers

Written by `python -m e2e.by_hand`, which starts each of these by hand as processes and runs `kvfence doctor` and
`kvfence canary` on it; `make cluster` compares this page with what a run gives. SGLang is real, on CPU, with a small
model that repeats what its KV cache holds; so are the routers. A prefill server holds 1,024 tokens here where a real
one would hold half a million. How to do the same with yours: [check-your-own.md](check-your-own.md).
"""

TAIL = """
What to see in it:

- 1 and 6 print markers of other users, out of answers with status 200. 5 and 7 print none: the prompt is refused by one
  half while the other holds whoever asked. 8 differs from 5 in nothing but `--context-length` on both halves.
- 3 passes although the doctor finds its pool too small: a server without a partner refuses what it cannot hold, and its
  users learn it late.
- `FakeTransfer` fails wherever a client can reach decode itself, and a router that overwrites the field helps;
  `HealthCheckRid` fails behind routers too, which leave `rid` as it came. The door of kvfence-engine, 10, refuses both.
- 9 could not be judged where 16 questions met 2 of its 4 pairs: smg goes round both roles in step.
- `SaltIsolation` needs to be told what was cached, and only 3 tells it.
"""


def page(played: Iterable[Seen]) -> str:
    """Return the whole page, of a run with all checks."""
    seen = tuple(played)
    return "\n".join(
        (
            HEAD,
            "## `kvfence doctor`\n",
            *_table(("", "what runs", "verdict", "findings"), _doctor(seen)),
            "\n## `kvfence canary`\n",
            "`?` could not be judged, and the output says why; `-` was left out, for the check has no use there.\n",
            *_table(("", *(check.value for check in CHECKS), "verdict"), _canary(seen)),
            TAIL,
        )
    )


def unlike(committed: str, played: Iterable[Seen]) -> list[str]:
    """Return the rows of a run that are not on the page; of the canary those cells count whose checks were run."""
    seen = tuple(played)
    lines = committed.splitlines()
    wrong = [row for row in map(_row, _doctor(seen)) if row not in lines]
    for one, cells in zip(seen, _canary(seen), strict=True):
        (row,) = [line for line in lines[lines.index("## `kvfence canary`") :] if line.startswith(f"| {cells[0]} |")]
        there = dict(zip(CHECKS, row.split(" | ")[1:-1], strict=True))
        ran = {check["name"]: VERDICTS[check["verdict"]] for check in one.canary.json["checks"]}
        wrong += [f"{one.scene.name}: {name} is {said}" for name, said in ran.items() if there[Check(name)] != said]
    return wrong


def _doctor(seen: Sequence[Seen]) -> list[tuple[str, ...]]:
    return [
        (str(number), one.scene.title, DOCTOR[one.doctor.status], _findings(one)) for number, one in enumerate(seen, 1)
    ]


def _canary(seen: Sequence[Seen]) -> list[tuple[str, ...]]:
    return [(str(number), *_checks(one), CANARY[one.canary.status]) for number, one in enumerate(seen, 1)]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterable[str]:
    return [_row(head), _row(["---"] * len(head)), *map(_row, rows)]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _findings(seen: Seen) -> str:
    """Return each kind of finding once, the gravest first, as the doctor has them, and those alike by their names."""
    found: Mapping[str, str] = {one["id"]: one["severity"] for one in seen.doctor.json["findings"]}
    graves = list(dict.fromkeys(found.values()))
    ordered = sorted(found.items(), key=lambda one: (graves.index(one[1]), one[0]))
    return ", ".join(f"{name} ({severity})" for name, severity in ordered) or "none"


def _checks(seen: Seen) -> list[str]:
    verdicts = {one["name"]: one["verdict"] for one in seen.canary.json["checks"]}
    return [VERDICTS[verdicts[check]] if check in verdicts else "-" for check in CHECKS]
