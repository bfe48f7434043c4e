"""The API client: a few verbs on plain dicts, over the transport of the package `kubernetes`.

Of that package come configuration, TLS, tokens and HTTP; its models do not, since they drop fields that are newer.
Nothing is retried here: whoever calls looks at the world again first.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import aiohttp
import yaml
from kubernetes.aio import config
from kubernetes.aio.client.api_client import ApiClient
from kubernetes.aio.client.configuration import Configuration
from kubernetes.aio.client.rest import RESTClientObject

import kvfence
from kvfence.kube.drift import at, disowned, foreign, roots
from kvfence.kube.errors import (
    Conflict,
    Contested,
    Invalid,
    KubernetesError,
    NotFound,
    Unconfigured,
    Unreachable,
    refusal,
)
from kvfence.kube.kinds import LEASE, kind_of

if TYPE_CHECKING:
    from types import TracebackType

    from kvfence.kube.kinds import Kind

FIELD_MANAGER = "kvfence"
"""Under which name the API server keeps which fields are ours."""

TIMEOUT_SECONDS = 30.0
"""For one request with its answer."""

PAGE = 500
"""Objects per answer to a list; kubectl's own figure."""

STRIPS = 2
"""How often additions are taken away in one apply. A default that takes the place of one is written down as set by us,
so that a second time is needed to have it in nobody's name."""

LISTS = 3
"""How often a list is begun anew whose pages expired under us, as they do after some minutes."""

_NO_CONFIGURATION = (config.ConfigException, OSError, ValueError, yaml.YAMLError, TypeError, AttributeError, KeyError)
"""What comes of a file that is none: TLS errors are OSErrors, and the package takes the file's shape for granted."""

Object = dict[str, Any]
Objects = list[Object]
Pointers = list[str]


