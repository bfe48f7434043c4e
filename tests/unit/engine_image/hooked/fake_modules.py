"""What the hooks import of torch and SGLang when they run: numpy arrays as tensors, and functions that do little."""

from __future__ import annotations

import sys
import types
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest


class Tensor(np.ndarray[Any, Any]):
    """A numpy array with what the hooks use of a tensor."""

    def long(self) -> Tensor:
        """Return it; it is of 64 bits already."""
        return self

    def nonzero(self) -> Any:
        """Return the places, one row for each."""
        return np.argwhere(np.asarray(self)).view(Tensor)

    def copy_(self, other: Any) -> None:
        """Take over other values."""
        self[...] = other

    def to(self, *_where: Any, **_how: Any) -> Tensor:
        """Return it; there is no other device."""
        return self

    def element_size(self) -> int:
        """Return the bytes of a number."""
        return int(self.dtype.itemsize)


def tensor(values: Any, dtype: Any = np.int64) -> Any:
    """Return a new one."""
    return np.array(values, dtype).view(Tensor)


def put_in_place(role: str, patch: pytest.MonkeyPatch) -> None:
    """Put in place what the hooks import when they run, in an engine of a role."""

    def tensors(make: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, dtype=np.int64, device=None: tensor(make(*args), dtype)

    def abort(request: Any, why: str, status_code: int) -> None:
        request.to_finish = (why, status_code)

    parts: dict[str, dict[str, Any]] = {
        "torch": {
            "int64": np.int64,
            "int32": np.int32,
            "int16": np.int16,
            "uint8": np.uint8,
            "zeros": tensors(np.zeros),
            "arange": tensors(np.arange),
            "as_tensor": tensors(np.array),
            "tensor": tensors(np.array),
            "isin": lambda *args: np.isin(*args).view(Tensor),
            "distributed": types.SimpleNamespace(ReduceOp=types.SimpleNamespace(MAX="max")),
        },
        "sglang.srt.runtime_context": {"get_disagg": lambda: types.SimpleNamespace(disaggregation_mode=role)},
        "sglang.srt.disaggregation.utils": {
            "all_reduce_flags": lambda flags, _group, _most: flags,
            "prepare_abort": abort,
            "_is_fake_transfer": lambda _request: False,
        },
        "sglang.srt.disaggregation.checksum": {"is_health_check_req": lambda _request: False},
        "sglang.srt.managers.schedule_batch": {"FINISH_ABORT": lambda why, status, _kind: (why, status)},
        "sglang.srt.mem_cache.common": {},
    }
    for name, fields in parts.items():
        module = types.ModuleType(name)
        vars(module).update(fields)
        patch.setitem(sys.modules, name, module)
