"""Have kvfence on a cluster, installed by its chart with `helm`; and remove what the demo made, and only that."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from e2e.chart import crd
from e2e.chart.crd import CRD_NAME
from e2e.chart.helm import CHART, RELEASE
from e2e.cluster.waiting import wait_for
from e2e.demo.ground import split, without_images
from e2e.errors import StageError

if TYPE_CHECKING:
    from e2e.chart.helm import Helm
    from e2e.cluster.kubectl import Kubectl
    from e2e.demo.ground import Ground, Images

DEPLOYMENT = "kvfence-operator"
MADE_LABEL = "kvfence.io/made-by"
MADE = "demo"
"""On the namespaces that the demo has made: what it may remove again."""
READY_SECONDS = 180
GONE_SECONDS = 180
DEPLOYED = "deployed"
LOG_LINES_READ, LOG_LINES_SHOWN, LOG_LINE_CHARACTERS = 200, 8, 240


@dataclass(frozen=True)
class Installed:
    """An operator that runs, and that looks after the demo's namespace."""

    namespace: str
    found: bool
    """It was there before, and not by the demo."""
    image: str
    """Its own."""


def have(ground: Ground, system_namespace: str, namespace: str) -> Installed:
    """Have an operator for `namespace`: one that is there is used as it is, else the chart is installed.

    Args:
        ground: where.
        system_namespace: where an operator goes that is not there yet.
        namespace: of the pools.

    Raises:
        StageError: it cannot be installed, or is not ready in time.
    """
    at = _found(ground, system_namespace, namespace)
    if at is None:
        _install(ground, system_namespace)
    where = at or system_namespace
    _wait_until_ready(ground.kubectl, where)
    path = "--output=jsonpath={.spec.template.spec.containers[0].image}"
    image = ground.kubectl.run("get", "deployment", DEPLOYMENT, "--namespace", where, path)
    return Installed(where, at is not None, image)


def have_namespace(kubectl: Kubectl, name: str) -> None:
    """Have a namespace of the demo's own.

    Raises:
        StageError: one of this name is there that the demo did not make.
    """
    found = _namespace(kubectl, name)
    if found and found["status"]["phase"] == "Terminating":
        wait_for(f"namespace {name} to be gone", lambda: _namespace(kubectl, name) is None, GONE_SECONDS, every=1.0)
        found = None
    if found is None:
        meta = {"name": name, "labels": {MADE_LABEL: MADE}}
        kubectl.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": meta}])
    elif not _is_ours(found):
        raise StageError(f"there is a namespace {name} that the demo did not make: give another name with --namespace")


def remove(ground: Ground, system_namespace: str, namespace: str) -> list[str]:
    """Remove what the demo has made. What others have made stays, and so does what their pools need.

    Returns:
        What was done, in sentences.
    """
    kubectl, done = ground.kubectl, []
    if _is_ours(_namespace(kubectl, namespace)):
        kubectl.run("delete", "namespace", namespace, seconds=GONE_SECONDS)
        done.append(f"Namespace {namespace} is gone, and the pool with it.")
    if _is_ours(_namespace(kubectl, system_namespace)):
        done.append(_remove_operator(ground, system_namespace))
    return done or ["Nothing of the demo is there."]


def pools(kubectl: Kubectl) -> list[str]:
    """Names of all pools of the cluster, as `namespace/name`."""
    if kubectl.try_run("get", "crd", CRD_NAME).returncode != 0:
        return []
    metas = [pool["metadata"] for pool in kubectl.get(CRD_NAME, "--all-namespaces")["items"]]
    return sorted(f"{meta['namespace']}/{meta['name']}" for meta in metas)


def values(images: Images) -> list[str]:
    """Return the chart's values for these images, as arguments for helm."""
    (operator, tag), (router, router_tag), (engine, version) = map(
        split, (images.operator, images.router, images.engine)
    )
    given = {
        "image.repository": operator,
        "image.tag": tag,
        "routerImage.repository": router,
        "routerImage.tag": router_tag,
        "engineImage.repository": engine,
        "engineImage.pluginVersion": version,
    }
    if images.operator_digest:  # a new image under the same name starts a new pod
        given[r"podAnnotations.kvfence\.io/image"] = images.operator_digest
    return [f"--set-string={name}={value}" for name, value in given.items()]


def _found(ground: Ground, system_namespace: str, namespace: str) -> str | None:
    """Where an operator is that somebody else has installed and that looks after this namespace."""
    for at, watched in _releases(ground.helm).items():
        if _is_ours(_namespace(ground.kubectl, at)):
            continue
        if not watched or namespace in watched:
            return at
        if at == system_namespace:
            raise StageError(
                f"the kvfence in namespace {at} looks after {', '.join(watched)} only. Add {namespace} to its "
                "watchNamespaces, or give another place with --system-namespace"
            )
    return None


