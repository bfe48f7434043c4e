"""Whether a live object is what an apply would make of it, so that a converged pool costs no write.

Three things must hold:

1. Its annotation `kvfence.io/applied` is the digest of what we want. Fields that we no longer want go only with an
   apply, so a changed wish is always sent.
2. Every field of the wish stands in it with the same value, as far as the API server keeps values as they come.
3. Nobody put anything beside where an addition means something (`foreign`). An apply leaves such things alone: they
   have to be removed by name.

What is beside and is nobody's, the server made: a default. That is told by `managedFields`, in which the server writes
down who set which field; so a default of a newer Kubernetes is no drift, and a privileged container that somebody
patched in is. Some places are compared in any case. Whoever erases `managedFields` after an edit of another place is
not noticed; such a person may write in the namespace, which is inside the boundary of trust.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from kvfence.kube.normal import (
    ATOMIC_MAPS,
    DEFAULTS,
    DROPPED_MAPS,
    DROPPED_ZEROS,
    LIST_KEYS,
    QUANTITIES,
    same_quantity,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

APPLIED = "kvfence.io/applied"
"""The annotation with the digest of what was applied."""

ROOTS = {
    "ConfigMap": ("data", "binaryData", "immutable"),
    "Secret": ("data", "immutable", "type"),
    "ControllerRevision": ("data", "revision"),
    "ServiceAccount": (),
}
"""Where additions are looked for, by kind; a kind that is not here has them in `spec`. Never in `metadata` or `status`:
others write there by right. A ServiceAccount's lists are filled by some distributions."""

WHOLE_MAPS = frozenset(
    {
        ("ConfigMap", "/data"),
        ("ConfigMap", "/binaryData"),
        ("Secret", "/data"),
        ("Service", "/spec/selector"),
        ("Deployment", "/spec/selector/matchLabels"),
        ("Deployment", "/spec/template/metadata/labels"),
        ("Deployment", "/spec/template/spec/nodeSelector"),
        ("NetworkPolicy", "/spec"),
    }
)
"""Maps that the server adds nothing to: whatever is beside is foreign, whoever wrote it."""

SERVERS_OWN = frozenset({("NetworkPolicy", "/spec/policyTypes")})
"""What the server does add in those maps when it is not said."""

OTHERS_RIGHT = frozenset({("Deployment", "/spec/template/metadata/annotations")})
"""Where `kubectl rollout restart` writes. To take that back would restart the engines once more."""

VERBATIM = frozenset({"ConfigMap", "Secret", "ControllerRevision"})
"""Kinds whose contents the server keeps byte for byte."""

_MISSING = object()


