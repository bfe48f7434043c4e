"""What servers say of themselves in JSON over HTTP: SGLang, vLLM, smg and sglang-router; as saved bodies and live."""

from __future__ import annotations

from kvfence.engine.bodies.inspecting import inspect
from kvfence.engine.bodies.reading import BODY_LIMIT, read

__all__ = ["BODY_LIMIT", "inspect", "read"]