class Kubernetes:
    """The API server, as an async context manager: `async with await Kubernetes.connect() as kubernetes`.

    Every method raises `KubernetesError`, in one of the classes of `kvfence.kube.errors`.

    Attributes:
        writes: how many requests were sent that write, refused ones included, and those of the Lease not.
    """

    def __init__(self, configuration: Configuration) -> None:
        configuration.retries = None
        # Proxies of the environment and ~/.netrc are for the world outside; a kubeconfig's own proxy-url holds.
        configuration.client_session_kwargs = {"trust_env": False}
        self.writes = 0
        self._transport = ApiClient(configuration)
        self._transport.rest_client = _Http(configuration)
        self._transport.user_agent = f"kvfence/{kvfence.__version__}"

    @classmethod
    async def connect(cls, context: str | None = None) -> Self:
        """Find the API server.

        Args:
            context: of the kubeconfig ($KUBECONFIG or ~/.kube/config). Without: the cluster that we run in, else the
                kubeconfig's current one.

        Raises:
            Unconfigured: no usable configuration.
        """
        configuration = Configuration()
        try:
            if context is None and os.environ.get("KUBERNETES_SERVICE_HOST"):
                config.load_incluster_config(configuration)  # type: ignore[no-untyped-call]
            else:
                await _kubeconfig(configuration, context)
            return cls(configuration)
        except _NO_CONFIGURATION as error:
            where = f"context {context!r}" if context else "the API server"
            raise Unconfigured(None, "Unconfigured", f"no usable configuration for {where}: {error}") from error

    async def __aenter__(self) -> Self:
        """Connections are made as they are needed."""
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Close the connections."""
        await self._transport.close()  # type: ignore[no-untyped-call]

    async def list(self, kind: Kind, namespace: str | None, labels: str = "") -> Objects:
        """Return the objects of a kind, of all namespaces when `namespace` is none.

        Args:
            kind: which.
            namespace: where.
            labels: a label selector.
        """
        for attempt in range(1, LISTS + 1):
            try:
                return await self._pages(kind, namespace, labels)
            except KubernetesError as error:
                if error.status != 410 or attempt == LISTS:
                    raise
        raise AssertionError("the last attempt returns or raises")

    async def get(self, kind: Kind, namespace: str, name: str) -> Object | None:
        """Return an object, or none when it is not there."""
        try:
            return await self._ask("GET", kind.path(namespace, name), f"get {kind} {namespace}/{name}")
        except NotFound:
            return None

    async def apply(self, obj: Object) -> Object:
        """Make an object what `obj` says, server-side, and return it as it is then.

        What others put beside, where an addition means something, is taken away: see `kvfence.kube.drift`. That is one
        more request, and only when there is such a thing.

        Raises:
            Contested: what was taken away came back at once.
        """
        path, doing = _place(obj, "apply")
        try:
            applied = await self._apply(path, doing, obj)
        except Invalid as refused:
            await self._replace(path, doing, obj, refused)
            applied = await self._apply(path, doing, obj)
        for _ in range(STRIPS):
            additions = foreign(obj, applied)
            if not additions:
                return applied
            applied = await self._strip(path, doing, (obj, applied), additions)
        if additions := foreign(obj, applied):
            raise Contested(
                None,
                "Contested",
                f"cannot {doing}: something puts back {', '.join(additions[:5])}; find the admission webhook or "
                "controller that does it and have it leave this object alone",
            )
        return applied

    async def apply_status(self, obj: Object) -> Object:
        """Apply the status of `obj`, which has no spec. With `metadata.uid` it holds only for that very object.

        Raises:
            NotFound: the object is gone.
            Conflict: another has its name.
        """
        path, doing = _place(obj, "write the status of")
        try:
            return await self._apply(f"{path}/status", doing, obj)
        except Invalid as error:
            if "metadata.uid" not in error.message:
                raise
            words = f"cannot {doing}: another object has that name now"
            raise Conflict(error.status, error.reason, words) from error

    async def create(self, obj: Object) -> Object | None:
        """Create an object and return it, or none when there is one of that name."""
        kind, meta = kind_of(obj), obj["metadata"]
        doing = f"create {kind} {meta['namespace']}/{meta['name']}"
        query = {"fieldManager": FIELD_MANAGER, "fieldValidation": "Strict"}
        self.writes += kind is not LEASE
        try:
            return await self._ask("POST", kind.path(meta["namespace"]), doing, query, obj)
        except Conflict as error:
            if error.reason != "AlreadyExists":
                raise
            return None

    async def replace(self, obj: Object) -> Object:
        """Put `obj` in the place of the object that it was read as.

        Raises:
            Conflict: that has changed since, by its `metadata.resourceVersion`.
        """
        path, doing = _place(obj, "replace")
        self.writes += kind_of(obj) is not LEASE
        return await self._ask("PUT", path, doing, {"fieldManager": FIELD_MANAGER, "fieldValidation": "Strict"}, obj)

    async def delete(self, kind: Kind, namespace: str, name: str, uid: str) -> bool:
        """Delete this very object, its dependants after it; false when it is gone, or another has its name."""
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": uid},
            "propagationPolicy": "Background",
        }
        self.writes += 1
        try:
            await self._ask("DELETE", kind.path(namespace, name), f"delete {kind} {namespace}/{name}", body=options)
        except (NotFound, Conflict):
            return False
        return True

    async def annotate(self, kind: Kind, namespace: str, name: str, annotations: dict[str, str | None]) -> bool:
        """Set annotations, and remove those that are none; false when the object is gone."""
        body = {"metadata": {"annotations": annotations}}
        doing = f"annotate {kind} {namespace}/{name}"
        try:
            await self._patch(kind.path(namespace, name), doing, "merge-patch+json", body)
        except NotFound:
            return False
        return True

    async def _pages(self, kind: Kind, namespace: str | None, labels: str) -> Objects:
        query = {"limit": str(PAGE)} | ({"labelSelector": labels} if labels else {})
        doing = f"list {kind.plural} in {'all namespaces' if namespace is None else f'namespace {namespace}'}"
        found: Objects = []
        while True:
            page = await self._ask("GET", kind.path(namespace), doing, query)
            items = page.get("items") or []
            found += [{"apiVersion": kind.api_version, "kind": kind.kind} | item for item in items]
            more = (page.get("metadata") or {}).get("continue")
            if not more:
                return found
            query["continue"] = more

    async def _apply(self, path: str, doing: str, obj: Object) -> Object:
        return await self._patch(path, doing, "apply-patch+yaml", obj, force="true", fieldValidation="Strict")

    async def _replace(self, path: str, doing: str, obj: Object, refused: Invalid) -> None:
        """Put our part in the place of what stands there, which an apply would add to, and may not.

        Where someone made a volume of ours another kind of volume, say, an apply would leave it both.

        Raises:
            Invalid: `refused`, when it was not for what others had put there.
        """
        try:
            live = await self._ask("GET", path, doing)
        except NotFound:
            raise refused from None
        if not foreign(obj, live):
            raise refused
        patch: Objects = [{"op": "test", "path": "/metadata/uid", "value": live["metadata"]["uid"]}]
        patch += [{"op": "add", "path": f"/{root}", "value": obj[root]} for root in roots(obj) if root in obj]
        try:
            await self._patch(path, doing, "json-patch+json", patch)
        except Invalid as error:
            raise refused from error

    async def _strip(self, path: str, doing: str, pair: tuple[Object, Object], pointers: Pointers) -> Object:
        obj, live = pair
        # Each is removed only where it still stands as it was seen. The whole object's version would be too strict:
        # controllers write the status right after an apply.
        patch: Objects = [{"op": "test", "path": "/metadata/uid", "value": live["metadata"]["uid"]}]
        for pointer in pointers:
            patch.append({"op": "test", "path": pointer, "value": at(live, pointer)})
            patch.append({"op": "remove", "path": pointer})
        owners = disowned(obj, live, FIELD_MANAGER)
        patch.append({"op": "replace", "path": "/metadata/managedFields", "value": owners})
        try:
            return await self._patch(path, doing, "json-patch+json", patch)
        except Invalid as error:
            words = f"cannot {doing}: somebody changed it meanwhile; it is tried again"
            raise Conflict(error.status, error.reason, words) from error

    async def _patch(self, path: str, doing: str, form: str, body: Object | Objects, **query: str) -> Object:
        self.writes += 1
        headers = {"Content-Type": f"application/{form}"}
        return await self._ask("PATCH", path, doing, {"fieldManager": FIELD_MANAGER} | query, body, headers)

    async def _ask(
        self,
        method: str,
        path: str,
        doing: str,
        query: dict[str, str] | None = None,
        body: object = None,
        headers: dict[str, str] | None = None,
    ) -> Object:
        try:
            request = await self._transport.param_serialize(
                method,
                path,
                query_params=list((query or {}).items()),
                header_params={"Accept": "application/json"} | (headers or {}),
                body=body,
                auth_settings=["BearerToken"],
            )
            response = await self._transport.call_api(*request)
            raw = await response.read()  # type: ignore[no-untyped-call]
        except (aiohttp.ClientError, OSError, ValueError, config.ConfigException) as error:  # time-outs are OSErrors
            words = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            raise Unreachable(
                None, "Unreachable", f"cannot {doing}: no answer from the API server ({words}); it is tried again"
            ) from error
        if not 200 <= response.status < 300:
            raise refusal(response.status, raw, doing)
        return _object(raw, doing)


class _Http(RESTClientObject):
    """The package's HTTP with a time limit on each request; its own is five minutes, also for leases."""

    async def request(self, *arguments: Any, **more: Any) -> Any:
        more["_request_timeout"] = aiohttp.ClientTimeout(total=TIMEOUT_SECONDS)
        return await super().request(*arguments, **more)  # type: ignore[no-untyped-call]


async def _kubeconfig(configuration: Configuration, context: str | None) -> None:
    files = os.environ.get("KUBECONFIG") or str(Path.home() / ".kube" / "config")
    if not _any_is_there(files):
        raise Unconfigured(None, "Unconfigured", f"there is no kubeconfig at {files}, and this is no pod of a cluster")
    await config.load_kube_config(files, context, configuration, persist_config=False)  # type: ignore[no-untyped-call]


def _any_is_there(files: str) -> bool:
    return any(Path(one).expanduser().is_file() for one in files.split(os.pathsep) if one)


def _place(obj: Object, verb: str) -> tuple[str, str]:
    kind, meta = kind_of(obj), obj["metadata"]
    return kind.path(meta["namespace"], meta["name"]), f"{verb} {kind} {meta['namespace']}/{meta['name']}"


def _object(raw: bytes, doing: str) -> Object:
    try:
        answer = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise Unreachable(None, "NotJson", f"cannot {doing}: what answered is no Kubernetes API server") from error
    if not isinstance(answer, dict):
        raise Unreachable(None, "NotJson", f"cannot {doing}: what answered is no Kubernetes API server")
    return answer
