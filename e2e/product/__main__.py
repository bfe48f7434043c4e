"""`python -m e2e.product`: build the layers of kvfence's images that change seldom; what is there stays."""

import sys

from e2e import progress
from e2e.errors import StageError
from e2e.product import images

try:
    images.build()
except (StageError, OSError) as error:
    progress.say(f"error: {error}")
    sys.exit(1)