def digest(desired: dict[str, Any]) -> str:
    """Return what tells one wish from another: of all of it, but for the digest itself."""
    meta = desired.get("metadata") or {}
    annotations = {key: value for key, value in (meta.get("annotations") or {}).items() if key != APPLIED}
    plain = desired | {"metadata": {key: value for key, value in meta.items() if key != "annotations"}}
    text = json.dumps([plain, annotations], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def with_digest(desired: dict[str, Any]) -> dict[str, Any]:
    """Return the object to apply: with the annotation that says what it was made from."""
    meta = desired.get("metadata") or {}
    return desired | {"metadata": meta | {"annotations": (meta.get("annotations") or {}) | {APPLIED: digest(desired)}}}


def is_applied(desired: dict[str, Any], live: dict[str, Any]) -> bool:
    """Whether an apply of `desired` would change nothing of `live`. Reads any live object; doubt means no."""
    meta = live.get("metadata")
    annotations = meta.get("annotations") if isinstance(meta, dict) else None
    if not isinstance(annotations, dict) or annotations.get(APPLIED) != digest(desired):
        return False
    kind = str(desired.get("kind"))
    wanted = {key: value for key, value in desired.items() if key != "status"}
    return all(_stands(kind, value, live.get(key, _MISSING), f"/{key}") for key, value in wanted.items()) and not (
        foreign(desired, live)
    )


def foreign(desired: dict[str, Any], live: dict[str, Any]) -> list[str]:
    """Return what others put into `live` beside `desired`, as JSON pointers in an order in which they can be removed.

    Args:
        desired: with or without the digest.
        live: as the API server returned it, `managedFields` included.
    """
    kind = str(desired.get("kind"))
    found: set[str] = set()
    for root in roots(desired):
        there = live.get(root)
        found.update(_beside(kind, desired.get(root, _MISSING), there, f"/{root}"))
        for owned in _owned(live, root):
            found.update(_set_by_others(kind, owned, (desired.get(root, _MISSING), there), f"/{root}"))
    outermost = [one for one in found if not any(one.startswith(f"{other}/") for other in found)]
    return sorted(outermost, key=_order, reverse=True)  # the last item of a list first: the others keep their index


def roots(desired: dict[str, Any]) -> tuple[str, ...]:
    """Return the fields of an object that are wholly ours."""
    return ROOTS.get(str(desired.get("kind")), ("spec",))


def at(obj: Any, pointer: str) -> Any:
    """Return what stands in an object at a pointer that `foreign` returned for it."""
    for part in pointer.split("/")[1:]:
        obj = obj[int(part)] if isinstance(obj, list) else obj[part.replace("~1", "/").replace("~0", "~")]
    return obj


def disowned(desired: dict[str, Any], live: dict[str, Any], manager: str) -> list[Any]:
    """Return the `managedFields` of `live` in which nobody but the applies of `manager` has a part of what is ours.

    Where something is taken away, the server may put its default, or have it already; and it writes down as its owner
    whoever touched the place last. Without this a default would be taken for an addition for ever.
    """
    ours = {f"f:{root}" for root in roots(desired)}
    kept = []
    for entry in live["metadata"].get("managedFields") or []:
        applies = entry.get("manager") == manager and entry.get("operation") == "Apply"
        if applies:
            kept.append(entry)
            continue
        fields = {key: value for key, value in (entry.get("fieldsV1") or {}).items() if key not in ours}
        if fields:
            kept.append(entry | {"fieldsV1": fields})
    return kept


def _stands(kind: str, wanted: Any, there: Any, place: str) -> bool:
    """Whether a value of the wish stands in the live object, in a form that the server may have given it."""
    if there is _MISSING or there is None:
        return _means_nothing(wanted, place)
    if kind in VERBATIM and not place.startswith("/metadata"):
        return bool(wanted == there)
    if isinstance(wanted, dict) and _goes_whole(kind, place):
        return _same(kind, wanted, there, place)
    if isinstance(wanted, dict):
        return isinstance(there, dict) and all(
            _stands(kind, value, there.get(name, _MISSING), f"{place}/{_escaped(name)}")
            for name, value in wanted.items()
        )
    if isinstance(wanted, list):
        return isinstance(there, list) and _list_stands(kind, wanted, there, place)
    return _same_scalar(wanted, there, place)


def _list_stands(kind: str, wanted: list[Any], there: list[Any], place: str) -> bool:
    if keys := _keys(kind, place, wanted):
        return all(_stands(kind, one, _like(one, there, keys), f"{place}/{index}") for index, one in enumerate(wanted))
    return len(wanted) == len(there) and all(
        _same(kind, one, other, f"{place}/{index}")
        for index, (one, other) in enumerate(zip(wanted, there, strict=True))
    )


def _same(kind: str, wanted: Any, there: Any, place: str) -> bool:
    """Whether two values are the same, nothing beside: a peer with one field more lets other pods in.

    So it is where the server replaces the whole on an apply; what others add there is in nobody's name alone.
    """
    if not isinstance(wanted, dict) or not isinstance(there, dict):
        return _stands(kind, wanted, there, place) if not isinstance(wanted, dict) else _means_nothing(wanted, place)
    return all(
        _same(kind, wanted[name], there.get(name), f"{place}/{_escaped(name)}")
        if name in wanted
        else there[name] in ([], None) or (name, there[name]) in DEFAULTS
        for name in wanted.keys() | there.keys()
    )


def _same_scalar(wanted: Any, there: Any, place: str) -> bool:
    if not QUANTITIES.isdisjoint(place.rsplit("/", 2)[1:]):
        return same_quantity(wanted, there)
    return type(wanted) is type(there) and bool(wanted == there)


def _goes_whole(kind: str, place: str) -> bool:
    return place.rsplit("/", 1)[1] in ATOMIC_MAPS or (kind == "NetworkPolicy" and place.startswith("/spec/"))


def _beside(kind: str, wanted: Any, there: Any, place: str) -> Iterator[str]:
    """What is beside the wish in the maps and keyed lists that the server adds nothing to."""
    if isinstance(there, dict):
        ours = wanted if isinstance(wanted, dict) else {}
        for name, value in there.items():
            inner = f"{place}/{_escaped(name)}"
            if name in ours:
                yield from _beside(kind, ours[name], value, inner)
            elif (kind, place) in WHOLE_MAPS and (kind, inner) not in SERVERS_OWN and value is not None:
                yield inner
    elif isinstance(there, list) and isinstance(wanted, list) and (keys := _keys(kind, place, there)):
        for index, item in enumerate(there):
            like = _like(item, wanted, keys)
            if like is _MISSING:
                yield f"{place}/{index}"
            else:
                yield from _beside(kind, like, item, f"{place}/{index}")


def _set_by_others(kind: str, owned: dict[str, Any], pair: tuple[Any, Any], place: str) -> Iterator[str]:
    """What is beside the wish and was set by somebody, ourselves included: by an apply in our name, say."""
    wanted, there = pair
    if (kind, place) in OTHERS_RIGHT or there in (None, "", [], {}) or there is _MISSING:
        return
    if wanted is _MISSING:
        yield place
        return
    for field, inner in owned.items():
        name, theirs = _member(there, field)
        if name is None or not isinstance(inner, dict):
            continue
        like = _counterpart(wanted, name, field)
        yield from _set_by_others(kind, inner, (like, theirs), f"{place}/{_escaped(name)}")


def _owned(live: dict[str, Any], root: str) -> Iterator[dict[str, Any]]:
    meta = live.get("metadata")
    entries = meta.get("managedFields") if isinstance(meta, dict) else None
    for entry in entries if isinstance(entries, list) else []:
        match entry:
            case {"fieldsV1": dict(fields)} if isinstance(fields.get(f"f:{root}"), dict):
                yield fields[f"f:{root}"]


def _member(there: Any, field: str) -> tuple[str | None, Any]:
    """Return where in a live value the field of a `fieldsV1` is, and what stands there."""
    if field.startswith("f:") and isinstance(there, dict):
        name = field[2:]
        return (name, there[name]) if name in there else (None, None)
    if field.startswith("k:") and isinstance(there, list):
        keys = _parsed(field[2:])
        for index, item in enumerate(there if keys else []):
            if isinstance(item, dict) and all(item.get(key) == value for key, value in keys.items()):
                return str(index), item
    if field.startswith("v:") and isinstance(there, list):
        value = _parsed_value(field[2:])
        return (str(there.index(value)), value) if value in there else (None, None)
    return None, None  # "." is the thing itself; others are gone, or of a form that is newer


def _counterpart(wanted: Any, name: str, field: str) -> Any:
    if field.startswith("f:"):
        return wanted.get(name, _MISSING) if isinstance(wanted, dict) else _MISSING
    if not isinstance(wanted, list):
        return _MISSING
    if field.startswith("v:"):
        return _parsed_value(field[2:]) if _parsed_value(field[2:]) in wanted else _MISSING
    keys = _parsed(field[2:])
    return _like(keys, wanted, tuple(keys))


def _like(item: Any, others: list[Any], keys: tuple[str, ...]) -> Any:
    """Return the one of `others` with the same keys. A key that only one of both says was defaulted."""
    for other in others:
        if isinstance(item, dict) and isinstance(other, dict):
            known = [key for key in keys if key in item and key in other]
            if keys[0] in known and all(item[key] == other[key] for key in known):
                return other
    return _MISSING


def _keys(kind: str, place: str, items: list[Any]) -> tuple[str, ...]:
    """Return by which fields the items of a list are told apart; nothing when by their position."""
    if kind == "NetworkPolicy" and place.startswith("/spec"):
        return ()
    for keys in LIST_KEYS.get(place.rsplit("/", 1)[1], ()):
        if items and all(isinstance(item, dict) and keys[0] in item for item in items):
            return keys
    return ()


def _means_nothing(wanted: Any, place: str) -> bool:
    """Whether the server leaves such a value out, so that its absence is the same."""
    parent, key = place.rsplit("/", 2)[-2:]
    if parent in DROPPED_MAPS:  # the value of a label, say: empty, it is there all the same
        return False
    if wanted in (None, "", []):
        return True
    if isinstance(wanted, dict):
        return key in DROPPED_MAPS and not wanted
    return key in DROPPED_ZEROS and not wanted


def _parsed(text: str) -> dict[str, Any]:
    value = _parsed_value(text)
    return value if isinstance(value, dict) else {}


def _parsed_value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return _MISSING


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _order(pointer: str) -> list[tuple[int, int, str]]:
    return [(1, int(part), "") if part.isdecimal() else (0, 0, part) for part in pointer.split("/")]
