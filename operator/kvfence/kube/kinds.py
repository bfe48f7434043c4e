"""The kinds of objects that the operator talks about, and where the API server keeps them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from kvfence.kube.errors import Invalid


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of namespaced object."""

    api_version: str
    kind: str
    plural: str

    def path(self, namespace: str | None, name: str | None = None) -> str:
        """Return the path of an object, or of the collection without `name`; of all namespaces without `namespace`.

        Raises:
            Invalid: a name that cannot be one. An empty name would mean the whole collection, and `..` another path.
        """
        group = f"/api/{self.api_version}" if "/" not in self.api_version else f"/apis/{self.api_version}"
        path = group if namespace is None else f"{group}/namespaces/{_segment('namespace', namespace)}"
        path += f"/{self.plural}"
        if name is None:
            return path
        if namespace is None:
            raise Invalid(None, "NoNamespace", f"{self.kind} {name!r} is asked for without its namespace")
        return f"{path}/{_segment('name', name)}"

    def __str__(self) -> str:
        """The kind as people say it."""
        return self.kind


POOL = Kind("kvfence.io/v1alpha1", "InferencePool", "inferencepools")
POD = Kind("v1", "Pod", "pods")
SERVICE = Kind("v1", "Service", "services")
CONFIG_MAP = Kind("v1", "ConfigMap", "configmaps")
SERVICE_ACCOUNT = Kind("v1", "ServiceAccount", "serviceaccounts")
SECRET = Kind("v1", "Secret", "secrets")
DEPLOYMENT = Kind("apps/v1", "Deployment", "deployments")
CONTROLLER_REVISION = Kind("apps/v1", "ControllerRevision", "controllerrevisions")
NETWORK_POLICY = Kind("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies")
EVENT = Kind("events.k8s.io/v1", "Event", "events")
LEASE = Kind("coordination.k8s.io/v1", "Lease", "leases")

CHILDREN = (CONTROLLER_REVISION, SERVICE_ACCOUNT, CONFIG_MAP, NETWORK_POLICY, DEPLOYMENT, SERVICE)
"""What a pool owns and the operator lists. Pods are the Deployments' own."""

_KNOWN = {(kind.api_version, kind.kind): kind for kind in (POOL, POD, SECRET, EVENT, LEASE, *CHILDREN)}


def kind_of(obj: dict[str, Any]) -> Kind:
    """Return the kind of an object.

    Raises:
        Invalid: it says none, or one that the operator has nothing to do with.
    """
    said = (obj.get("apiVersion"), obj.get("kind"))
    known = _KNOWN.get(said) if all(isinstance(one, str) for one in said) else None  # type: ignore[arg-type]
    if known is None:
        raise Invalid(
            None, "UnknownKind", f"kvfence does not know objects of apiVersion {said[0]!r} and kind {said[1]!r}"
        )
    return known


def _segment(what: str, value: object) -> str:
    # the API server's own rule for a part of a path; a dot segment would be resolved on the way, and go elsewhere
    if not isinstance(value, str) or value in {"", ".", ".."} or "/" in value or "%" in value:
        raise Invalid(None, "NoSuchName", f"{value!r} cannot be the {what} of an object")
    return quote(value, safe="")
