"""`python -m kvfence.app`: the operator."""

from __future__ import annotations

import asyncio
import logging
import os
import sys

import kopf

from kvfence.app.operator import run
from kvfence.app.settings import SettingsError, settings_from
from kvfence.controller.keys import KeyUnusableError
from kvfence.kube.errors import KubernetesError
from kvfence.kube.leading import LostLease

log = logging.getLogger("kvfence")


def main() -> int:
    """Run the operator; return the status to exit with."""
    try:
        settings = settings_from(os.environ)
    except SettingsError as error:
        print(f"kvfence: {error}", file=sys.stderr)  # noqa: T201 - logging is set up from the settings
        return 2
    kopf.configure(log_format=kopf.LogFormat.JSON if settings.log_format == "json" else kopf.LogFormat.FULL)
    logging.getLogger("kopf.objects").setLevel(logging.WARNING)  # it says of each event that a handler took it
    try:
        asyncio.run(run(settings))
    except asyncio.CancelledError:
        log.info("The operator ends, as it was told to")
    except (KubernetesError, KeyUnusableError, LostLease, OSError) as error:
        log.error("The operator ends: %s", error)  # noqa: TRY400 - the message says all there is
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
