"""How many bytes a quantised weight takes, where a config.json says enough to be sure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvfence.domain.estimate.model import BF16, Widths

if TYPE_CHECKING:
    from kvfence.domain.estimate.facts import Facts

SCALE = 4.0
"""Bytes of a scale of a block of FP8 weights, and of nothing else here."""
MXFP4 = 0.5 + 1 / 32
"""Half a byte, and a byte of scale for each 32 weights (the OCP format)."""
CACHE_QUANTISED = ("kv_cache_scheme", "kv_cache_quant_algo")
"""Keys by which a checkpoint says that its cache is quantised, too."""


def widths(quantisation: Facts | None, architecture: str) -> Widths | None:
    """Return the bytes of weights; `None` when they cannot be told from the config.

    Raises:
        ConfigError: what it says cannot be.
    """
    if quantisation is None:
        return Widths()
    match quantisation.text("quant_method"):
        case "fp8":
            return Widths(_fp8(quantisation), _fp8(quantisation))
        case "awq" | "gptq":
            width = _grouped_integers(quantisation)
            return None if width is None else Widths(width, width)
        case "mxfp4" if architecture == "GptOssForCausalLM":
            return Widths(BF16, MXFP4)
        case _:
            return None


def cache_type_is_known(quantisation: Facts | None) -> bool:
    """Whether `--kv-cache-dtype auto` is the model's own type, of two bytes.

    ModelOpt writes that the cache is FP8 into a second file, which is not read here.
    """
    if quantisation is None:
        return True
    method = quantisation.text("quant_method") or ""
    return not method.startswith("modelopt") and bool(method) and not any(map(quantisation.has, CACHE_QUANTISED))


def _fp8(quantisation: Facts) -> float:
    return 1.0 + (SCALE / (128 * 128) if quantisation.has("weight_block_size") else 0.0)


def _grouped_integers(quantisation: Facts) -> float | None:
    """A weight has its bits, and its part of the scale (two bytes) and of the zero point of its group."""
    bits = quantisation.integer_or("bits", 0)
    group = quantisation.integer_or("group_size", 0, least=-1)
    if bits not in {4, 8} or group == 0:
        return None
    return bits / 8 + ((2 + bits / 8) / group if group > 0 else 0.0)
