"""Strategic merge patch, which built-in kinds accept and `kubectl apply` sends for them.

Like a merge patch, but some lists are merged by a key instead of being replaced. Which ones is part
of the Go types of those kinds; the table holds those that occur in what `deploy/` and tests apply.
Kinds from CRDs refuse this patch.
"""

from __future__ import annotations

from typing import Final

from compute_sim_planes.api_server.patches import PatchSyntaxError
from compute_sim_planes.json_copies import copy_json
from compute_sim_planes.json_types import JsonArray, JsonObject, JsonValue

# Field name → key of its elements; an empty key means a list of scalars that is merged as a set.
_MERGED: Final = {
    "conditions": "type",
    "containers": "name",
    "env": "name",
    "ephemeralContainers": "name",
    "finalizers": "",
    "hostAliases": "ip",
    "imagePullSecrets": "name",
    "initContainers": "name",
    "ownerReferences": "uid",
    "secrets": "name",
    "topologySpreadConstraints": "topologyKey",
    "volumeMounts": "mountPath",
    "volumes": "name",
    "webhooks": "name",
}
_DIRECTIVE: Final = "$patch"
_DELETE_FROM: Final = "$deleteFromPrimitiveList/"
_ORDER: Final = "$setElementOrder/"
_RETAIN: Final = "$retainKeys"


def strategic_merge_patch(found: JsonObject, patch: JsonValue) -> JsonObject:
    """The object with the patch merged in; neither argument is changed."""
    if not isinstance(patch, dict):
        raise PatchSyntaxError("Invalid JSON Patch")
    return _merge(found, patch)


def _merge(found: JsonObject, patch: JsonObject) -> JsonObject:
    directive = patch.get(_DIRECTIVE)
    if directive == "replace":
        return {name: copy_json(value) for name, value in patch.items() if name != _DIRECTIVE}
    if directive == "delete":
        return {}
    merged = dict(found)
    retained = patch.get(_RETAIN)
    if isinstance(retained, list):
        merged = {name: value for name, value in merged.items() if name in retained}
    for name, wanted in patch.items():
        if name.startswith(_DELETE_FROM):
            _remove_scalars(merged, name.removeprefix(_DELETE_FROM), wanted)
        elif not name.startswith("$"):
            _merge_field(merged, name, wanted)
    for name, wanted in patch.items():
        if name.startswith(_ORDER) and isinstance(wanted, list):
            _set_order(merged, name.removeprefix(_ORDER), wanted)
    return merged


def _merge_field(merged: JsonObject, name: str, wanted: JsonValue) -> None:
    found = merged.get(name)
    if wanted is None:
        merged.pop(name, None)
    elif isinstance(wanted, dict):
        merged[name] = _merge(found if isinstance(found, dict) else {}, wanted)
    elif (
        isinstance(wanted, list)
        and isinstance(found, list)
        and (key := _merge_key(name, wanted, found)) is not None
    ):
        merged[name] = _merge_list(found, wanted, key)
    else:
        merged[name] = _without_directives(wanted)


def _merge_key(name: str, wanted: JsonArray, found: JsonArray) -> str | None:
    if name == "ports":
        # Container ports merge by containerPort, those of a Service by port.
        elements = [element for element in (*wanted, *found) if isinstance(element, dict)]
        return (
            "containerPort" if any("containerPort" in element for element in elements) else "port"
        )
    return _MERGED.get(name)


def _merge_list(found: JsonArray, wanted: JsonArray, key: str) -> JsonArray:
    if not key:
        return [*found, *(value for value in wanted if value not in found)]
    if any(
        isinstance(element, dict) and element.get(_DIRECTIVE) == "replace" for element in wanted
    ):
        return [copy_json(e) for e in wanted if not (isinstance(e, dict) and _DIRECTIVE in e)]
    merged = list(found)
    for element in wanted:
        at = _find(merged, element, key)
        is_removal = isinstance(element, dict) and element.get(_DIRECTIVE) == "delete"
        if is_removal and at is not None:
            del merged[at]
        elif at is None and not is_removal:
            merged.append(_without_directives(element))
        elif at is not None:
            merged[at] = _merged_element(merged[at], element)
    return merged


def _merged_element(found: JsonValue, wanted: JsonValue) -> JsonValue:
    if isinstance(found, dict) and isinstance(wanted, dict):
        return _merge(found, wanted)
    return copy_json(wanted)


def _find(elements: JsonArray, wanted: JsonValue, key: str) -> int | None:
    if not isinstance(wanted, dict):
        return None
    for at, element in enumerate(elements):
        if isinstance(element, dict) and element.get(key) == wanted.get(key):
            return at
    return None


def _remove_scalars(merged: JsonObject, name: str, unwanted: JsonValue) -> None:
    found = merged.get(name)
    if isinstance(found, list) and isinstance(unwanted, list):
        merged[name] = [value for value in found if value not in unwanted]


def _set_order(merged: JsonObject, name: str, order: JsonArray) -> None:
    """Elements in the order asked for; those it does not name stay behind."""
    found = merged.get(name)
    if not isinstance(found, list):
        return
    key = _merge_key(name, order, found) or ""

    def rank(element: JsonValue) -> int:
        wanted = {key: element.get(key)} if key and isinstance(element, dict) else element
        return order.index(wanted) if wanted in order else len(order)

    merged[name] = sorted(found, key=rank)


def _without_directives(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        kept = {name: inner for name, inner in value.items() if not name.startswith("$")}
        return {
            name: _without_directives(inner) for name, inner in kept.items() if inner is not None
        }
    if isinstance(value, list):
        return [_without_directives(inner) for inner in value]
    return value
