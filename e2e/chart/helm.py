"""Talk to Helm as a person does: through `helm`, with nothing of this machine's own Helm."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from e2e.commands import without_proxies
from e2e.errors import StageError

if TYPE_CHECKING:
    from e2e.cluster.stage import Stage

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "charts" / "kvfence"
RELEASE = "kvfence"


@dataclass(frozen=True, slots=True)
class Helm:
    """`helm` with the administrator's credentials of one cluster."""

    program: Path
    kubeconfig: Path
    home: Path
    """Where it keeps its own files."""

    @classmethod
    def of(cls, stage: Stage, home: Path) -> Helm:
        """The `helm` of a stage."""
        return cls(stage.helm, stage.layout.kubeconfig, home)

    def try_run(self, *arguments: str, seconds: float = 120.0) -> subprocess.CompletedProcess[str]:
        """Run it to its end, whatever that is."""
        folders = {f"HELM_{kind}_HOME": str(self.home / kind.lower()) for kind in ("CACHE", "CONFIG", "DATA")}
        plain = {name: value for name, value in without_proxies().items() if not name.startswith(("HELM_", "KUBE"))}
        return subprocess.run(
            [str(self.program), "--kubeconfig", str(self.kubeconfig), *arguments],
            env=plain | folders,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )

    def run(self, *arguments: str) -> str:
        """Run it and return what it printed.

        Raises:
            StageError: it failed, with what it said.
        """
        ran = self.try_run(*arguments)
        if ran.returncode != 0:
            raise StageError(f"`helm {' '.join(arguments)}` failed: {ran.stderr.strip()[-2000:]}")
        return ran.stdout

    def template(self, namespace: str, *settings: str, release: str = RELEASE) -> str:
        """Return the rendered chart. The settings are arguments such as `--set=logFormat=text`."""
        return self.run("template", release, str(CHART), "--namespace", namespace, *settings)

    def uninstall(self, namespace: str, release: str = RELEASE) -> None:
        """Remove a release, or what a failed installation left of it; fine when there is none."""
        self.run("uninstall", release, "--namespace", namespace, "--ignore-not-found")

    def install(self, namespace: str, *settings: str, release: str = RELEASE) -> str:
        """Install the chart into a namespace that is there, without waiting for pods."""
        return self.run("install", release, str(CHART), "--namespace", namespace, *settings)


def objects(rendered: str) -> list[dict[str, Any]]:
    """The objects of a rendered chart."""
    return [one for one in yaml.safe_load_all(rendered) if one]


def the(kind: str, rendered: str) -> dict[str, Any]:
    """The one object of a kind in a rendered chart."""
    (found,) = [one for one in objects(rendered) if one["kind"] == kind]
    return found
