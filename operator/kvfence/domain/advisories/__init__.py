"""Known faults of engines, routers and transfer backends: what an advisory is, and to what it applies.

Pure. The entries lie in `kvfence.catalogue`; what follows from one is for the doctor and for the operator's gate.
"""

from kvfence.domain.advisories.advisory import Advisory, Affected, Span
from kvfence.domain.advisories.conditions import Applies, Condition
from kvfence.domain.advisories.exempting import Exemption, exempted, lapsed
from kvfence.domain.advisories.judging import Judgement, Subject, judge, with_components
from kvfence.domain.advisories.limiting import CutLimit, Running, limit_cuts
from kvfence.domain.advisories.parsing import parse

__all__ = [
    "Advisory",
    "Affected",
    "Applies",
    "Condition",
    "CutLimit",
    "Exemption",
    "Judgement",
    "Running",
    "Span",
    "Subject",
    "exempted",
    "judge",
    "lapsed",
    "limit_cuts",
    "parse",
    "with_components",
]
