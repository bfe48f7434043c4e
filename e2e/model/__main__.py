"""`python -m e2e.model`: search the model with all defences, with each one off, and with none."""

from e2e.model.cli import main

main()
