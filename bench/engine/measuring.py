"""Runs in the engine's environment, where torch and SGLang are: measures, and prints the results as JSON."""

from __future__ import annotations

import argparse
import json
import os
import sys
from contextlib import redirect_stdout
from importlib import import_module, metadata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

BATCHES = (1, 32, 256)
CONTEXTS = (1024, 32 * 1024, 128 * 1024)
PAGE_SIZES = (1, 16, 64)
STEPS, QUICK_STEPS = 1280, 128
REPEATS, QUICK_REPEATS = 7, 1


def main() -> None:
    """Measure all and print it."""
    parser = argparse.ArgumentParser(prog="python -m bench.engine.measuring", description=__doc__)
    parser.add_argument("--quick", action="store_true")
    asked = parser.parse_args()
    with redirect_stdout(sys.stderr):  # SGLang says things as it is imported
        found = _measure(CONTEXTS[:1] if asked.quick else CONTEXTS, quick=asked.quick)
    json.dump(found, sys.stdout, indent=1)


def _measure(contexts: Sequence[int], *, quick: bool) -> dict[str, Any]:
    torch: Any = import_module("torch")
    torch.set_num_threads(1)  # so that the processor time of one thread is all there is
    steps, admission = import_module("bench.engine.steps"), import_module("bench.engine.admission")
    cells = [(batch, context, size) for context in contexts for batch in BATCHES for size in PAGE_SIZES]
    decode = []
    for cell in cells:
        _say(f"decode steps: {cell[0]} rows of {cell[1]} tokens, pages of {cell[2]}")
        decode.append(steps.measure(*cell, QUICK_STEPS if quick else STEPS))
    once = []
    for tokens, size in ((tokens, size) for tokens in contexts for size in PAGE_SIZES):
        _say(f"admission of {tokens} tokens, pages of {size}")
        once.append(admission.measure(tokens, size, QUICK_REPEATS if quick else REPEATS))
    return {
        "made_with": {
            "torch": torch.__version__,
            "sglang": metadata.version("sglang"),
            "processors": os.cpu_count(),
            "load": round(os.getloadavg()[0], 1),
        },
        "model": {**vars(admission.MODEL), "token_bytes": admission.MODEL.token_bytes},
        "layers_in_memory": admission.LAYERS_HERE,
        "steps": decode,
        "admission": once,
        "memory": [admission.memory(size, admission.MODEL) for size in PAGE_SIZES],
    }


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    main()
