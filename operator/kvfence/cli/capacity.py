"""`kvfence capacity`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from kvfence.cli.output import Format, write
from kvfence.engine.text import printable

if TYPE_CHECKING:
    from pathlib import Path

    from kvfence.cli.capacity_report import Asked
    from kvfence.domain.estimate import Estimate, Flags, Gpu, Model

MOST_GIB = 100_000.0
MOST_GPUS = 100_000
MOST_TOKENS = 1 << 40

GpuName = Annotated[str, typer.Option("--gpu", metavar="NAME", help="H200, A100-80GB, MI300X ...", show_default=False)]
Gib = Annotated[
    Optional[float],  # noqa: UP045 - typer reads it as it runs
    typer.Option(
        "--gpu-memory-gib", metavar="X", help="Memory of one GPU as CUDA reports it, in GiB, for any other GPU."
    ),
]
ModelName = Annotated[
    str, typer.Option("--model", metavar="NAME|PATH", help="A well-known model, or a config.json or its folder.")
]
Tp = Annotated[int, typer.Option("--tp", "--tp-size", metavar="N", min=1, max=MOST_GPUS, help="As for SGLang.")]
Pp = Annotated[int, typer.Option("--pp", "--pp-size", metavar="N", min=1, max=MOST_GPUS, help="As for SGLang.")]
Dp = Annotated[int, typer.Option("--dp", "--dp-size", metavar="N", min=1, max=MOST_GPUS, help="As for SGLang.")]
DpAttention = Annotated[
    bool, typer.Option("--enable-dp-attention", help="As for SGLang: the ranks of --dp are among those of --tp.")
]
CacheDtype = Annotated[
    str, typer.Option("--kv-cache-dtype", metavar="TYPE", help="auto, bf16, fp8_e5m2 or fp8_e4m3, as for SGLang.")
]
Fraction = Annotated[
    Optional[float],  # noqa: UP045
    typer.Option("--mem-fraction-static", metavar="F", help="As for SGLang; its default unless given."),
]
PageSize = Annotated[int, typer.Option("--page-size", metavar="N", min=1, max=MOST_TOKENS, help="As for SGLang.")]
MaxTokens = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option("--max-total-tokens", metavar="N", min=1, max=MOST_TOKENS, help="As for SGLang: an upper bound."),
]
Weights = Annotated[
    Optional[float],  # noqa: UP045
    typer.Option("--weights-gib", metavar="X", help="Of the whole model; counted from its config unless given."),
]
ContextLength = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option("--context-length", metavar="N", min=1, max=MOST_TOKENS, help="Say whether it fits."),
]
Output = Annotated[Format, typer.Option("--output", "-o", help="How to print the estimate.")]


def command(  # noqa: PLR0913 - one parameter is one flag
    *,
    model: ModelName,
    gpu: GpuName = "",
    gpu_memory_gib: Gib = None,
    tp: Tp = 1,
    pp: Pp = 1,
    dp: Dp = 1,
    enable_dp_attention: DpAttention = False,
    kv_cache_dtype: CacheDtype = "auto",
    mem_fraction_static: Fraction = None,
    page_size: PageSize = 1,
    max_total_tokens: MaxTokens = None,
    weights_gib: Weights = None,
    context_length: ContextLength = None,
    output: Output = Format.TABLE,
) -> int:
    """Estimate the KV pool of SGLang from GPU, model and flags, before one buys: as a range, with its reasons.

    \b
    Examples:
      kvfence capacity --gpu H200 --model DeepSeek-R1 --tp 8 --context-length 131072
      kvfence capacity --gpu-memory-gib 22.03 --model ./config.json --tp 4 --mem-fraction-static 0.85
      kvfence capacity --gpu H100 --model Llama-3.1-8B-Instruct --output json

    Nothing is measured and nothing is sent. A model whose cache is laid out in a way that is not known here is refused.

    Exit codes: 0 an estimate, and the context length surely fits; 1 it surely does not fit, or the weights leave no
    memory; 2 cannot tell, 3 wrong usage.
    """  # noqa: D301 - \b is click's: the lines below it are not filled
    from kvfence.domain.estimate import CacheType, CannotEstimateError, Flags, Layout, estimate  # noqa: PLC0415

    if kv_cache_dtype not in set(CacheType):
        raise typer.BadParameter(
            f"--kv-cache-dtype is one of {', '.join(CacheType)}: the size of others is not known here"
        )
    card = _gpu(gpu, gpu_memory_gib)
    try:
        flags = Flags(CacheType(kv_cache_dtype), mem_fraction_static, page_size, max_total_tokens, weights_gib)
        meant, flags, weights_source = _model(model, flags)
        found = estimate(meant, card, Layout(tp, pp, dp, enable_dp_attention), flags)
    except CannotEstimateError as error:
        return _refused(str(error), output)
    except ValueError as error:
        raise typer.BadParameter(printable(str(error))) from error
    from kvfence.cli.capacity_report import Asked  # noqa: PLC0415 - rich, which --help does not need

    return _printed(found, Asked(card, flags, context_length, weights_source), output)


def _gpu(name: str, gib: float | None) -> Gpu:
    """Return what the GPU is: its memory as it is given, or as it is known."""
    from kvfence.domain.estimate import GPUS, Gpu, gpu_named  # noqa: PLC0415

    known = gpu_named(name)
    if gib is not None:
        if not (math.isfinite(gib) and 0 < gib <= MOST_GIB):
            raise typer.BadParameter(f"--gpu-memory-gib is a number above 0, up to {MOST_GIB:,.0f}")
        return Gpu(printable(name, 80) or "GPU", gib, "as given", rocm=known is not None and known.rocm)
    if not name:
        raise typer.BadParameter("--gpu NAME or --gpu-memory-gib X is needed")
    if known is None:
        names = ", ".join(gpu.name for gpu in GPUS)
        raise typer.BadParameter(
            f"--gpu {printable(name, 80)} is not known. Known are {names}. For another one give --gpu-memory-gib, "
            "as torch.cuda.mem_get_info() reports it"
        )
    return known


def _model(name: str, flags: Flags) -> tuple[Model, Flags, str]:
    """Return the model, the flags with the size of the weights where a file beside it tells, and where that is from.

    Raises:
        ValueError: there is no such model, or its files cannot be right.
    """
    from dataclasses import replace  # noqa: PLC0415
    from pathlib import Path  # noqa: PLC0415 - quick, but typing has it above

    from kvfence.cli.model_files import read_config, weights_beside  # noqa: PLC0415
    from kvfence.domain.estimate import known_model, model_from, names_near  # noqa: PLC0415

    counted = "counted from the config"
    given = "as given" if flags.weights_gib is not None else counted
    known = known_model(name)
    if known is not None:
        return known, flags, given
    path = Path(name)
    if not _there(path):
        near = names_near(name)
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        raise ValueError(f"--model {printable(name, 200)} is no model that is known here, and no file.{hint}")
    meant = model_from(read_config(path), printable(name, 200))
    if meant.widths is None and flags.weights_gib is None and (size := weights_beside(path)) is not None:
        return meant, replace(flags, weights_gib=size / 1024**3), "as the index of the checkpoint says"
    return meant, flags, given


def _there(path: Path) -> bool:
    try:
        return path.exists()
    except PermissionError:  # it may be there; reading it says the same in words
        return True
    except (OSError, ValueError):  # no name that a file can have
        return False


def _refused(why: str, output: Format) -> int:
    import json  # noqa: PLC0415

    from kvfence.cli.output import note  # noqa: PLC0415

    if output is Format.JSON:
        write(json.dumps({"refused": why, "kvPoolTokens": None, "verdict": "cannot tell"}, indent=2) + "\n")
    else:
        note(why)
    return 2


def _printed(found: Estimate, asked: Asked, output: Format) -> int:
    import json  # noqa: PLC0415

    from kvfence.cli.capacity_report import as_json, show, verdict  # noqa: PLC0415
    from kvfence.cli.output import draw  # noqa: PLC0415
    from kvfence.domain.estimate import Verdict  # noqa: PLC0415

    if output is Format.JSON:
        write(json.dumps(as_json(found, asked), indent=2) + "\n")
    else:
        draw(lambda screen: show(found, asked, screen))
    return {Verdict.FITS: 0, Verdict.DOES_NOT_FIT: 1, Verdict.CANNOT_TELL: 2}[verdict(found, asked)]
