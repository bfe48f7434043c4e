"""What vLLM says of its pool as it starts, in its first engine (V0) and in the one of today (V1)."""

from __future__ import annotations

import ast
import re

from kvfence.domain.diagnosis.seen import Product
from kvfence.engine.logs.facts import Kind, Said
from kvfence.engine.logs.numbers import DIGITS, count, without_last_word
from kvfence.engine.logs.process import NO_CORE
from kvfence.engine.logs.settings import struck_out

_POOL = re.compile(rf"GPU KV cache size: (?P<n>{DIGITS}) tokens(?=[\s,.]|$)")
_BESIDE = re.compile(rf", Maximum concurrency for (?P<n>{DIGITS}) tokens per request: ")
"""Behind the pool, since 0.27."""

_CONTEXT = (
    re.compile(rf"Maximum concurrency for (?P<n>{DIGITS}) tokens per request: "),
    re.compile(rf"Using max model len (?P<n>{DIGITS})$"),
)
_BLOCKS = re.compile(rf"(?:# )?GPU blocks: (?P<n>{DIGITS}), ")
_BLOCK_SIZE = re.compile(r"\bblock_size['\"]?[=:] ?(?P<n>[0-9]{1,6})(?=[,)}\s])")
_SEQUENCE = re.compile(r"\bmax_seq_len=(?P<n>[0-9]{1,16})(?=, )")
_ENGINE = re.compile(r"Initializing an? (?:V[01] )?LLM engine \(v(?P<v>[0-9][\w.+]{1,60})\) with config: ")
_VERSION = re.compile(r"vLLM API server version v?(?P<v>[0-9]+\.[0-9]+[\w.+]{0,60})$")
_ARGS = re.compile(r"(?:non-default args|args): ")
_FAILED = re.compile(
    r"(?:\w+Error: )?(?:Engine core initialization failed|EngineCore failed to start|Engine process failed to start|"
    r"No available memory for the cache blocks|To serve at least one request with the model)"
)


def said(body: str, *, ended: bool) -> Said | None:
    """Return what a record of vLLM's says; none when it is none of these."""
    if not ended:
        body = without_last_word(body)
    if (found := _size(body)) is not None:
        return found
    if (engine := _ENGINE.match(body)) is not None:
        return _config(body, engine["v"])
    if (version := _VERSION.match(body)) is not None:
        return Said(Kind.VERSION, Product.VLLM, word=version["v"]) if ended else None
    if _ARGS.match(body) is not None:
        return _arguments(body)
    if _FAILED.match(body) is not None:
        return Said(Kind.FAILED, Product.VLLM, word=NO_CORE)
    return None


def _size(body: str) -> Said | None:
    if (match := _POOL.match(body)) is not None:
        pool, beside = count(match["n"]), _BESIDE.match(body, match.end())
        context = count(beside["n"]) if beside is not None else None
        garbled = pool is None or (beside is not None and context is None)
        return Said(Kind.ALLOCATED, Product.VLLM, pool=pool, context=context, garbled=garbled)
    if (match := _BLOCKS.match(body)) is not None:
        return Said(Kind.BLOCKS, Product.VLLM, pool=count(match["n"]))
    for pattern in _CONTEXT:
        if (match := pattern.match(body)) is not None:
            context = count(match["n"])
            return Said(Kind.CONTEXT, Product.VLLM, context=context, garbled=context is None)
    return None


def _config(body: str, version: str) -> Said:
    """Read the line in which the engine tells what it has made of its settings. It begins a start of the engine."""
    found = {count(match["n"]) for match in _SEQUENCE.finditer(body)}
    context = next(iter(found)) if len(found) == 1 else None
    return Said(Kind.SERVER_ARGS, Product.VLLM, context=context, word=version, garbled=len(found) > 1)


def _arguments(body: str) -> Said:
    text = body.partition(": ")[2]
    try:
        settings = ast.literal_eval(text) if text.startswith("{") else {}
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        settings = {}
    _, keys = struck_out(settings if isinstance(settings, dict) else {})
    sizes = {count(match["n"]) for match in _BLOCK_SIZE.finditer(body)}
    size = next(iter(sizes)) if len(sizes) == 1 else None
    return Said(Kind.BLOCK_SIZE, Product.VLLM, pool=size, keys_shown=keys)
