from __future__ import annotations

from typing import Any

import pytest

from kvfence.kube import kinds
from kvfence.kube.errors import Invalid
from kvfence.kube.kinds import CHILDREN, DEPLOYMENT, POD, POOL, kind_of


def test_paths_are_those_of_the_api_server() -> None:
    assert POD.path("shop", "a") == "/api/v1/namespaces/shop/pods/a"
    assert POD.path(None) == "/api/v1/pods"
    assert DEPLOYMENT.path("shop") == "/apis/apps/v1/namespaces/shop/deployments"
    assert POOL.path("shop", "a") == "/apis/kvfence.io/v1alpha1/namespaces/shop/inferencepools/a"


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../b", "a%2fb"])
def test_a_name_that_would_lead_elsewhere_is_refused(name: str) -> None:
    with pytest.raises(Invalid, match="cannot be the name"):
        POD.path("shop", name)
    with pytest.raises(Invalid, match="cannot be the namespace"):
        POD.path(name, "a")


def test_a_question_mark_stays_in_the_name() -> None:
    assert POD.path("shop", "a?b#c") == "/api/v1/namespaces/shop/pods/a%3Fb%23c"


def test_an_object_without_its_namespace_has_no_path() -> None:
    with pytest.raises(Invalid, match="without its namespace"):
        POD.path(None, "a")


def test_each_kind_is_known_by_what_its_objects_say() -> None:
    constants = [one for one in vars(kinds).values() if isinstance(one, kinds.Kind)]
    assert {kind_of({"apiVersion": one.api_version, "kind": one.kind}) for one in constants} == set(constants)
    assert set(CHILDREN) < set(constants)


@pytest.mark.parametrize(
    "obj", [{}, {"kind": "Pod"}, {"apiVersion": "v2", "kind": "Pod"}, {"apiVersion": [], "kind": {}}]
)
def test_an_object_of_no_known_kind_is_refused(obj: dict[str, Any]) -> None:
    with pytest.raises(Invalid, match="does not know"):
        kind_of(obj)
