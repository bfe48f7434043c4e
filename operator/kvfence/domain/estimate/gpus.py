"""How much memory GPUs have, as CUDA and ROCm report it to a program: less than the number in the name.

Each figure is the capacity that PyTorch names when memory runs out ("GPU 0 has a total capacity of ... GiB"), which is
what `torch.cuda.mem_get_info` counts from. Cards of one name differ by some hundredths, with driver and ECC; the lowest
figure that was seen is taken. Where it was seen is beside it: an issue, or a text of the index of public repository
files that the field logs come from, by its id.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Gpu:
    """One kind of GPU."""

    name: str
    gib: float
    """In GiB."""
    source: str
    """Where the figure was seen."""
    rocm: bool = False
    """Whether it is AMD's: ROCm takes more memory for itself once there are several."""


GPUS: tuple[Gpu, ...] = (
    Gpu("T4", 14.56, "index id 69202590390"),
    Gpu("L4", 22.03, "index id 55497994311"),
    Gpu("A10G", 22.03, "index id 62859858187; index id 71609078484 says 22.06 of an A10"),
    Gpu("RTX-4090", 23.53, "github.com/OpenMOSS/MOSS-TTSD/issues/71"),
    Gpu("RTX-3090", 23.68, "index id 13177228156 says 23.69; github.com/vllm-project/vllm/issues/16343 says 23.68"),
    Gpu("RTX-5090", 31.34, "index id 70266988120"),
    Gpu("A100-40GB", 39.38, "index id 3811624804"),
    Gpu("L40S", 44.40, "index id 66593076004"),
    Gpu("H100", 79.11, "github.com/vllm-project/vllm/issues/27508"),
    Gpu("A100-80GB", 79.14, "index id 57998843519; index id 55333476420 says 79.15"),
    Gpu("H100-NVL", 93.00, "github.com/ali-vilab/VACE/issues/56"),
    Gpu("RTX-PRO-6000", 94.97, "index id 56272186476"),
    Gpu("H200", 139.80, "index id 53955449013; the memory before loading in field log 028 is 138.17"),
    Gpu("B200", 178.35, "index id 63244951597"),
    Gpu("MI300X", 191.98, "index id 62923531134", rocm=True),
    Gpu(
        "MI325X",
        255.98,
        "github.com/ROCm/TheRock/issues/2118, not named: 256 GB are sold as MI325X",
        rocm=True,
    ),
    Gpu("B300", 267.69, "index id 65719067222, not named: 288 GB are sold as B300"),
    Gpu("MI355X", 287.98, "github.com/pytorch/pytorch/issues/175431, not named: 288 GB are sold as MI355X", rocm=True),
)
"""Smallest first."""

ALIASES = {
    "A10": "A10G",
    "A100": "A100-80GB",
    "3090": "RTX-3090",
    "4090": "RTX-4090",
    "5090": "RTX-5090",
    "H100-80GB": "H100",
    "H100-SXM": "H100",
    "H200-SXM": "H200",
}
"""Other names; what is sold in two sizes means the larger one only where the smaller has a name of its own."""


def gpu_named(name: str) -> Gpu | None:
    """Return the GPU that a name means, however it is written; none when it is not known."""
    wanted = _plain(name)
    for gpu in GPUS:
        if _plain(gpu.name) == wanted:
            return gpu
    for alias, meant in ALIASES.items():
        if _plain(alias) == wanted:
            return gpu_named(meant)
    return None


def _plain(name: str) -> str:
    letters = "".join(letter for letter in name.casefold() if letter.isalnum())
    return letters.removeprefix("nvidia").removeprefix("amd").removeprefix("geforce")
