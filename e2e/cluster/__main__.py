"""`python -m e2e.cluster`."""

from e2e.cluster.cli import main

main()