def _releases(helm: Helm) -> dict[str, list[str]]:
    """The namespaces in which kvfence is installed, each with those that it looks after; none of them: all."""
    found: dict[str, list[str]] = {}
    for release in json.loads(helm.run("list", "--all-namespaces", "--output", "json")):
        at = str(release["namespace"])
        if str(release["chart"]).startswith("kvfence-"):
            given = json.loads(helm.run("get", "values", release["name"], "--namespace", at, "--all", "--output=json"))
            found[at] = list(given.get("watchNamespaces") or [])
    return found


def _install(ground: Ground, namespace: str) -> None:
    if ground.images is None:
        raise without_images()
    have_namespace(ground.kubectl, namespace)
    status = _release_status(ground.helm, namespace)
    if status not in {None, DEPLOYED}:  # a run that was stopped; helm goes on from nothing only
        ground.helm.uninstall(namespace)
    crd = [] if _crd_is_ours(ground.kubectl, namespace) else ["--set=crds.enabled=false"]
    command = ("upgrade", "--install", RELEASE, str(CHART), "--namespace", namespace)
    ground.helm.run(*command, *values(ground.images), *crd)


def _release_status(helm: Helm, namespace: str) -> str | None:
    ran = helm.try_run("status", RELEASE, "--namespace", namespace, "--output", "json")
    return str(json.loads(ran.stdout)["info"]["status"]) if ran.returncode == 0 else None


def _crd_is_ours(kubectl: Kubectl, namespace: str) -> bool:
    """Whether the chart may install the CRD: it is not there, or this release's."""
    ran = kubectl.try_run("get", "crd", CRD_NAME, "--output", "json")
    if ran.returncode != 0:
        return True
    owner = json.loads(ran.stdout)["metadata"].get("annotations") or {}
    names = (owner.get("meta.helm.sh/release-name"), owner.get("meta.helm.sh/release-namespace"))
    return names == (RELEASE, namespace)


def _wait_until_ready(kubectl: Kubectl, namespace: str) -> None:
    arguments = ("rollout", "status", f"deployment/{DEPLOYMENT}", "--namespace", namespace)
    ran = kubectl.try_run(*arguments, f"--timeout={READY_SECONDS}s", seconds=READY_SECONDS + 10)
    if ran.returncode != 0:
        words = "\n".join([ran.stderr.strip(), *last_words(kubectl, namespace)])
        raise StageError(f"the operator does not become ready: {words}")


def last_words(kubectl: Kubectl, namespace: str, about: str = "") -> list[str]:
    """Return the state of the operator's pods and the end of its log, a line for each entry.

    Args:
        kubectl: for the cluster.
        namespace: of the operator.
        about: lines that name this come first, where there are any.
    """
    where = ("--namespace", namespace, f"--selector=app.kubernetes.io/name={DEPLOYMENT}")
    pods = kubectl.try_run("get", "pods", *where)
    log = kubectl.try_run("logs", *where, f"--tail={LOG_LINES_READ}")
    lines = [log_line(line) for line in (log.stdout or log.stderr).splitlines()]
    ours = [line for line in lines if about and about in line]
    return [*(pods.stdout or pods.stderr).splitlines(), *(ours or lines)[-LOG_LINES_SHOWN:]]


def log_line(line: str) -> str:
    """Return what an entry of the operator's log says, without its traceback."""
    try:
        entry = json.loads(line)
        said = f"{entry['timestamp'][11:19]} {entry['severity']}: {entry['message']}"
    except (ValueError, KeyError, TypeError):  # in text, or kubectl's own words
        said = line
    return said if len(said) <= LOG_LINE_CHARACTERS else f"{said[:LOG_LINE_CHARACTERS]}..."


def _remove_operator(ground: Ground, namespace: str) -> str:
    kubectl = ground.kubectl
    others = pools(kubectl)
    looked_after = {one for at, watched in _releases(ground.helm).items() if at != namespace for one in watched}
    if needing := [pool for pool in others if pool.partition("/")[0] not in looked_after]:
        return f"kvfence stays in {namespace}, since other pools need it: {', '.join(needing[:3])}."
    with_crd = not others and _crd_is_ours(kubectl, namespace)
    ground.helm.uninstall(namespace)
    if with_crd:
        crd.remove(kubectl)
    kubectl.run("delete", "namespace", namespace, seconds=GONE_SECONDS)
    return f"kvfence is uninstalled; namespace {namespace}{' and the CRD are' if with_crd else ' is'} gone."


def _namespace(kubectl: Kubectl, name: str) -> dict[str, Any] | None:
    ran = kubectl.try_run("get", "namespace", name, "--ignore-not-found", "--output", "json")
    if ran.returncode != 0:
        raise StageError(f"the cluster does not answer: {ran.stderr.strip()[-500:]}")
    found: dict[str, Any] | None = json.loads(ran.stdout) if ran.stdout.strip() else None
    return found


def _is_ours(namespace: dict[str, Any] | None) -> bool:
    return namespace is not None and (namespace["metadata"].get("labels") or {}).get(MADE_LABEL) == MADE
