"""How the demo ends: with what kubectl shows and what to try next, or with what stands in the way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from e2e.demo import client, installation
from e2e.demo.view import GATES
from e2e.demo.watch import POOLS

if TYPE_CHECKING:
    from e2e.demo.ground import Ground
    from e2e.demo.scene import Scene
    from e2e.demo.telling import Teller
    from e2e.demo.view import View


def show(teller: Teller, ground: Ground, scene: Scene) -> None:
    """Show the pool as kubectl does.

    Raises:
        StageError: kubectl failed.
    """
    teller.chapter("What Kubernetes shows")
    where = ("--namespace", scene.namespace)
    wide = ("get", POOLS, *where, "--output", "wide")
    teller.shell(" ".join((ground.typed, *wide)), ground.kubectl.run(*wide))
    describe = ("describe", POOLS, scene.pool, *where)
    described = ground.kubectl.run(*describe)
    teller.shell(f"{' '.join((ground.typed, *describe))}    (conditions and events)", shortened(described))


def shortened(described: str) -> str:
    """Return of what `kubectl describe` printed the conditions, a line for each, and the events as they are."""
    lines = described.splitlines()
    begin = next((at for at, line in enumerate(lines) if line.strip() == "Conditions:"), len(lines))
    events = next((at for at, line in enumerate(lines) if line.startswith("Events:")), len(lines))
    shown, one = ["  Conditions:"] if begin < len(lines) else [], {}
    for line in lines[begin + 1 : events]:
        if not line.startswith("    "):
            break
        name, _, value = line.strip().partition(":")
        one[name] = value.strip()
        if name == "Type":  # kubectl sorts the fields of a condition: its type is the last
            shown.append(f"    {one['Type']:<18} {one['Status']:<6} {one['Reason']:<20} {one.get('Message', '')}")
            one = {}
    return "\n".join([*shown, *lines[events:]])


def what_next(teller: Teller, ground: Ground, scene: Scene, view: View) -> None:
    """Say what a person can try now."""
    kubectl = f"{ground.typed} --namespace {scene.namespace}"
    prefill = next((pod.name for pod in view.engines if pod.role == "prefill"), "POD")
    ask = f"{kubectl} exec {client.NAME} -- python3 {client.FOLDER}/{client.SCRIPT.name}"
    question = f'{{"model": "{scene.model}", "prompt": "abc abc ab", "max_tokens": 4, "temperature": 0}}'
    patch = f"{kubectl} patch {POOLS} {scene.pool} --type merge --patch"
    tries = {
        "Ask it yourself, through its Service:": (f"{ask} /v1/completions '{question}'",),
        "Look for the router's control plane there; it is not to be found:": (f"{ask} /workers",),
        "Insist on all that was asked for. The pool is not Ready then and says what to change; what is admitted serves "
        "on, and CapToFit takes it back:": (
            f"""{patch} '{{"spec": {{"contextLength": {{"policy": "RequireFit"}}}}}}'""",
        ),
        "Ask for another context. That is a new revision: its engines start, and are measured and proven anew before "
        "anybody is let in:": (f"""{patch} '{{"spec": {{"contextLength": {{"requestedTokens": 512}}}}}}'""",),
        "Kill an engine's processes, and watch. The new boot stays closed until it is measured and proven:": (
            f"{kubectl} exec {prefill} --container engine -- sh -c 'kill -9 -1'",
            f"{kubectl} get {POOLS} {scene.pool} --watch",
        ),
        "See what a pool can say:": (f"{ground.typed} explain inferencepools.spec --api-version kvfence.io/v1alpha1",),
    }
    teller.chapter("What to try next")
    if ground.shell:
        teller.say("In this shell first:")
        teller.command(ground.shell)
    for what, commands in tries.items():
        teller.say(what)
        for command in commands:
            teller.command(command)
    teller.say("Remove all of it:")
    teller.command(scene.down)


def failed(teller: Teller, ground: Ground, scene: Scene, view: View | None, why: str) -> None:
    """Say what was not seen, with the words of the conditions, the pods, and the operator's log."""
    teller.chapter("The demo did not get to its end")
    teller.say(why, style="bold red")
    if view is None:
        teller.say("The API has said nothing about the pool yet.")
    else:
        for name in GATES:
            found = view.conditions.get(name)
            if found is None:
                teller.say(f"  {name}: not judged yet")
            elif found.status != "True":
                teller.say(f"  {name} is {found.status} ({found.reason}): {found.message}")
        for pod in view.pods:
            teller.say(f"  pod {pod.name}: {pod.words}, restarts {pod.restarts}")
    if scene.operator:
        teller.say("The operator, and the end of its log:")
        for line in installation.last_words(ground.kubectl, scene.operator, f"{scene.namespace}/{scene.pool}"):
            teller.say(f"  {line}")
    teller.say(f"It is left as it is, to be looked at. `{scene.down}` removes it.")
