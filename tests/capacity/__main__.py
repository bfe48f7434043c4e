"""`python -m tests.capacity`: prints what docs/capacity.md has between its two marks; with `--write`, puts it there."""

from __future__ import annotations

import sys

from tests.capacity.comparing import text
from tests.capacity.page import PAGE


def main() -> int:
    """Print, or write."""
    if sys.argv[1:] == ["--write"]:
        PAGE.path.write_text(PAGE.with_part(PAGE.path.read_text(), text()))
        return 0
    if sys.argv[1:]:
        sys.stderr.write(f"{__doc__}\n")
        return 3
    sys.stdout.write(text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
