"""`python -m kvfence.cli`."""

import sys

from kvfence.cli import main

sys.exit(main())
