"""What can be said of an engine from outside, by whoever runs one: facts as they were told, and what they mean.

Pure. `kvfence doctor` and tests use it; where the facts come from (a log, a server's answers, a cluster) is for others.
"""

from kvfence.domain.diagnosis.diagnosing import diagnose

__all__ = ["diagnose"]
