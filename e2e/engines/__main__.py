"""`python -m e2e.engines`: build the layers of the engine images; what is there already is not built again."""

import sys

from e2e import progress
from e2e.cluster.errors import StageError
from e2e.engines import images
from e2e.engines.environment import EngineSetupError

try:
    images.build()
except (StageError, EngineSetupError) as error:
    progress.say(f"error: {error}")
    sys.exit(1)
