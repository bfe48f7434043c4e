"""Objects of kind InferencePool for tests, and what the API server says when it refuses some."""

from __future__ import annotations

import copy
import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from e2e.cluster.kubectl import Kubectl

ABSENT = object()
"""In the place of a value: the field is not there."""

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def pool(name: str = "pool") -> dict[str, Any]:
    """The smallest pool that is accepted."""
    return {
        "apiVersion": "kvfence.io/v1alpha1",
        "kind": "InferencePool",
        "metadata": {"name": name},
        "spec": {
            "model": {"servedName": "tiny", "uri": "file:///models/tiny"},
            "engine": {"sglang": {"image": "registry.example/sglang:v0.5.23"}},
            "roles": [{"name": "prefill", "type": "Prefill"}, {"name": "decode", "type": "Decode"}],
            "contextLength": {"requestedTokens": 4096},
        },
    }


def changed(given: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    """Return the object with another value at a path such as `spec.roles.0.type`; missing objects are made."""
    result = copy.deepcopy(given)
    *parents, last = path.split(".")
    node: Any = result
    for part in parents:
        node = node[int(part)] if isinstance(node, list) else node.setdefault(part, {})
    key: Any = int(last) if isinstance(node, list) else last
    if value is ABSENT:
        node.pop(key, None)
    else:
        node[key] = value
    return result


REFUSED = re.compile(r'^(?:The|Error from .*:) InferencePool(?:.kvfence.io)? "([^"]+)" is invalid: ', re.MULTILINE)
CAUSE = re.compile(r"(?:^|^\[|^\* |, )(?=(?:<nil>|metadata|spec)[\w.\[\]]*: )", re.MULTILINE)
NOT_CHECKED = re.compile(
    "some validation rules were not checked because the object was invalid|Checked value must be of"
)
"""What the API server adds when a value has not even the right type."""


@dataclass(frozen=True)
class Case:
    """One field with a value that is refused, and one that is accepted in its place."""

    title: str
    path: str
    bad: Any
    good: Any
    says: str
    """What the refusal has to contain, beside the field."""
    at: str = ""
    """The field as the refusal names it, when it is not `path`."""
    also: dict[str, Any] = field(default_factory=dict)
    """What both have beside that."""

    @property
    def field(self) -> str:
        """How the refusal names the field."""
        return self.at or re.sub(r"\.(\d+)", r"[\1]", self.path)

    def of(self, value: object, name: str) -> dict[str, Any]:
        """Return a pool with this value."""
        made = pool(name)
        for path, other in self.also.items():
            made = changed(made, path, other)
        return changed(made, self.path, value)


@dataclass(frozen=True)
class Refusal:
    """One reason why an object was refused."""

    field: str
    message: str


def refusals(kubectl: Kubectl, objects: Iterable[dict[str, Any]], namespace: str) -> dict[str, list[Refusal]]:
    """Let the API server judge objects without storing them.

    Returns:
        Why it refuses, by name; what is accepted is not in there.

    One call for all of them: kubectl alone takes longer to start than the API server to judge.
    """
    bundle = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
    # kubectl itself would stop at the first field that is missing
    arguments = ("create", "--dry-run=server", "--validate=ignore", "--namespace", namespace, "--filename", "-")
    said = kubectl.try_run(*arguments, given=bundle).stderr
    parts = REFUSED.split(said)
    assert parts[0].strip() == "", f"refused in another way than expected: {parts[0][:2000]}"
    return {name: _causes(text) for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def _causes(text: str) -> list[Refusal]:
    """Each begins with the field. They stand in brackets, or each on a line with an asterisk."""
    causes = [re.sub(r"[],\s]+$", "", cause) for cause in CAUSE.split(text.strip()) if cause]
    return [Refusal(*cause.split(": ", 1)) for cause in causes if not NOT_CHECKED.search(cause)]
