"""What the functions of SGLang that are hooked look like: a digest of the source of each, for each release.

A hook relies on what the function around it does. An image whose SGLang was changed in one of these places, by a patch
or a vendor, says the same version; it does not start, rather than have hooks that mean something else there.

usage: python -m kvfence_engine.sources
       (where SGLang is installed: prints the digests of its functions)
"""

from __future__ import annotations

import hashlib
import inspect
import pkgutil
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

PACKAGE = "sglang.srt."
_DIGITS = 12

OF_0_5_23 = {
    "managers.schedule_batch.Req.__init__": "95516b226df1",
    "entrypoints.http_server._setup_and_run_http_server": "7b68d6a8a809",
    "managers.tokenizer_manager.TokenizerManager.generate_request": "894e0b7b0450",
    "managers.tokenizer_manager.TokenizerManager._validate_one_request": "913d991d7010",
    "utils.common.build_server_info": "8f76f34f3516",
    "managers.scheduler.Scheduler.__init__": "a4a5297acc17",
    "managers.scheduler.Scheduler.set_internal_state": "4d8052ccd9cf",
    "managers.scheduler.Scheduler.get_internal_state": "babe50a61594",
    "mem_cache.common.release_kv_cache": "90e19434d1fa",
    "mem_cache.allocator.paged.PagedTokenToKVPoolAllocator._release_page_ids": "9a95578e3fc0",
    "mem_cache.allocator.token.TokenToKVPoolAllocator.free": "2d0c243cc833",
    "mem_cache.allocator.paged.PagedTokenToKVPoolAllocator.clear": "078f110ecddf",
    "mem_cache.allocator.token.TokenToKVPoolAllocator.clear": "75dd6c1a1749",
    "mem_cache.allocation.alloc_for_extend": "79929fe4dbc6",
    "disaggregation.prefill.SchedulerDisaggregationPrefillMixin.process_batch_result_disagg_prefill": "db57f1d7fe7d",
    "disaggregation.utils.MetadataBuffers.set_buf": "2eebbd13a3b8",
    "disaggregation.decode.DecodePreallocQueue._pre_alloc": "d84173224048",
    "disaggregation.decode.DecodeTransferQueue._commit_transfer_to_req": "138dfa83cf30",
    "disaggregation.decode.DecodeTransferQueue.resolve_deferred_releases": "11abf1156672",
    "mem_cache.common.restore_kv_cache": "2005623dc692",
    "disaggregation.decode.SchedulerDisaggregationDecodeMixin._verify_kv_checksums": "31961ba09745",
    "mem_cache.allocation.alloc_for_decode": "7ce46f3b7f4b",
}
"""By target, without `PACKAGE` before it; printed by the command above. An engine whose hooks differ does not start."""


def digest(function: Callable[..., Any]) -> str:
    """Return 12 hexadecimal digits of the SHA-256 of a function's source, whatever is wrapped around it.

    Raises:
        OSError, TypeError: when there is no source.
    """
    return hashlib.sha256(inspect.getsource(inspect.unwrap(function)).encode()).hexdigest()[:_DIGITS]


def changed(targets: Iterable[str], known: dict[str, str]) -> str | None:
    """Return why hooks at these places cannot be relied on; none when all are as they are known.

    Args:
        targets: dotted paths of functions.
        known: digests of a release.
    """
    for target in targets:
        try:
            found = digest(pkgutil.resolve_name(target))
        except (OSError, TypeError):
            return f"the source of {target} is not there: use an image that has SGLang with its Python files"
        if found != known.get(target.removeprefix(PACKAGE)):
            return f"{target} is not what SGLang's release has there: use an image with SGLang as it was released"
    return None


if __name__ == "__main__":
    for name in OF_0_5_23:
        sys.stdout.write(f'    "{name}": "{digest(pkgutil.resolve_name(PACKAGE + name))}",\n')
