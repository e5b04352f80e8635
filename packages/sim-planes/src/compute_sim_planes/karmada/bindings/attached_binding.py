"""Attached ResourceBindings: of objects that a propagated object depends on. Pure.

A binding with `propagateDeps` has no copy of its dependencies: each of them gets a binding of its
own without placement, which lists under `requiredBy` the bindings that need it and their clusters.
It is delivered to all of these clusters.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Final

from compute_sim_planes.json_copies import copy_object
from compute_sim_planes.json_types import (
    JsonObject,
    JsonValue,
    ensure_object,
    object_at,
    objects_at,
    string_at,
)
from compute_sim_planes.karmada.kinds import (
    BINDING_FINALIZER,
    BINDING_ID,
    BINDINGS,
    DEPENDED_BY,
    DEPENDENCIES,
)
from compute_sim_planes.karmada.metadata import (
    annotations_of,
    labels_of,
    name_of,
    namespace_of,
    owner_reference,
    uid_of,
    version_of,
    with_metadata,
    without_metadata,
)
from compute_sim_planes.karmada.names import derive_binding_name

_MEMBERS: Final = ("apiVersion", "kind", "namespace", "name")


def propagates_dependencies(binding: JsonObject) -> bool:
    return object_at(binding, "spec").get("propagateDeps") is True


def render_dependencies(references: Sequence[JsonObject]) -> str:
    """The annotation that records the dependencies of an independent binding."""
    return json.dumps(list(references), separators=(",", ":"))


def depends_on(binding: JsonObject, existing: JsonObject) -> bool:
    """Whether the recorded dependencies of a binding name an object."""
    recorded = annotations_of(binding).get(DEPENDENCIES, "")
    try:
        references: JsonValue = json.loads(recorded or "[]")
    except ValueError:
        return False
    named = references if isinstance(references, list) else []
    return any(isinstance(one, dict) and names_object(one, existing) for one in named)


def names_object(reference: JsonObject, existing: JsonObject) -> bool:
    head = (string_at(existing, "apiVersion"), string_at(existing, "kind"))
    place = (namespace_of(existing), name_of(existing))
    return tuple(string_at(reference, member) for member in _MEMBERS) == (*head, *place)


def depended_by_label(independent: JsonObject) -> str:
    """The key of the label by which an independent binding finds its attached ones."""
    place = f"{namespace_of(independent)}/{name_of(independent)}"
    return f"{DEPENDED_BY}{hashlib.sha256(place.encode()).hexdigest()[:12]}"


def derive_attached(independent: JsonObject, dependency: JsonObject, own_id: str) -> JsonObject:
    """The binding of a dependency without one."""
    return {
        "apiVersion": BINDINGS.api_version,
        "kind": BINDINGS.kind,
        "metadata": {
            "namespace": namespace_of(dependency),
            "name": derive_binding_name(string_at(dependency, "kind"), name_of(dependency)),
            "finalizers": [BINDING_FINALIZER],
            "labels": {**_label(independent), BINDING_ID: own_id},
            "ownerReferences": [owner_reference(dependency)],
        },
        "spec": {"resource": _resource(dependency), "requiredBy": [_snapshot(independent)]},
    }


def update_attached(
    existing: JsonObject, independent: JsonObject, dependency: JsonObject
) -> JsonObject:
    """The desired state of an existing binding; other bindings that need the object stay."""
    desired = with_metadata(existing, labels=_label(independent))
    spec = ensure_object(desired, "spec")
    snapshot = _snapshot(independent)
    entries = [*objects_at(spec, "requiredBy")]
    at = next((at for at, one in enumerate(entries) if _is_of(one, independent)), len(entries))
    entries[at : at + 1] = [snapshot]
    spec["requiredBy"] = list[JsonValue](entries)
    spec["resource"] = _resource(dependency)
    return desired


def detach(attached: JsonObject, independent: JsonObject) -> JsonObject:
    """The attached binding without this independent one."""
    desired = without_metadata(attached, labels=(depended_by_label(independent),))
    spec = ensure_object(desired, "spec")
    kept = [one for one in objects_at(spec, "requiredBy") if not _is_of(one, independent)]
    spec.pop("requiredBy", None)
    if kept:
        spec["requiredBy"] = list[JsonValue](kept)
    return desired


def find_orphans(
    attached: Iterable[JsonObject], references: Sequence[JsonObject]
) -> list[JsonObject]:
    """Attached bindings of objects that are no dependencies any more."""
    named = {tuple(string_at(one, member) for member in _MEMBERS) for one in references}
    return [
        one
        for one in attached
        if tuple(string_at(one, "spec", "resource", member) for member in _MEMBERS) not in named
    ]


def _label(independent: JsonObject) -> dict[str, str]:
    return {depended_by_label(independent): labels_of(independent).get(BINDING_ID, "")}


def _snapshot(independent: JsonObject) -> JsonObject:
    clusters = [copy_object(one) for one in objects_at(independent, "spec", "clusters")]
    return {
        "namespace": namespace_of(independent),
        "name": name_of(independent),
        "clusters": list[JsonValue](clusters),
    }


def _is_of(snapshot: JsonObject, independent: JsonObject) -> bool:
    place = (string_at(snapshot, "namespace"), string_at(snapshot, "name"))
    return place == (namespace_of(independent), name_of(independent))


def _resource(dependency: JsonObject) -> JsonObject:
    return {
        "apiVersion": string_at(dependency, "apiVersion"),
        "kind": string_at(dependency, "kind"),
        "namespace": namespace_of(dependency),
        "name": name_of(dependency),
        "uid": uid_of(dependency),
        "resourceVersion": version_of(dependency),
    }
