"""The CustomResourceDefinition of InferencePool, put together from its model."""

from __future__ import annotations

from typing import Any

import yaml

from kvfence.api.structural import structural_schema
from kvfence.api.v1alpha1.pool import InferencePool

GROUP = "kvfence.io"
VERSION = "v1alpha1"
PLURAL = "inferencepools"

HEADER = "# Generated from operator/kvfence/api by `make generate`. Edit the models, not this file.\n"


def inference_pool_crd() -> dict[str, Any]:
    """Return the CustomResourceDefinition as an object."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {
                "kind": "InferencePool",
                "listKind": "InferencePoolList",
                "plural": PLURAL,
                "singular": "inferencepool",
                # infpool is the short name of the kind that the Gateway API inference extension calls the same.
                "shortNames": ["kvpool"],
                "categories": ["inference"],
            },
            "scope": "Namespaced",
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": _whole_object()},
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": _columns(),
                }
            ],
        },
    }


def crd_text() -> str:
    """Return the CustomResourceDefinition as YAML, as it is committed."""
    return HEADER + yaml.safe_dump(inference_pool_crd(), sort_keys=False, width=120, allow_unicode=True)


def _whole_object() -> dict[str, Any]:
    """The schema, with the three fields that Kubernetes itself defines for every object."""
    schema = structural_schema(InferencePool)
    kubernetes = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}
    schema["properties"] = kubernetes | schema["properties"]
    return schema


def _columns() -> list[dict[str, Any]]:
    return [
        _column("Model", ".spec.model.servedName"),
        _column("Ready", _condition("Ready", "status")),
        _column("Admitted", _condition("TrafficAdmitted", "status")),
        _column("Context", ".status.contextLength.advertisedTokens", "integer"),
        _column("Requested", ".spec.contextLength.requestedTokens", "integer"),
        _column("Limited-By", ".status.contextLength.limitingRole", wide=True),
        _column("KV-Pool", ".status.contextLength.kvPoolTokens", "integer", wide=True),
        _column("Reason", _condition("Ready", "reason"), wide=True),
        _column("Revision", ".status.currentRevision", wide=True),
        _column("Age", ".metadata.creationTimestamp", "date"),
    ]


def _condition(condition: str, field: str) -> str:
    return f'.status.conditions[?(@.type=="{condition}")].{field}'


def _column(name: str, path: str, kind: str = "string", *, wide: bool = False) -> dict[str, Any]:
    return {"name": name, "type": kind, "jsonPath": path} | ({"priority": 1} if wide else {})
