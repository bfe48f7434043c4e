"""What SGLang 0.1 to 0.5.23 says of its pools as it starts. Each pattern is matched at a record's first character.

Never counted, since they do not bound a request: window pools, state pools, the host tier, labelled pools of drafts
(`draft KV Cache is allocated`), and what memory would allow (`VA upper bound`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from kvfence.domain.diagnosis.seen import Product
from kvfence.engine.logs.facts import Kind, Said
from kvfence.engine.logs.numbers import DIGITS, END, count, without_last_word
from kvfence.engine.logs.process import DIED, NO_MEMORY
from kvfence.engine.logs.settings import read_server_args

if TYPE_CHECKING:
    from collections.abc import Callable

_N = rf"(?P<n>{DIGITS})"
_SUMMARY = re.compile(r"[Mm]ax_total_num_tokens?=")
_FIELD = re.compile(rf"(?<![\w.])(?P<name>[A-Za-z_]\w*)=(?P<value>{DIGITS}){END}")
_NAMES = frozenset({"max_total_num_tokens", "max_total_num_token", "Max_total_num_token", "Max_total_num_tokens"})

_POOLS: tuple[tuple[re.Pattern[str], Kind], ...] = (
    (re.compile(rf"(?:Virtual)?KV Cache is allocated\b[^#]{{0,80}}#tokens: {_N}{END}"), Kind.ALLOCATED),
    (re.compile(rf"KV Cache skipped \(no-op pool\)\. Logical #tokens: {_N}{END}"), Kind.ALLOCATED),
    (re.compile(rf"Post-capture KV sizing: KV cache allocated\b[^#]{{0,80}}#tokens: {_N}{END}"), Kind.RESIZED),
    (re.compile(rf"Post-capture KV sizing: full_layer_tokens={_N}{END}"), Kind.RESIZED),
    (re.compile(rf"Use sliding window memory pool\. full_layer_tokens={_N}{END}"), Kind.FULL),
    (re.compile(rf"Use sliding window memory pool \(all SWA\)\. swa_layer_tokens={_N}{END}"), Kind.FULL),
    (re.compile(rf"SWAKVPool mem usage: [^,]{{0,40}}, swa size: {DIGITS}, full size: {_N}{END}"), Kind.FULL),
    (re.compile(rf"DSv4 memory calculation: .{{0,200}}?\bfull_token={_N}{END}"), Kind.FULL),
    (re.compile(rf"DSV4 memory calculation: .{{0,200}}?\bfull_token={_N}{END}"), Kind.FULL_ESTIMATE),
    (re.compile(rf"DS[Vv]4 pool sizes: full={_N}{END}"), Kind.FULL_ESTIMATE),
)
"""What stands between `is allocated` and the count is the type alone; `#` ends it, so that no second pool is read.

