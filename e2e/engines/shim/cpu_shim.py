"""FOR THE STAGE ONLY: what SGLang takes for granted on a GPU machine and a CPU machine lacks, each with a stand-in.

- `triton`: imported everywhere, used nowhere on this path. Placeholders, also beside a torch that brings the real one.
- `sgl_kernel`: its CPU library is in no published wheel. One operation in Python; any other raises when it is called.
- `torchvision`: the published wheel is a CUDA build. Two schemas that its library would declare are declared here.
- Mooncake's sender: one attribute, so that page indices take SGLang's own host path instead of pinned CUDA memory.
- The KV checksum: only the digest, over host memory. Asking for it, comparing and aborting stay SGLang's own.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import sys
import zlib
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Placeholder(ModuleType):
    """A module in which every name exists. A capitalised name is an empty class, any other a placeholder again."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__ = []  # what makes it a package

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made: Any = Placeholder(f"{self.__name__}.{name}")
        if name[0].isupper():  # may be a base class or stand in an annotation
            made = type(name, (), {"__module__": self.__name__, "__init__": _accept_anything})
        setattr(self, name, made)
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Serve as a decorator, with or without arguments, that leaves the function as it is."""
        if len(args) == 1 and callable(args[0]) and not kwargs:
            return args[0]
        return _unchanged


def _accept_anything(_self: object, *_args: Any, **_kwargs: Any) -> None:
    """Be the constructor of every placeholder class."""


def _unchanged(function: Any) -> Any:
    return function


class StandInFinder(MetaPathFinder, Loader):
    """Answers the import of one name, and of all below it if it is a package, with a stand-in."""

    def __init__(
        self, root: str, make: Callable[[str], ModuleType], fill: Callable[[Any], None], *, package: bool
    ) -> None:
        self._root, self._make, self._fill, self._package = root, make, fill, package

    def find_spec(self, name: str, _path: Sequence[str] | None, _target: ModuleType | None = None) -> ModuleSpec | None:
        """Claim the name if it is ours."""
        ours = name == self._root or (self._package and name.startswith(self._root + "."))
        return ModuleSpec(name, self, is_package=self._package) if ours else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Make the empty stand-in."""
        return self._make(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Give the root what is really called."""
        if module.__name__ == self._root:
            self._fill(module)


def _fill_triton(triton: Any) -> None:
    triton.__version__ = "3.4.0"
    triton.cdiv = lambda a, b: -(a // -b)
    triton.next_power_of_2 = lambda n: 1 << (n - 1).bit_length() if n > 0 else 1


def _fill_sgl_kernel(sgl_kernel: Any) -> None:
    def absent(name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)

        def operation(*_args: Any, **_kwargs: Any) -> Any:
            raise NotImplementedError(f"sgl_kernel.{name} has no stand-in on the stage")

        return operation

    sgl_kernel.__version__ = "0.0.0+stage"
    sgl_kernel.assign_req_to_token_pool_cpu = _assign_req_to_token_pool
    sgl_kernel.__getattr__ = absent  # SGLang imports many names and calls none of the others without AMX


def _assign_req_to_token_pool(rows: Any, table: Any, starts: Any, ends: Any, slots: Any, _width: int) -> None:
    """Write each request's new KV slots into its row of the table, one request after the other."""
    taken = 0
    for row, start, end in zip(rows.tolist(), starts.tolist(), ends.tolist(), strict=True):
        table[row, start:end] = slots[taken : taken + end - start].to(table.dtype)
        taken += end - start


def _before_torchvision() -> None:
    torch: Any = importlib.import_module("torch")
    if torch.version.cuda:  # beside the CUDA torch its library loads and declares them itself
        return
    library = torch.library.Library("torchvision", "DEF")
    for operation in ("nms", "qnms"):
        library.define(f"{operation}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    _kept.append(library)


_kept: list[object] = []
"""Torch withdraws a declaration when the object that made it is collected."""


def _after_mooncake(connection: Any) -> None:
    connection.MooncakeKVSender.supports_host_tensor_indices = False


def _after_checksum(checksum: Any) -> None:
    def compute(self: Any, kv_page_indices_gpu: Any, state_indices_gpu: Any = None) -> int:
        digest = 1
        parts = [(self._kv_data_ptrs, self._kv_item_lens, kv_page_indices_gpu)]
        if self._state_data_ptrs:
            parts.append((self._state_data_ptrs, self._state_item_lens, state_indices_gpu))
        for buffers, sizes, pages in parts:
            for buffer, size in zip(buffers, sizes, strict=True):
                for page in pages.tolist():
                    digest = zlib.adler32(ctypes.string_at(buffer + page * size, size), digest)
        return digest

    checksum.KvChecksumComputer.compute = compute


class HookFinder(MetaPathFinder):
    """Runs a function right before or right after a real module is executed for the first time."""

    def __init__(self, before: dict[str, Callable[[], None]], after: dict[str, Callable[[Any], None]]) -> None:
        self._before, self._after = before, after
        self._asking: set[str] = set()

    def find_spec(self, name: str, _path: Sequence[str] | None, _target: ModuleType | None = None) -> ModuleSpec | None:
        """Let the other finders find the module, and see to it that the hook runs."""
        if name in self._before:
            self._before.pop(name)()
        hook = self._after.get(name)
        if hook is None or name in self._asking:
            return None
        self._asking.add(name)  # the question below comes back to us
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._asking.discard(name)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def execute_and_hook(module: ModuleType) -> None:
            execute(module)
            hook(module)

        spec.loader.exec_module = execute_and_hook  # type: ignore[method-assign]
        return spec


def install() -> None:
    """Put all stand-ins in front of the usual way of importing."""
    sys.meta_path[:0] = [
        StandInFinder("triton", Placeholder, _fill_triton, package=True),
        StandInFinder("sgl_kernel", ModuleType, _fill_sgl_kernel, package=False),
        HookFinder(
            before={"torchvision": _before_torchvision},
            after={
                "sglang.srt.disaggregation.mooncake.conn": _after_mooncake,
                "sglang.srt.disaggregation.checksum": _after_checksum,
            },
        ),
    ]
