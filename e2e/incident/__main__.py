"""`python -m e2e.incident`: play the incident and show it. Ends with 0 only if another user's marker came out."""

from e2e.incident.cli import main

main()
