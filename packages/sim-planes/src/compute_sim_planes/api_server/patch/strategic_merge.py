"""Strategic merge patch, which built-in kinds accept and `kubectl apply` sends for them.

A merge patch in which some lists are merged by a key instead of being replaced. The keys are part
of the Go types; the table has those that occur in `deploy/` and in tests. Kinds from CRDs refuse
this patch type.
"""

from __future__ import annotations

from typing import Final

from compute_sim_planes.api_server.patch.json_patch import PatchSyntaxError
from compute_sim_planes.json_copies import copy_json
from compute_sim_planes.json_types import JsonArray, JsonObject, JsonValue

# Field name → merge key of its elements; an empty key is a list of scalars merged as a set.
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


def strategic_merge_patch(existing: JsonObject, patch: JsonValue) -> JsonObject:
    """The object with the patch merged in; neither argument is changed."""
    if not isinstance(patch, dict):
        raise PatchSyntaxError("Invalid JSON Patch")
    return _merge(existing, patch)


def _merge(existing: JsonObject, patch: JsonObject) -> JsonObject:
    directive = patch.get(_DIRECTIVE)
    if directive == "replace":
        return {name: copy_json(value) for name, value in patch.items() if name != _DIRECTIVE}
    if directive == "delete":
        return {}
    merged = dict(existing)
    retained = patch.get(_RETAIN)
    if isinstance(retained, list):
        merged = {name: value for name, value in merged.items() if name in retained}
    for name, desired in patch.items():
        if name.startswith(_DELETE_FROM):
            _remove_scalars(merged, name.removeprefix(_DELETE_FROM), desired)
        elif not name.startswith("$"):
            _merge_field(merged, name, desired)
    for name, desired in patch.items():
        if name.startswith(_ORDER) and isinstance(desired, list):
            _set_order(merged, name.removeprefix(_ORDER), desired)
    return merged


def _merge_field(merged: JsonObject, name: str, desired: JsonValue) -> None:
    existing = merged.get(name)
    if desired is None:
        merged.pop(name, None)
    elif isinstance(desired, dict):
        merged[name] = _merge(existing if isinstance(existing, dict) else {}, desired)
    elif (
        isinstance(desired, list)
        and isinstance(existing, list)
        and (key := _merge_key(name, desired, existing)) is not None
    ):
        merged[name] = _merge_list(existing, desired, key)
    else:
        merged[name] = _without_directives(desired)


def _merge_key(name: str, desired: JsonArray, existing: JsonArray) -> str | None:
    if name == "ports":
        # Container ports merge by containerPort, those of a Service by port.
        elements = [element for element in (*desired, *existing) if isinstance(element, dict)]
        return (
            "containerPort" if any("containerPort" in element for element in elements) else "port"
        )
    return _MERGED.get(name)


def _merge_list(existing: JsonArray, desired: JsonArray, key: str) -> JsonArray:
    if not key:
        return [*existing, *(value for value in desired if value not in existing)]
    if any(
        isinstance(element, dict) and element.get(_DIRECTIVE) == "replace" for element in desired
    ):
        return [copy_json(e) for e in desired if not (isinstance(e, dict) and _DIRECTIVE in e)]
    merged = list(existing)
    for element in desired:
        at = _find(merged, element, key)
        is_removal = isinstance(element, dict) and element.get(_DIRECTIVE) == "delete"
        if is_removal and at is not None:
            del merged[at]
        elif at is None and not is_removal:
            merged.append(_without_directives(element))
        elif at is not None:
            merged[at] = _merged_element(merged[at], element)
    return merged


def _merged_element(existing: JsonValue, desired: JsonValue) -> JsonValue:
    if isinstance(existing, dict) and isinstance(desired, dict):
        return _merge(existing, desired)
    return copy_json(desired)


def _find(elements: JsonArray, desired: JsonValue, key: str) -> int | None:
    if not isinstance(desired, dict):
        return None
    for at, element in enumerate(elements):
        if isinstance(element, dict) and element.get(key) == desired.get(key):
            return at
    return None


def _remove_scalars(merged: JsonObject, name: str, unwanted: JsonValue) -> None:
    existing = merged.get(name)
    if isinstance(existing, list) and isinstance(unwanted, list):
        merged[name] = [value for value in existing if value not in unwanted]


def _set_order(merged: JsonObject, name: str, order: JsonArray) -> None:
    """Elements in the given order; the others follow."""
    existing = merged.get(name)
    if not isinstance(existing, list):
        return
    key = _merge_key(name, order, existing) or ""

    def rank(element: JsonValue) -> int:
        desired = {key: element.get(key)} if key and isinstance(element, dict) else element
        return order.index(desired) if desired in order else len(order)

    merged[name] = sorted(existing, key=rank)


def _without_directives(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        kept = {name: inner for name, inner in value.items() if not name.startswith("$")}
        return {
            name: _without_directives(inner) for name, inner in kept.items() if inner is not None
        }
    if isinstance(value, list):
        return [_without_directives(inner) for inner in value]
    return value
