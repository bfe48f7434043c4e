"""Command line of the stage."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Annotated, Optional

import typer

from e2e.cluster import golang, images, node, programs, stage
from e2e.cluster.layout import API_ONLY, STAGE, Layout, Switches
from e2e.errors import StageError
from e2e.progress import say

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="A local one-node Kubernetes from real parts: what end-to-end tests run on. Needs root on Linux.",
)
ApiOnly = Annotated[bool, typer.Option("--api-only", help="The API alone: etcd, API server, controller-manager.")]


def _layout(api_only: bool) -> Layout:
    return API_ONLY if api_only else STAGE


def _there(layout: Layout) -> stage.Stage:
    found = stage.running(layout)
    if not found:
        raise StageError(f"stage {layout.name} is not up: run `python -m e2e.cluster up`")
    return found


@app.command()
def build() -> None:
    """Build and download all that the stage needs; what is there already is not built again."""
    stage.Parts.build(STAGE)


@app.command()
def up(
    dns: Annotated[bool, typer.Option(help="Names of Services resolve in pods; not with --api-only.")] = True,
    network_policy: Annotated[bool, typer.Option(help="NetworkPolicy drops packets; not with --api-only.")] = True,
    audit: Annotated[bool, typer.Option(help="Every API request is written to the audit log.")] = False,
    api_only: ApiOnly = False,
) -> None:
    """Bring the stage up, or switch one that is up."""
    layout = _layout(api_only)
    on = layout.with_node  # what a pod would use is nothing without one
    stage.up(layout, Switches(dns=dns and on, network_policy=network_policy and on, audit=audit))
    say(f"    up: export KUBECONFIG={layout.kubeconfig}")


@app.command()
def down(api_only: ApiOnly = False) -> None:
    """Remove the stage, whatever is left of it. The image store and the built programs stay."""
    stage.down(_layout(api_only))


@app.command()
def status(api_only: ApiOnly = False) -> None:
    """Say what runs; exit 0 only if the stage is up and whole."""
    layout = _layout(api_only)
    found = node.find(layout)
    if not found:
        print(f"stage {layout.name} is not up")
        raise typer.Exit(1)
    there = stage.running(layout)
    print(f"stage {layout.name}: {'up' if there else 'not whole: run `up`'}")
    for name, pid in sorted(found.processes().items()):
        print(f"  {name:<26} pid {pid}")
    if not there:
        raise typer.Exit(1)
    on = [name for name in ("dns", "network_policy", "audit") if getattr(there.switches, name)]
    print(f"  switches: {', '.join(on) or 'none'}\n  kubeconfig: {layout.kubeconfig}")


@app.command()
def kubeconfig(api_only: ApiOnly = False) -> None:
    """Print the path of the administrator's kubeconfig."""
    print(_there(_layout(api_only)).layout.kubeconfig)


@app.command(name="load-image")
def load_image(
    source: Annotated[Path, typer.Argument(help="An image archive, or with --base a folder to lay over an image.")],
    base: Annotated[Optional[str], typer.Option(help="Image on the node that the folder goes on.")] = None,  # noqa: UP045
    name: Annotated[Optional[str], typer.Option(help="Name of the new image, with --base.")] = None,  # noqa: UP045
    at: Annotated[str, typer.Option(help="Where the folder's content lies in the image.")] = "/",
) -> None:
    """Put an image on the node: a whole archive, or a folder as a thin layer on an image that is there."""
    there = _there(STAGE)
    if not base:
        there.images.load_archive_file(source)
    elif not name:
        raise StageError("--base makes a new image: give it a --name, with a tag other than latest")
    elif not source.is_dir():
        raise StageError(f"{source} is not a folder: --base takes one, an archive goes without --base")
    else:
        there.images.load_thin(name, base, images.layer(source, at))


@app.command()
def logs(
    program: Annotated[str, typer.Argument(help="Such as kubelet; without it, the names of all.")] = "",
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as the log grows.")] = False,
    api_only: ApiOnly = False,
) -> None:
    """Print the log of a program of the stage."""
    folder = _layout(api_only).logs
    names = sorted(path.stem for path in folder.glob("*.log"))
    if not program:
        print("\n".join(names))
    elif program not in names:
        raise StageError(f"no log of {program!r}; there are: {', '.join(names) or 'none, the stage was never up'}")
    elif follow:
        subprocess.run(["tail", "-n", "50", "-f", str(folder / f"{program}.log")], check=False)
    else:
        print(programs.tail(folder / f"{program}.log", lines=200))


@app.command(name="kubernetes-version")
def kubernetes_version(
    version: Annotated[str, typer.Argument(help="Such as v1.37.3; without it, the present one.")] = "",
) -> None:
    """Print the Kubernetes version of the stage, or change it."""
    if version:
        golang.change_kubernetes_version(version)
    print(golang.kubernetes_version())


def main() -> None:
    """Run the command; an error that a person can act on is one message and exit code 1, not a traceback."""
    try:
        app(prog_name="python -m e2e.cluster")
    except (StageError, OSError) as error:  # OSError: a full disk, a folder that may not be written
        say(f"error: {error}")
        sys.exit(1)
