"""Which field logs can be compared, with what they tell; and why the others cannot."""

from __future__ import annotations

from dataclasses import dataclass, field

from kvfence.domain.estimate import Flags, Layout

DEFAULTS_OF_04 = {16: 0.79, 4: 0.85, 2: 0.87, 1: 0.88, 8: 0.81}
"""--mem-fraction-static by --tp, of SGLang from 0.3 to 0.4.6 (`server_args.py`; index ids 309022971 and 151270057, of
which the latter, older, has 0.83 for 8)."""


@dataclass(frozen=True)
class Bought:
    """A log that tells the GPU, the model and the flags that one knows before one buys."""

    log: str
    gpu: str
    model: str
    layout: Layout = field(default_factory=Layout)
    fraction: float | None = None
    where_from: str = ""
    """The fraction: told by the log, or the default of its release, or not known."""

    @property
    def flags(self) -> Flags:
        """As far as they are told."""
        return Flags(mem_fraction_static=self.fraction)


BOUGHT = (
    Bought("002", "A10G", "QwQ-32B", Layout(tp=4), 0.85, "told; the card is named as of A10G class"),
    Bought("003", "MI300X", "DeepSeek-R1", Layout(tp=8), DEFAULTS_OF_04[8], "default of 0.4.2"),
    Bought("004", "B200", "DeepSeek-R1-0528", Layout(tp=8), None, "not told: today's default"),
    Bought("013", "H100", "Llama-3.1-8B-Instruct", Layout(), DEFAULTS_OF_04[1], "default of 0.4.1; 80 GB"),
    Bought("015", "RTX-3090", "Mistral-7B-Instruct-v0.1", Layout(), DEFAULTS_OF_04[1], "default of 0.3.6; 24 GB"),
    Bought("025", "H100", "Qwen3-235B-A22B-FP8", Layout(tp=4), 0.93, "told"),
    Bought("035", "RTX-3090", "DeepSeek-R1-Distill-Qwen-32B", Layout(tp=4), DEFAULTS_OF_04[4], "default of 0.4.2"),
)


@dataclass(frozen=True)
class Ruled:
    """A log that tells the free memory before and after the weights, and the fraction: SGLang's rule alone."""

    log: str
    before: float
    """GiB."""
    after: float
    fraction: float
    rest: float | None
    """GiB that SGLang itself names as left for the pool; where it does not, its tokens are compared."""
    token_bytes: int | None = None


RULED = (
    Ruled("002", 21.63, 6.09, 0.85, None, 65_536),
    Ruled("006", 93.58, 57.01, 0.60, 19.58),
    Ruled("028", 138.17, 17.94, 0.90, 4.13),
)


@dataclass(frozen=True)
class Sized:
    """A log that tells the tokens and the GiB of a pool: what one token takes."""

    log: str
    model: str
    gib: float
    tp: int = 1
    cache_type: str = "auto"


SIZED = (
    Sized("001", "Llama-3.1-8B-Instruct", 4.66),
    Sized("002", "QwQ-32B", 2.84, 4),
    Sized("013", "Llama-3.1-8B-Instruct", 54.26),
    Sized("025", "Qwen3-235B-A22B-FP8", 16.46, 4),
    Sized("027", "Qwen3-4B", 14.52),
    Sized("030", "DeepSeek-V3", 87.01, 8, "fp8_e4m3"),
    Sized("034", "Llama-3.1-8B-Instruct", 2.50),
)
"""What they name as K size and V size is added up."""

NO_GPU = "the GPU is not named"
NO_MODEL = "the model is not named, or not its size"
HYBRID = "refused: linear attention or Mamba layers, with a pool of states"
DSA = "refused: sparse attention (DSA)"
V4 = "refused: compressed attention (DeepSeek V4)"
CAPPED = "--max-total-tokens sets the pool, not the memory"

NOT_COMPARED = {
    "001": "a card of some 24 GB under Windows, which keeps a part of it back, and no fraction told",
    "005": V4,
    "006": V4,
    "007": V4,
    "008": V4,
    "009": DSA,
    "010": DSA,
    "011": HYBRID,
    "012": HYBRID,
    "014": NO_MODEL,
    "016": NO_GPU,
    "017": NO_MODEL,
    "018": HYBRID,
    "019": HYBRID,
    "020": HYBRID,
    "021": HYBRID,
    "022": "refused: a multimodal model with windowed layers of their own shape (Gemma 4)",
    "023": "refused: windowed layers with KV heads of their own (MiMo V2)",
    "024": DSA,
    "026": NO_MODEL,
    "027": "the GPU is not named, nor the fraction (0.50 by its figures)",
    "028": V4,
    "029": DSA,
    "030": "143 GiB free before loading, which is more than the H200 has that it names; no fraction told",
    "031": DSA,
    "032": "an Ascend card, and the model's size is not named",
    "033": "kvcached, an allocator of its own",
    "034": CAPPED,
    "036": NO_MODEL,
    "037": "a dummy model of a benchmark",
    "038": NO_MODEL,
    "039": HYBRID,
    "040": NO_MODEL,
    "041": "an embedding model, and the start failed",
    "042": HYBRID,
    "043": NO_MODEL,
    "044": NO_MODEL,
    "045": CAPPED,
    "046": NO_GPU,
    "047": NO_GPU,
}
"""Why a log has no row among those that could be bought by. The servers of tests/field/real have no GPU at all."""
