"""The command line: what anybody who runs an engine can ask of it, with Kubernetes or without.

Wires parts together and prints; what is judged is judged in `domain` and `verify`. May import: everything of kvfence
but `app`, and nothing that needs the extra `operator`. What is imported before a command runs is light, since
`kvfence --help` has to be quick.
"""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command that the process was started with; return the status to exit with."""
    try:
        from kvfence.cli.program import run  # noqa: PLC0415 - Ctrl-C while it loads ends quietly, too

        return run(sys.argv)
    except KeyboardInterrupt:
        return 130
