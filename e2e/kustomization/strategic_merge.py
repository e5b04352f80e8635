"""Strategic merge as kustomize does it. Pure.

What the patch adds comes before what was there, which an API server does the other way round. Lists
of kinds that Kubernetes does not bring are replaced as a whole.
"""

from __future__ import annotations

import re
from typing import Final

from compute_api_types.wire import JsonObject, JsonValue
from e2e.kustomization.errors import KustomizationError
from e2e.kustomization.resources import Resource

_DIRECTIVE: Final = "$patch"
# Groups whose schema kustomize knows; elsewhere no list has a key.
_KNOWN_GROUPS: Final = re.compile(r"|apps|autoscaling|batch|policy|[a-z.]+\.k8s\.io")
# Field → keys of its elements; without keys it is a set of scalars.
_MERGED: Final[dict[str, tuple[str, ...]]] = {
    "conditions": ("type",),
    "containers": ("name",),
    "env": ("name",),
    "ephemeralContainers": ("name",),
    "finalizers": (),
    "hostAliases": ("ip",),
    "imagePullSecrets": ("name",),
    "initContainers": ("name",),
    "ownerReferences": ("uid",),
    "secrets": ("name",),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
    "volumeMounts": ("mountPath",),
    "volumes": ("name",),
    "webhooks": ("name",),
}
_PORT_KEYS: Final = (("containerPort", "protocol"), ("port", "protocol"))


def is_deletion(patch: JsonObject) -> bool:
    """Whether the patch removes the whole resource."""
    return patch.get(_DIRECTIVE) == "delete"


def strategic_merge(resource: Resource, patch: JsonObject) -> JsonObject:
    is_known = _KNOWN_GROUPS.fullmatch(resource.identity.group) is not None
    merged = _merge(resource.document, patch, has_keys=is_known)
    # A patch with a target may call itself anything.
    for name in ("apiVersion", "kind"):
        merged[name] = resource.document[name]
    metadata = merged.get("metadata")
    if isinstance(metadata, dict):
        metadata["name"] = resource.identity.name
        metadata.pop("namespace", None)
        if resource.identity.namespace:
            metadata["namespace"] = resource.identity.namespace
    return merged


def _merge(found: JsonObject, patch: JsonObject, *, has_keys: bool) -> JsonObject:
    if patch.get(_DIRECTIVE) == "replace":
        return _plain_object(patch)
    merged = dict(found)
    for name, wanted in patch.items():
        if wanted is None or (isinstance(wanted, dict) and wanted.get(_DIRECTIVE) == "delete"):
            merged.pop(name, None)
        elif name != _DIRECTIVE:
            merged[name] = _merge_field(name, merged.get(name), wanted, has_keys=has_keys)
    return merged


def _merge_field(name: str, found: JsonValue, wanted: JsonValue, *, has_keys: bool) -> JsonValue:
    if isinstance(wanted, dict) and isinstance(found, dict):
        return _merge(found, wanted, has_keys=has_keys)
    if isinstance(wanted, list) and isinstance(found, list) and has_keys:
        keys = _keys_of(name, [*wanted, *found])
        if keys == ():
            return [*wanted, *(value for value in found if value not in wanted)]
        if keys is not None:
            return _merge_list(found, wanted, keys)
    return _plain(wanted)


def _keys_of(name: str, listed: list[JsonValue]) -> tuple[str, ...] | None:
    if name != "ports":
        return _MERGED.get(name)
    # Container ports merge by containerPort, those of a Service by port.
    objects = [one for one in listed if isinstance(one, dict)]
    return next((keys for keys in _PORT_KEYS if any(keys[0] in one for one in objects)), None)


def _merge_list(
    found: list[JsonValue], wanted: list[JsonValue], keys: tuple[str, ...]
) -> list[JsonValue]:
    directives = [one.get(_DIRECTIVE) for one in wanted if isinstance(one, dict)]
    if "replace" in directives:
        plain = [one for one in wanted if not (isinstance(one, dict) and _DIRECTIVE in one)]
        return [_plain(one) for one in plain]
    rest = list(found)
    merged: list[JsonValue] = []
    for one in wanted:
        if not isinstance(one, dict):
            raise KustomizationError("patching a list of objects with something else")
        at = next((i for i, other in enumerate(rest) if _is_element(one, other, keys)), None)
        former = rest.pop(at) if at is not None else None
        if one.get(_DIRECTIVE) == "delete":
            continue
        merged.append(
            _merge(former, one, has_keys=True) if isinstance(former, dict) else _plain(one)
        )
    return [*merged, *rest]


def _is_element(wanted: JsonObject, other: JsonValue, keys: tuple[str, ...]) -> bool:
    """Whether the two are one: a later key that either leaves out says nothing."""
    if not isinstance(other, dict) or wanted.get(keys[0]) != other.get(keys[0]):
        return False
    given = [key for key in keys[1:] if key in wanted and key in other]
    return all(wanted[key] == other[key] for key in given)


def _plain_object(found: JsonObject) -> JsonObject:
    return {
        name: _plain(value)
        for name, value in found.items()
        if name != _DIRECTIVE and value is not None
    }


def _plain(value: JsonValue) -> JsonValue:
    """The value without directives; absent is what a patch means by null."""
    if isinstance(value, dict):
        return _plain_object(value)
    return [_plain(one) for one in value] if isinstance(value, list) else value
