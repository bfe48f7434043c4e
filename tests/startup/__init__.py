"""What the command line takes to be there, beside Python itself: `python -m tests.startup`."""
