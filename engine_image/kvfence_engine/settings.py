"""What the launcher tells the processes of the engine, in their environment."""

from __future__ import annotations

PLUGIN = "kvfence"
"""Name of the plugin, as SGLang knows it by its entry point."""

STATE = "KVFENCE_STATE"
"""Variable with the path of the shared state."""

POOL = "KVFENCE_POOL"
"""Variable with the UID of the InferencePool."""

INTEGRITY = "KVFENCE_INTEGRITY"
"""Variable with the modes of the defences of the KV; see `integrity.modes`."""
