"""Command line of the demo."""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from e2e import progress
from e2e.cluster import stage
from e2e.cluster.layout import STAGE
from e2e.demo import client, ending, installation, scene
from e2e.demo.client import Client
from e2e.demo.ground import Ground, in_context, on_stage
from e2e.demo.playing import NotSeenError, Play
from e2e.demo.telling import Teller
from e2e.errors import StageError
from kvfence import __version__

NAMESPACE = "kvfence-demo"
SYSTEM_NAMESPACE = "kvfence-system"
INTERRUPTED = 130


def play(ground: Ground, given: scene.Scene, system_namespace: str, teller: Teller) -> bool:
    """Play all of it on a cluster; return whether all was seen.

    Raises:
        StageError: the cluster does not do what was asked.
    """
    kubectl = ground.kubectl
    teller.chapter("kvfence")
    with progress.step("installing kvfence with helm", "about 5 s"):
        installation.have_namespace(kubectl, given.namespace)
        installed = installation.have(ground, system_namespace, given.namespace)
        here = replace(given, operator=installed.namespace)
        client.start(kubectl, here.namespace, here.pool, installed.image)
    how = "was there already, and is used as it is" if installed.found else f"{__version__} is installed with helm"
    teller.say(f"kvfence {how}, in namespace {installed.namespace} of {ground.words}.")
    performance = Play(teller, ground, here)
    try:
        with Client(kubectl, here.namespace) as asking:
            done = _bring_up(performance, asking)
            performance.asking(asking)
        ending.show(teller, ground, here)
    except NotSeenError as error:
        ending.failed(teller, ground, here, performance.view, str(error))
        return False
    assert performance.view is not None
    ending.what_next(teller, ground, here, performance.view)
    as_it_came = done is scene.Applied.CREATED
    seen = "All of this was seen as it happened." if as_it_came else "It answered as it has to; it was there already."
    teller.say(f"\n{seen}")
    return True


def _bring_up(performance: Play, asking: Client) -> scene.Applied:
    teller, here = performance.teller, performance.scene
    teller.chapter(f"The pool {here.pool} comes up")
    teller.begin()
    done = scene.apply(performance.ground.kubectl, here)
    if done is not scene.Applied.CREATED:
        since = "" if done is scene.Applied.UNCHANGED else ", and it was changed since: now it is what its file says"
        teller.say(f"It was there already{since}. `{here.down}` first, to see it come up from nothing.")
    wants = f"it asks for {here.manifest['spec']['contextLength']['requestedTokens']:,} tokens of context"
    teller.line(f"{here.shown} is applied in namespace {here.namespace}: {wants}.")
    performance.coming_up(asking, again=done is not scene.Applied.CREATED)
    return done


def down(context: str, namespace: str, system_namespace: str, teller: Teller) -> None:
    """Remove what the demo made: the whole stage, or from a cluster that is there the demo's own objects.

    Raises:
        StageError: it could not be removed.
    """
    if not context:
        stage.down(STAGE)
        teller.say("The stage is down. What was built stays in the cache.")
        return
    with tempfile.TemporaryDirectory(prefix="kvfence-demo-") as home:
        for done in installation.remove(in_context(context, Path(home)), system_namespace, namespace):
            teller.say(done)


def show(
    context: Annotated[str, typer.Option(help="Use the cluster of this kubeconfig context; no stage is started.")] = "",
    namespace: Annotated[str, typer.Option(help="Of the pool.")] = NAMESPACE,
    system_namespace: Annotated[str, typer.Option(help="Of the operator, if there is none yet.")] = SYSTEM_NAMESPACE,
    pool: Annotated[Path, typer.Option(help="The pool's file.")] = scene.EXAMPLE,
    remove: Annotated[bool, typer.Option("--down", help="Remove what the demo left.")] = False,
) -> None:
    """Apply a pool and tell what happens until its Service answers.

    With --context: a cluster without kvfence needs images that it can pull, named by OPERATOR_IMAGE,
    KVFENCE_ENGINE_IMAGE and ROUTER_IMAGE. SGLANG_IMAGE is the engines', if it is not to be the one of the pool's file.
    """
    teller, began = Teller(), time.monotonic()
    called = f"make demo-down{f' CONTEXT={context}' if context else ''}"
    seen = False
    try:
        if remove:
            down(context, namespace, system_namespace, teller)
            return
        with tempfile.TemporaryDirectory(prefix="kvfence-demo-") as home:
            ground = in_context(context, Path(home)) if context else on_stage(Path(home))
            given = scene.read(pool, namespace, called, ground.sglang)
            seen = play(ground, given, system_namespace, teller)
    except (StageError, OSError) as error:  # OSError: a full disk, a folder that may not be written
        progress.say(f"error: {error}")
        sys.exit(2)
    except KeyboardInterrupt:
        progress.say(f"\nstopped; `{called}` removes what is there, and the same command again goes on from there")
        sys.exit(INTERRUPTED)
    teller.say(f"In all: {progress.clock(time.monotonic() - began)}")
    if not seen:
        sys.exit(1)


def main() -> None:
    """Run the command."""
    typer.run(show)
