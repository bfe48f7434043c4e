"""`python -m kvfence.api` writes the CRD on standard output."""

import sys

from kvfence.api.crd import crd_text

sys.stdout.write(crd_text())