DeepSeek V4 sizes its pools once for memory and again for --max-total-tokens since it is spelt with a great V.
"""

_HEADS: tuple[tuple[re.Pattern[str], Kind], ...] = (
    (re.compile(r"(?:Virtual)?KV Cache is allocated\b[^#]{0,80}#tokens"), Kind.ALLOCATED),
    (re.compile(r"KV Cache skipped \(no-op pool\)"), Kind.ALLOCATED),
    (re.compile(r"Post-capture KV sizing: (?:KV cache allocated|full_layer)"), Kind.RESIZED),
    (re.compile(r"Use sliding window memory pool"), Kind.FULL),
    (re.compile(r"SWAKVPool mem usage"), Kind.FULL),
    (re.compile(r"DS[Vv]4 (?:memory calculation|pool sizes)"), Kind.FULL_ESTIMATE),
)
"""How those begin: one of which the number cannot be read says that there was another number."""

_WARNING = re.compile(rf"KV pool holds (?P<n>{DIGITS}) tokens, fewer than --context-length (?P<c>{DIGITS})\.")
_LIMIT = re.compile(rf"Input length \({DIGITS} tokens\) exceeds the maximum allowed length \((?P<n>{DIGITS}) tokens\)")
_VERSION = re.compile(
    r"(?:sglang|SGLang)(?: version ?[:=]? ?|==)v?(?P<v>[0-9]+\.[0-9]+\.[0-9]+(?:\.?(?:post|rc|dev)[0-9]+)?)\s*$"
)

_WORDS: tuple[tuple[re.Pattern[str], Kind], ...] = (
    (re.compile(r"Load weight begins?\b"), Kind.LOADING),
    (re.compile(r"Memory pool end\b"), Kind.SETTLED),
    (re.compile(r"The server is fired up and ready to roll"), Kind.READY),
    (re.compile(r"(?:Mamba Cache|(?:Virtual)?KV Cache) is allocated|Allocating .{0,60}hierarchical KV"), Kind.OTHER),
    (re.compile(r"KV Cache VA upper bound|SWAKVPool VA upper bound"), Kind.BOUND),
)
_FAILURES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"(?:Scheduler|DataParallelController|TpModelWorkerClient|DetokenizerManager) hit an exception"),
     "a process of the engine hit an exception"),
    (re.compile(r"(?:RuntimeError: )?(?:Rank [0-9]+ s|S)cheduler died\b"), DIED),
    (re.compile(r"(?:\w+Error: )?Loaded weights leave no GPU memory"), NO_MEMORY),
    (re.compile(r"(?:\w+Error: )?Not enough memory\."), NO_MEMORY),
    (re.compile(r"Received sigquit from a child process"), "a process of the engine failed"),
)  # fmt: skip


def said(body: str, *, ended: bool) -> Said | None:
    """Return what a record of SGLang's says; none when it is none of these."""
    readers: tuple[Callable[[str], Said | None], ...] = (_summary, _pool, _warning, _limit, _server_args, _words)
    return next((found for reader in readers if (found := reader(body)) is not None), None) if ended else _cut(body)


def _cut(body: str) -> Said | None:
    """Return what a record says when its end may be missing: its last word counts for nothing."""
    kept = without_last_word(body)
    whole = said(kept, ended=True) if kept.strip() else None
    if whole is None or whole.kind is Kind.VERSION:
        return _words(body)
    return whole


def _summary(body: str) -> Said | None:
    if _SUMMARY.match(body) is None:
        return None
    pools, contexts, limits = set(), set(), set()
    for field in _FIELD.finditer(body[:2000]):
        value = count(field["value"])
        if field["name"] in _NAMES:
            pools.add(value)
        elif field["name"] == "context_len":
            contexts.add(value)
        elif field["name"] == "max_req_input_len":
            limits.add(value)
    if not pools or any(len(found) > 1 or None in found for found in (pools, contexts, limits)):
        return Said(Kind.SUMMARY, Product.SGLANG, garbled=True)
    pool, context, limit = (next(iter(found), None) for found in (pools, contexts, limits))
    return Said(Kind.SUMMARY, Product.SGLANG, pool=pool, context=context, limit=limit)


def _pool(body: str) -> Said | None:
    for pattern, kind in _POOLS:
        if (match := pattern.match(body)) is not None:
            pool = count(match["n"])
            return Said(kind, Product.SGLANG, pool=pool, garbled=pool is None)
    for pattern, kind in _HEADS:
        if pattern.match(body) is not None:
            return Said(kind, Product.SGLANG, garbled=True)
    return None


def _warning(body: str) -> Said | None:
    if (match := _WARNING.match(body)) is None:
        return None
    pool, context = count(match["n"]), count(match["c"])
    garbled = pool is None or context is None or pool >= context
    return Said(Kind.WARNING, Product.SGLANG, pool=pool, context=context, garbled=garbled)


def _limit(body: str) -> Said | None:
    match = _LIMIT.match(body)
    return None if match is None else Said(Kind.INPUT_LIMIT, Product.SGLANG, limit=count(match["n"]))


def _server_args(body: str) -> Said | None:
    if not body.startswith("server_args="):
        return None
    settings, keys = read_server_args(body.removeprefix("server_args="))
    return Said(Kind.SERVER_ARGS, Product.SGLANG, settings=settings, keys_shown=keys)


def _words(body: str) -> Said | None:
    if (version := _VERSION.match(body)) is not None:
        return Said(Kind.VERSION, Product.SGLANG, word=version["v"])
    for pattern, kind in _WORDS:
        if pattern.match(body) is not None:
            return Said(kind, Product.SGLANG)
    for pattern, word in _FAILURES:
        if pattern.match(body) is not None:
            return Said(Kind.FAILED, Product.SGLANG, word=word)
    return None
