"""`python -m bench.engine`."""

from bench.engine.cli import main

main()
