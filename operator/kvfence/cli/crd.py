"""`kvfence crd`."""

from __future__ import annotations

from kvfence.cli.output import write


def command() -> None:
    """Print the CustomResourceDefinition of InferencePool as YAML.

    \b
    Examples:
      kvfence crd | kubectl apply --server-side -f -
      kvfence crd | kubectl diff -f -

    Exit codes: 0 printed, 3 wrong usage.
    """  # noqa: D301 - \b is click's: the lines below it are not filled
    from kvfence.api.crd import crd_text  # noqa: PLC0415 - pydantic and yaml, which --help does not need

    write(crd_text())
