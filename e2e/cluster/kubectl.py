"""Talk to the cluster as its users do: through `kubectl`."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from e2e.commands import without_proxies
from e2e.errors import StageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Kubectl:
    """`kubectl` with the administrator's credentials of one cluster."""

    program: Path
    kubeconfig: Path

    def try_run(self, *arguments: str, given: str = "", seconds: float = 120.0) -> subprocess.CompletedProcess[str]:
        """Run it to its end, whatever that is; a call that takes too long ends with exit code 124."""
        command = [str(self.program), "--kubeconfig", str(self.kubeconfig), *arguments]
        try:
            return subprocess.run(
                command,
                env=without_proxies(),
                input=given,
                capture_output=True,
                text=True,
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(command, 124, "", f"no end in {seconds:.0f} s")

    def run(self, *arguments: str, given: str = "", seconds: float = 120.0) -> str:
        """Run it and return what it printed.

        Raises:
            StageError: it failed, with what it said.
        """
        ran = self.try_run(*arguments, given=given, seconds=seconds)
        if ran.returncode != 0:
            raise StageError(f"`kubectl {' '.join(arguments)}` failed: {ran.stderr.strip()[-2000:]}")
        return ran.stdout

    def get(self, *arguments: str) -> dict[str, Any]:
        """`kubectl get ...` as an object, or as a List."""
        found: dict[str, Any] = json.loads(self.run("get", *arguments, "--output", "json"))
        return found

    def apply(self, objects: Sequence[dict[str, Any]]) -> None:
        """Apply objects, server-side, as whoever owns them."""
        bundle = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
        self.run("apply", "--server-side", "--force-conflicts", "--filename", "-", given=bundle)

    def ready(self) -> bool:
        """Whether the API server says that it is."""
        return self.try_run("get", "--raw", "/readyz", seconds=5.0).returncode == 0
