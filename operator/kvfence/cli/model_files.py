"""Reads a model's config.json, and the size of its weights from the index beside it. Either may come from anywhere."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

CONFIG = "config.json"
INDEX = "model.safetensors.index.json"
CONFIG_LIMIT = 1 << 20
"""Bytes. The longest config.json that was seen has some 300 KB."""
INDEX_LIMIT = 64 << 20
"""Bytes. It names each tensor; that of DeepSeek-R1 has 9 MB."""
WEIGHTS_LIMIT = 1 << 50
"""Bytes: a petabyte. What says that it is larger is wrong."""


class ModelFileError(ValueError):
    """A file that cannot be read as what it should be; the message says why."""


def read_config(path: Path) -> dict[str, Any]:
    """Return what a config.json says.

    Args:
        path: of the file, or of the folder of a model.

    Raises:
        ModelFileError: it is not there, or no such file.
    """
    return _object(path / CONFIG if path.is_dir() else path, CONFIG_LIMIT)


def weights_beside(path: Path) -> int | None:
    """Return the bytes of all weights, from the index beside a config.json; none when there is no index.

    Raises:
        ModelFileError: there is one, and it cannot be read.
    """
    index = (path if path.is_dir() else path.parent) / INDEX
    if not index.exists():
        return None
    metadata = _object(index, INDEX_LIMIT).get("metadata")
    size = metadata.get("total_size") if isinstance(metadata, dict) else None
    if isinstance(size, bool) or not isinstance(size, int | float) or not 0 < size < WEIGHTS_LIMIT:
        raise ModelFileError(f"{index}: it does not say the size of the weights (metadata.total_size)")
    return int(size)


def _object(path: Path, limit: int) -> dict[str, Any]:
    try:
        if not path.is_file():  # a pipe or a device might never end
            raise ModelFileError(f"{path}: there is no such file")
        with path.open("rb") as file:
            raw = file.read(limit + 1)
    except OSError as error:
        raise ModelFileError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError("that is no name of a file") from error  # it has a zero byte in it
    if len(raw) > limit:
        raise ModelFileError(f"{path} is larger than {limit:,} bytes, which no such file is")
    try:
        said = json.loads(raw.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{path} is no JSON, or JSON that no model has") from error
    if not isinstance(said, dict):
        raise ModelFileError(f"{path} is no JSON object")
    return said
