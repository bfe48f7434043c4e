"""`python -m e2e.red [NAME...]`: take defences out, one at a time. Ends with 0 only if a test went red for each."""

from e2e.red.cli import main

main()
