"""The ResourceBinding of a claimed object: the object, its placement and target clusters. Pure."""

from __future__ import annotations

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
from compute_sim_planes.karmada.claims import Claim
from compute_sim_planes.karmada.kinds import BINDING_FINALIZER, BINDING_ID, BINDINGS
from compute_sim_planes.karmada.metadata import (
    name_of,
    namespace_of,
    owner_reference,
    uid_of,
    version_of,
    with_metadata,
)
from compute_sim_planes.karmada.names import derive_binding_name

# Fields that a binding copies from its policy.
_FROM_POLICY: Final = (
    "conflictResolution",
    "placement",
    "preserveResourcesOnDeletion",
    "propagateDeps",
    "schedulerName",
    "suspension",
)


def derive_binding(
    template: JsonObject, policy: JsonObject, claim: Claim, permanent_id: str
) -> JsonObject:
    """The binding of an object without one."""
    kind = string_at(template, "kind")
    metadata: JsonObject = {
        "namespace": namespace_of(template),
        "name": derive_binding_name(kind, name_of(template)),
        "finalizers": [BINDING_FINALIZER],
        "labels": {**claim.labels, BINDING_ID: permanent_id},
        "annotations": {**claim.annotations},
        "ownerReferences": [owner_reference(template)],
    }
    return {
        "apiVersion": BINDINGS.api_version,
        "kind": BINDINGS.kind,
        "metadata": metadata,
        "spec": _spec(template, policy),
    }


def update_binding(
    existing: JsonObject, template: JsonObject, policy: JsonObject, claim: Claim
) -> JsonObject:
    """The desired state of an existing binding; its target clusters are kept."""
    desired = with_metadata(
        existing,
        labels=claim.labels,
        annotations=claim.annotations,
        finalizers=(BINDING_FINALIZER,),
    )
    ensure_object(desired, "metadata")["ownerReferences"] = [owner_reference(template)]
    kept = {
        name: value
        for name, value in object_at(desired, "spec").items()
        if name not in {*_FROM_POLICY, "resource"}
    }
    desired["spec"] = {**kept, **_spec(template, policy)}
    return desired


def has_other_owner(existing: JsonObject, template: JsonObject) -> bool:
    """Whether the binding belongs to a deleted object of the same name."""
    owners = objects_at(existing, "metadata", "ownerReferences")
    controllers = [owner for owner in owners if owner.get("controller") is True]
    return any(string_at(owner, "uid") != uid_of(template) for owner in controllers)


def scheduled_clusters(binding: JsonObject) -> list[str]:
    """The clusters that the scheduler has chosen."""
    return [string_at(one, "name") for one in objects_at(binding, "spec", "clusters")]


def target_clusters(binding: JsonObject) -> list[str]:
    """All clusters that receive the object: the scheduled ones, and those of bindings that depend
    on it.
    """
    required = (
        string_at(cluster, "name")
        for snapshot in objects_at(binding, "spec", "requiredBy")
        for cluster in objects_at(snapshot, "clusters")
    )
    return list(dict.fromkeys((*scheduled_clusters(binding), *required)))


def _spec(template: JsonObject, policy: JsonObject) -> JsonObject:
    taken = copy_object(object_at(policy, "spec"))
    spec: JsonObject = {name: taken[name] for name in _FROM_POLICY if name in taken}
    # A binding always has a placement, even an empty one.
    spec.setdefault("placement", {})
    reference: dict[str, JsonValue] = {
        "apiVersion": string_at(template, "apiVersion"),
        "kind": string_at(template, "kind"),
        "namespace": namespace_of(template),
        "name": name_of(template),
        "uid": uid_of(template),
        "resourceVersion": version_of(template),
    }
    spec["resource"] = reference
    return spec
