"""`kvfence canary`."""

from __future__ import annotations

import os
from typing import Annotated, Optional

import typer

from kvfence.cli.canary.choosing import PER_SECOND, REQUESTS
from kvfence.cli.canary.report import Output

TargetArgument = Annotated[
    str, typer.Argument(metavar="TARGET", help="URL of a server or router; or of a pair, as PREFILL_URL,DECODE_URL.")
]
Checks = Annotated[str, typer.Option("--checks", metavar="A,B", help="Only these; all that fit unless given.")]
Reference = Annotated[
    str, typer.Option(metavar="URL", help="A server of the same weights without PD, for PairIdentity.")
]
Model = Annotated[str, typer.Option(metavar="NAME", help="As it is served; the first of /v1/models unless given.")]
BootstrapHost = Annotated[
    str, typer.Option(metavar="HOST", help="Of a pair: prefill as decode sees it; as in its URL unless given.")
]
BootstrapPort = Annotated[
    Optional[int], typer.Option(metavar="PORT", min=1, max=65535, help="Of a pair; as prefill tells unless given.")  # noqa: UP045
]
Seed = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(metavar="N", help="Ask the same again. Whoever knows N can guess the markers: not where others are."),
]
MaxRequests = Annotated[
    int, typer.Option(metavar="N", min=1, help="Of the whole run; GETs of what servers are and count: as many.")
]
MaxTokens = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(metavar="N", min=1, help="Of prompts and answers, on each leg; 40 times the context unless given."),
]
Rate = Annotated[float, typer.Option(metavar="N", help="Requests a second at most; 0 for no limit.")]
Owned = Annotated[
    bool, typer.Option("--i-own-this", help="Send hostile requests too, though this is no address of this machine.")
]
Printed = Annotated[Output, typer.Option("--output", "-o", help="How to print the report.")]


def command(  # noqa: PLR0913 - one parameter is one flag
    target: TargetArgument,
    *,
    checks: Checks = "",
    reference: Reference = "",
    model: Model = "",
    bootstrap_host: BootstrapHost = "",
    bootstrap_port: BootstrapPort = None,
    seed: Seed = None,
    max_requests: MaxRequests = REQUESTS,
    max_tokens: MaxTokens = None,
    rate: Rate = PER_SECOND,
    own: Owned = False,
    output: Printed = Output.TABLE,
) -> int:
    """Send marked prompts to a server, a router or a pair, and look whose marker comes out of whose answer.

    Each check first has to fail on a stand-in that is broken on purpose. An API key goes into KVFENCE_API_KEY.

    \b
    Examples:
      kvfence canary http://localhost:30000
      kvfence canary http://prefill:30000,http://decode:30001 --i-own-this
      kvfence canary http://router:8000 --checks MarkerIsolation -o junit >canary.xml

    Exit codes: 0 all passed, 1 one failed, 2 one could not be judged or is broken, 3 wrong usage, 130 Ctrl-C.
    """  # noqa: D301 - \b is click's: the lines below it are not filled
    from kvfence.cli.asked import KeyUnusableError, key_from  # noqa: PLC0415 - aiohttp, which --help does not need
    from kvfence.cli.canary.asked import Asked, Pace, WrongUsageError, checks_named, url_of, urls_of  # noqa: PLC0415
    from kvfence.cli.canary.performing import perform  # noqa: PLC0415
    from kvfence.verify.canary.suite import SUITE  # noqa: PLC0415

    try:
        asked = Asked(
            urls_of(target),
            checks_named(checks, tuple(SUITE)) if checks else (),
            Pace(max_requests, max_tokens, rate),
            url_of(reference, "--reference") if reference else None,
            model or None,
            bootstrap_host or None,
            bootstrap_port,
            seed,
            own,
            key_from(os.environ),
        )
        return int(perform(asked, output))
    except (WrongUsageError, KeyUnusableError) as error:
        raise typer.BadParameter(str(error)) from None
