"""`python -m e2e.demo`: show a pool being measured, capped, proven and admitted. Ends with 0 only if all was seen."""

from e2e.demo.cli import main

main()
