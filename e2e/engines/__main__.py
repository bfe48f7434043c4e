"""`python -m e2e.engines`: build the layers of the engine images; what is there already is not built again."""

import sys

from e2e import progress
from e2e.engines import images
from e2e.errors import StageError

try:
    images.build()
except (StageError, OSError) as error:
    progress.say(f"error: {error}")
    sys.exit(1)
