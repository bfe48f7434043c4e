"""Counts what a piece of torch code asks of a device: operations, bytes, and places where the host would wait.

It runs on a CPU, where host and device are one, so it is told which tensors are the host's, and follows what is made of
them. What it says of waiting is from the semantics of torch for CUDA tensors, not from a device.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, fields
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

torch: Any = import_module("torch")
_leaves: Any = import_module("torch.utils._pytree").tree_leaves
_Mode: Any = import_module("torch.utils._python_dispatch").TorchDispatchMode
_Tagged: Any = import_module("torch.utils.weak").WeakTensorKeyDictionary

_WAITS = {"_local_scalar_dense", "nonzero", "is_nonzero", "equal", "masked_select", "_unique2", "unique_dim"}
_FREE = {"empty", "detach", "lift_fresh", "alias", "_unsafe_view", "empty_strided", "device"}
_ONLY_WRITES = {"fill_", "zero_"}


@dataclass
class Counts:
    """Of one or more runs of a piece of code."""

    operations: int = 0
    """Operations that a device would run; views are none."""
    host: int = 0
    """Operations on the host's own tensors."""
    copies: int = 0
    """Tensors of the host that would be brought to the device."""
    waits: int = 0
    """Operations whose result the host needs: it waits for the device."""
    numbers: int = 0
    """Python numbers assigned to single elements: `a[indices] = 0` or `a[0] = 0`. For a CUDA tensor torch makes a
    tensor of the host of the number and brings it over, which waits for the stream. `a[start:end] = 0` does not."""
    read: int = 0
    """Bytes."""
    written: int = 0
    """Bytes."""

    def __iadd__(self, other: Counts) -> Counts:
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))
        return self


@contextmanager
def counted(host: Sequence[Any] = ()) -> Iterator[Counts]:
    """Count what is done inside.

    Args:
        host: tensors that would be in the host's memory.
    """
    counts = Counts()
    counting = _Counting(counts, host)
    assign, to_list = torch.Tensor.__setitem__, torch.Tensor.tolist

    def assign_and_count(tensor: Any, index: Any, value: Any) -> None:
        counts.numbers += _is_number_to_elements(index, value)
        assign(tensor, index, value)

    def to_list_and_count(tensor: Any) -> Any:  # on a CPU no operation is handed on for this
        counts.waits += not counting.is_of_host(tensor)
        return to_list(tensor)

    torch.Tensor.__setitem__, torch.Tensor.tolist = assign_and_count, to_list_and_count
    try:
        with counting:
            yield counts
    finally:
        torch.Tensor.__setitem__, torch.Tensor.tolist = assign, to_list


def _is_number_to_elements(index: Any, value: Any) -> bool:
    parts = index if isinstance(index, tuple) else (index,)
    is_slice = any(isinstance(part, slice) for part in parts) and not any(torch.is_tensor(part) for part in parts)
    return not torch.is_tensor(value) and not is_slice


class _Counting(_Mode):  # type: ignore[misc]  # torch is not there when the types are checked
    def __init__(self, counts: Counts, host: Sequence[Any]) -> None:
        super().__init__()
        self._counts = counts
        self._host = _Tagged()
        self._brought = _Tagged()
        for tensor in host:
            self._host[tensor] = True

    def is_of_host(self, tensor: Any) -> bool:
        """Whether a tensor would be in the host's memory."""
        return tensor in self._host

    def __torch_dispatch__(self, function: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operation and count it."""
        kwargs = kwargs or {}
        out = function(*args, **kwargs)
        given, made = _tensors((args, kwargs)), _tensors(out)
        of_host = [tensor for tensor in given if tensor in self._host]
        if of_host and len(of_host) == len(given):
            self._counts.host += not function.is_view
            for tensor in made:
                self._host[tensor] = True
            return out
        for tensor in of_host:
            if tensor.dim() and tensor not in self._brought:
                self._brought[tensor] = True
                self._counts.copies += 1
        self._count(function, args, given, made)
        return out

    def _count(self, function: Any, args: Any, given: list[Any], made: list[Any]) -> None:
        name, counts = function.overloadpacket.__name__, self._counts
        if function.is_view or name in _FREE:
            return
        counts.operations += 1
        counts.waits += name in _WAITS or any(one.dtype == torch.bool for one in _indices(name, args))
        read, written = _moved(name, args, given, made)
        counts.read += read
        counts.written += written


def _indices(name: str, args: Any) -> list[Any]:
    return _tensors(args[1]) if name in ("index", "index_put_", "_index_put_impl_") else []


def _moved(name: str, args: Any, given: list[Any], made: list[Any]) -> tuple[int, int]:
    """Return how many bytes an operation reads and writes, of a table only the elements that are meant."""
    if name == "index":
        moved = _bytes(made)
        return _bytes(_indices(name, args)) + moved, moved
    if name in ("index_put_", "_index_put_impl_"):
        table, indices = args[0], _indices(name, args)
        row = table[(0,) * len(args[1])].numel() if len(args[1]) < table.dim() else 1
        places = torch.broadcast_shapes(*(one.shape for one in indices)).numel()
        return _bytes(indices) + _bytes([args[2]]), places * row * table.element_size()
    if name in _ONLY_WRITES:
        return 0, _bytes(made)
    if name == "copy_":
        return _bytes([args[1]]), _bytes(made)
    return _bytes(given), _bytes(made)


def _tensors(tree: Any) -> list[Any]:
    return [leaf for leaf in _leaves(tree) if torch.is_tensor(leaf)]


def _bytes(tensors: Sequence[Any]) -> int:
    return sum(one.numel() * one.element_size() for one in tensors)
