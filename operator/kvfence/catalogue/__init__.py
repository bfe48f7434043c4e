"""The advisories that come with kvfence, and those that whoever runs it adds, signed.

The entries are files in `osv/`, one per advisory; `python -m kvfence.catalogue` is for whoever writes one. What an
entry means is decided in `kvfence.domain.advisories`.
"""

from kvfence.catalogue.adding import added
from kvfence.catalogue.catalogue import Catalogue, merged
from kvfence.catalogue.packaged import packaged

__all__ = ["Catalogue", "added", "merged", "packaged"]
