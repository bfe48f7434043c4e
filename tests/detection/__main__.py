"""`python -m tests.detection`."""

from tests.detection.cli import main

main()
