"""`kvfence doctor`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kvfence.cli.output import Format, note, write
from kvfence.cli.targets import NAMESPACE, LogOrBody, Pipe, Pod, Selected, Target, TargetError, parse_all

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvfence.domain.diagnosis.report import Report
    from kvfence.domain.diagnosis.seen import Seen

PATIENCE = 3.0
"""Seconds after which somebody at a terminal is told that it goes on."""

Targets = Annotated[
    list[str],
    typer.Argument(
        metavar="TARGET",
        help="URL, pair PREFILL_URL,DECODE_URL, log or server_info file, - for a pipe, pod/NAME, or key=value labels.",
        show_default=False,
    ),
]
Output = Annotated[Format, typer.Option("--output", "-o", help="How to print the report.")]
Namespace = Annotated[
    str, typer.Option("--namespace", "-n", metavar="NS", help="Of pods; else that of the context.", show_default=False)
]
Context = Annotated[
    str, typer.Option("--context", metavar="CTX", help="Of kubectl's configuration, for pods.", show_default=False)
]
Advisories = Annotated[
    str,
    typer.Option("--advisories", metavar="FILE", help="Further advisories, signed in FILE.sig.", show_default=False),
]
AdvisoryKey = Annotated[
    str,
    typer.Option("--advisory-key", metavar="FILE", help="The public key of who signed them.", show_default=False),
]


def command(
    targets: Targets,
    output: Output = Format.TABLE,
    namespace: Namespace = "",
    context: Context = "",
    advisories: Advisories = "",
    advisory_key: AdvisoryKey = "",
) -> int:
    """Say what is wrong with engines, from what their servers, logs or pods tell. Nothing is sent but GETs.

    \b
    Examples:
      kvfence doctor http://127.0.0.1:30000
      kvfence doctor http://10.0.0.5:30000,http://10.0.0.6:30000
      kvfence doctor prefill.log decode.log.gz
      kubectl logs my-pod | kvfence doctor -
      kvfence doctor -n inference app=sglang
      kvfence doctor pod/prefill-0 --output json

    A server's API key goes into the environment variable KVFENCE_API_KEY; it is sent to every URL named. Pods are read
    through kubectl, with your own rights: their logs, their objects, and GETs through the API server's proxy. For a
    file whose name looks like something else, write ./ in front of it.

    Exit codes: 0 nothing was found, 1 findings, 2 cannot tell, 3 wrong usage.
    """  # noqa: D301 - \b is click's: the lines below it are not filled
    meant = _checked(targets, namespace, context)
    if bool(advisories) != bool(advisory_key):
        raise typer.BadParameter("--advisories and --advisory-key go together: one is checked with the other")
    report = _report(meant, namespace or None, context or None, (advisories, advisory_key))
    if output is Format.JSON:
        _print_json(report)
    else:
        _print_table(report)
    return int(report.exit_code)


def _checked(targets: list[str], namespace: str, context: str) -> list[Target]:
    """Return the targets, or refuse them as a wrong usage of the command."""
    try:
        meant = parse_all(targets)
    except TargetError as error:
        raise typer.BadParameter(str(error)) from error
    for one in meant:
        if isinstance(one, LogOrBody):
            _must_be_there(one.path)
    if namespace and not NAMESPACE.fullmatch(namespace):
        raise typer.BadParameter("--namespace: that is no name of a namespace")
    if (namespace or context) and not any(isinstance(one, Selected | Pod) for one in meant):
        raise typer.BadParameter("--namespace and --context are for pods, and no TARGET is pod/NAME or key=value")
    return meant


def _must_be_there(path: str) -> None:
    try:
        there, folder = Path(path).exists(), Path(path).is_dir()
    except PermissionError:  # it may be there; reading it says the same in words
        return
    except OSError:  # no name that a file can have
        there, folder = False, False
    if folder:
        raise typer.BadParameter(f"{path} is a folder; name the files in it")
    if not there:
        address = f" A server is written http://{path}" if ":" in path else ""
        raise typer.BadParameter(f"{path}: there is no such file.{address}")


def _report(targets: Sequence[Target], namespace: str | None, context: str | None, added: tuple[str, str]) -> Report:
    """Collect and judge. What is heavy to import is imported here, after the arguments are known to be right."""
    import asyncio  # noqa: PLC0415
    from datetime import UTC, datetime  # noqa: PLC0415

    from kvfence.cli.catalogues import AdvisoriesUnusableError, catalogues  # noqa: PLC0415
    from kvfence.domain.diagnosis import diagnose  # noqa: PLC0415

    now = datetime.now(UTC)
    try:
        known = catalogues(*added, now)
    except AdvisoriesUnusableError as error:
        raise typer.BadParameter(str(error)) from error
    for sentence in known.notes:
        note(sentence)
    seen = asyncio.run(_collected(targets, namespace, context))
    return known.noted_in(diagnose(seen, known.advisories))


async def _collected(targets: Sequence[Target], namespace: str | None, context: str | None) -> tuple[Seen, ...]:
    import asyncio  # noqa: PLC0415
    import os  # noqa: PLC0415
    import sys  # noqa: PLC0415

    from kvfence.cli.asked import SECONDS, KeyUnusableError, key_from  # noqa: PLC0415
    from kvfence.cli.cluster import Cluster  # noqa: PLC0415
    from kvfence.cli.collecting import Where, collect  # noqa: PLC0415
    from kvfence.cli.kubectl import Kubectl  # noqa: PLC0415
    from kvfence.engine.bodies import BODY_LIMIT  # noqa: PLC0415
    from kvfence.engine.web import Web  # noqa: PLC0415

    if Pipe() in targets and sys.stdin is not None and sys.stdin.isatty():
        note("reading what you type; end it with Ctrl-D, or pipe a log in")
    try:
        key = key_from(os.environ)
    except KeyUnusableError as error:
        raise typer.BadParameter(str(error)) from error
    slow = asyncio.get_running_loop().call_later(PATIENCE, _still_reading)
    async with Web(SECONDS, BODY_LIMIT, key) as web:
        found = await collect(targets, Where(web, Cluster(Kubectl(namespace, context))))
    slow.cancel()
    return found


def _still_reading() -> None:
    import sys  # noqa: PLC0415

    if sys.stderr.isatty():
        note("still reading; Ctrl-C ends it")


def _print_json(report: Report) -> None:
    import json  # noqa: PLC0415

    write(json.dumps(report.json(), indent=2) + "\n")
    for sentence in report.missing:
        note(sentence)


def _print_table(report: Report) -> None:
    from kvfence.cli.output import draw  # noqa: PLC0415
    from kvfence.cli.table import show  # noqa: PLC0415

    draw(lambda screen: show(report, screen))
