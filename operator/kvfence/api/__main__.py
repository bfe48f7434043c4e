"""`python -m kvfence.api` prints the CRD, `python -m kvfence.api words` the reference of conditions and reasons."""

import sys

from kvfence.api.crd import crd_text
from kvfence.api.words import reference

sys.stdout.write(reference() if sys.argv[1:] == ["words"] else crd_text())
