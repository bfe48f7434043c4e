"""An estimate as people read it, and as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.text import Text

from kvfence.domain.estimate import Role, Verdict, requests_at_once
from kvfence.engine.text import printable

if TYPE_CHECKING:
    from rich.console import Console

    from kvfence.domain.estimate import Estimate, Flags, Gpu, Range

LENGTHS = (4_096, 32_768)
"""Of requests, beside the context length."""
ROLES = {Role.UNIFIED: "alone", Role.PREFILL: "prefill of a pair", Role.DECODE: "decode of a pair"}
STYLES = {Verdict.FITS: "green", Verdict.DOES_NOT_FIT: "bold red", Verdict.CANNOT_TELL: "yellow"}
LABEL = 34
COLUMN = 13
MEASURE = "Only a measured pool counts: `kvfence doctor` reads it from a log or a server. Errors: docs/capacity.md."


@dataclass(frozen=True, slots=True)
class Asked:
    """What the estimate is of, beside the model and its layout."""

    gpu: Gpu
    flags: Flags
    context_length: int | None
    weights_source: str


def verdict(found: Estimate, asked: Asked) -> Verdict:
    """Return what it comes to: whether the context length fits, or whether there is a pool at all."""
    return found.starts if asked.context_length is None else found.verdict(asked.context_length)


def sentence(found: Estimate, asked: Asked) -> str:
    """Return the verdict as a sentence."""
    length = asked.context_length
    if found.starts is Verdict.DOES_NOT_FIT:
        return "The weights leave no memory for a KV pool: SGLang does not start so."
    if length is None:
        if found.starts is Verdict.CANNOT_TELL:
            return "Cannot tell whether the weights leave any memory for a KV pool."
        return f"Likely {found.alone.reckoning.pool.likely:,} tokens in each KV pool."
    match found.verdict(length):
        case Verdict.FITS:
            return f"A context of {length:,} tokens fits, alone and as a pair."
        case Verdict.DOES_NOT_FIT:
            return f"A context of {length:,} tokens does not fit, alone or as a pair."
        case Verdict.CANNOT_TELL:
            return (
                f"Cannot tell whether a context of {length:,} tokens fits: it is within the error, or up to the role."
            )


def assumptions(found: Estimate, asked: Asked) -> tuple[str, ...]:
    """Return what was taken for granted, in sentences."""
    model, layout = found.model, found.layout
    gib = f"{asked.gpu.gib:.2f} GiB as CUDA or ROCm reports it"
    said = [f"Each GPU has {gib} ({_source(asked.gpu)}), and nothing else uses it."]
    said.append(f"The weights: {asked.weights_source}.")
    if asked.flags.mem_fraction_static is None:
        said.append("--mem-fraction-static is the default of SGLang 0.5.19 to 0.5.23; give it to narrow the range.")
    if model.sliding_layers:
        said.append(
            f"{model.sliding_layers} layers keep a window only: low is with all of each kept, high with nothing, and "
            "likely with the default --swa-full-tokens-ratio of 0.8."
        )
    if layout.dp > 1:
        said.append(f"Each of the {layout.dp} data-parallel ranks has such a pool; one request uses one of them.")
    longest = asked.context_length
    if longest is not None and longest > model.context:
        said.append(f"The model itself has {model.context:,} tokens; SGLang refuses to start with more unless told to.")
    said.append("No speculative decoding, LoRA, HiCache or multimodal input, which take memory of their own.")
    return tuple(said)


def _source(gpu: Gpu) -> str:
    """Return where its memory is known from, in a few words."""
    return gpu.source if gpu.source == "as given" else "the least that was seen of this name"


def lengths(found: Estimate, asked: Asked) -> list[int]:
    """Return the lengths of requests to count, shortest first."""
    own = found.model.context if asked.context_length is None else asked.context_length
    return sorted({*(one for one in LENGTHS if one <= found.model.context), own})


def as_json(found: Estimate, asked: Asked) -> dict[str, Any]:
    """Return all of it for programs. A figure in `low` is the one that makes for the smallest pool."""
    alone = found.alone.reckoning
    return {
        "model": found.model.name,
        "gpu": {"name": asked.gpu.name, "gib": asked.gpu.gib, "count": found.layout.gpus},
        "refused": None,
        "kvBytesPerToken": _range(alone.token_bytes, turned=True),
        "freeBeforeGib": _range(alone.free),
        "weightsGib": _range(alone.weights, turned=True),
        "memFractionStatic": _range(alone.fraction),
        "kvPoolTokens": _range(alone.pool),
        "roles": [
            {
                "role": one.role.value,
                "kvPoolTokens": _range(one.reckoning.pool),
                "context": _range(one.context),
                "verdict": None if asked.context_length is None else one.verdict(asked.context_length).value,
            }
            for one in found.roles
        ],
        "requestsAtOnce": [
            {"tokens": one, **_range(requests_at_once(alone.pool, one, asked.flags.page_size))}
            for one in lengths(found, asked)
        ],
        "contextLength": asked.context_length,
        "verdict": verdict(found, asked).value,
        "assumptions": list(assumptions(found, asked)),
    }


def show(found: Estimate, asked: Asked, console: Console) -> None:
    """Print it as a table."""
    alone = found.alone.reckoning
    count = found.layout.gpus
    _line(console, f"{printable(found.model.name, 200)} on {count} x {asked.gpu.name}: an estimate", "bold")
    console.print()
    _line(console, _row("", "low", "likely", "high"), "bold")
    _line(console, _numbers("GiB free before loading", alone.free, ".2f"))
    _line(console, _numbers("GiB of weights on a GPU", alone.weights, ".2f", turned=True))
    _line(console, _numbers("--mem-fraction-static", alone.fraction, ".3f"))
    _line(console, _numbers("bytes of a token on a GPU", alone.token_bytes, ",", turned=True))
    _line(console, _numbers("tokens in a KV pool", alone.pool, ","), "bold")
    console.print()
    _line(console, "Context that could be offered, in tokens", "bold")
    for one in found.roles:
        row = _numbers(f"  {ROLES[one.role]}", one.context, ",")
        said = None if asked.context_length is None else one.verdict(asked.context_length)
        _line(console, row if said is None else f"{row}  {said.value}", "" if said is None else STYLES[said])
    console.print()
    _line(console, "Requests at once", "bold")
    for length in lengths(found, asked):
        _line(
            console,
            _numbers(f"  of {length:,} tokens", requests_at_once(alone.pool, length, asked.flags.page_size), ","),
        )
    console.print()
    for known in (*assumptions(found, asked), MEASURE):
        console.print(Text(f"- {printable(known)}", style="dim"))
    console.print()
    _line(console, sentence(found, asked), STYLES[verdict(found, asked)])


def _line(console: Console, text: str, style: str = "") -> None:
    console.print(Text(text, style=style), soft_wrap=True)


def _row(label: str, *cells: str) -> str:
    return f"{label:<{LABEL}}" + "".join(f"{cell:>{COLUMN}}" for cell in cells)


def _numbers(label: str, figures: Range[Any], form: str, *, turned: bool = False) -> str:
    ordered = (figures.low, figures.likely, figures.high)
    return _row(label, *(format(one, form) for one in (ordered[::-1] if turned else ordered)))


def _range(figures: Range[Any], *, turned: bool = False) -> dict[str, Any]:
    low, high = (figures.high, figures.low) if turned else (figures.low, figures.high)
    return {name: _short(one) for name, one in (("low", low), ("likely", figures.likely), ("high", high))}


def _short(figure: float) -> float:
    return figure if isinstance(figure, int) else round(figure, 3)
