"""The KV pool of a model on a GPU before anybody has either: an estimate, as a range.

SGLang's rule is known and simple; what is not known before a start is how much memory is free before and after the
weights are loaded. So everything here comes in three: what is low, likely and high. `docs/capacity.md` says how far off
the estimate was for real servers. Only a measured pool counts: the operator and `kvfence doctor` measure.

A model whose cache SGLang does not lay out in one of the ways that are modelled here is refused with the reason.
"""

from __future__ import annotations

from kvfence.domain.estimate.contexts import Estimate, RoleEstimate, Verdict, estimate, requests_at_once
from kvfence.domain.estimate.facts import CannotEstimateError, ConfigError
from kvfence.domain.estimate.fraction import Role
from kvfence.domain.estimate.gpus import GPUS, Gpu, gpu_named
from kvfence.domain.estimate.known import KNOWN, known_model, names_near
from kvfence.domain.estimate.layout import CacheType, Flags, Layout
from kvfence.domain.estimate.model import Model
from kvfence.domain.estimate.ranges import Range
from kvfence.domain.estimate.reading import model_from
from kvfence.domain.estimate.reckoning import left_for_pool, token_bytes, tokens_in

__all__ = [
    "GPUS",
    "KNOWN",
    "CacheType",
    "CannotEstimateError",
    "ConfigError",
    "Estimate",
    "Flags",
    "Gpu",
    "Layout",
    "Model",
    "Range",
    "Role",
    "RoleEstimate",
    "Verdict",
    "estimate",
    "gpu_named",
    "known_model",
    "left_for_pool",
    "model_from",
    "names_near",
    "requests_at_once",
    "token_bytes",
    "tokens_in",
]
