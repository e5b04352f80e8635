"""Works: the desired objects in one member, with Karmada's labels and annotations.

The manifest is the template without hub-only metadata, plus labels and annotations that lead back
to the Work, the binding, the template and its generation.
"""

from __future__ import annotations

from dataclasses import dataclass, field
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
from compute_sim_planes.karmada.hub import Hub
from compute_sim_planes.karmada.kinds import (
    BINDING_ID,
    BINDING_NAME,
    BINDING_NAMESPACE,
    CONFLICT_RESOLUTION,
    MANAGED,
    MANAGED_ANNOTATIONS,
    MANAGED_LABELS,
    TEMPLATE_GENERATION,
    TEMPLATE_UID,
    WORK_FINALIZER,
    WORK_ID,
    WORK_NAME,
    WORK_NAMESPACE,
    WORKS,
)
from compute_sim_planes.karmada.metadata import (
    annotations_of,
    generation_of,
    is_terminating,
    labels_of,
    name_of,
    namespace_of,
    owner_reference,
    uid_of,
    with_metadata,
)
from compute_sim_planes.karmada.names import derive_execution_space, derive_work_name
from compute_sim_planes.karmada.retry_queue import RequeueError

_HUB_ONLY: Final = (
    *("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"),
    *("managedFields", "resourceVersion", "selfLink", "uid", "ownerReferences", "finalizers"),
)
_RESOLUTIONS: Final = frozenset({"abort", "overwrite"})


@dataclass(frozen=True, slots=True)
class WorkPlan:
    """The desired state of one Work, without its permanent id, which is created with the Work."""

    namespace: str
    name: str
    manifest: JsonObject
    labels: dict[str, str] = field(default_factory=dict[str, str])
    annotations: dict[str, str] = field(default_factory=dict[str, str])
    owners: tuple[JsonObject, ...] = ()
    spec: JsonObject = field(default_factory=dict[str, JsonValue])


def prune(existing: JsonObject) -> JsonObject:
    """The object without status and server-specific metadata."""
    kept = copy_object(existing)
    kept.pop("status", None)
    metadata = ensure_object(kept, "metadata")
    for name in _HUB_ONLY:
        metadata.pop(name, None)
    return kept


def plan_namespace_work(namespace: JsonObject, cluster: str) -> WorkPlan:
    """The Work that copies a hub namespace to a member; it is deleted with the namespace."""
    place = derive_execution_space(cluster)
    name = derive_work_name("Namespace", "", name_of(namespace))
    marks = {TEMPLATE_UID: uid_of(namespace), WORK_NAMESPACE: place, WORK_NAME: name}
    manifest = with_metadata(prune(namespace), labels={MANAGED: "true"}, annotations=marks)
    return WorkPlan(place, name, manifest, owners=(owner_reference(namespace),))


def plan_work(template: JsonObject, binding: JsonObject, cluster: str) -> WorkPlan:
    """The Work that copies a bound object to one of its members."""
    place = derive_execution_space(cluster)
    name = derive_work_name(string_at(template, "kind"), namespace_of(template), name_of(template))
    binding_id = labels_of(binding).get(BINDING_ID, "")
    bound = {BINDING_NAMESPACE: namespace_of(binding), BINDING_NAME: name_of(binding)}
    resolved = {CONFLICT_RESOLUTION: _resolve_conflicts(template, binding)}
    marks = {TEMPLATE_UID: uid_of(template), WORK_NAMESPACE: place, WORK_NAME: name}
    if generation := generation_of(template):
        marks[TEMPLATE_GENERATION] = str(generation)
    manifest = with_metadata(
        prune(template),
        labels={MANAGED: "true", BINDING_ID: binding_id},
        annotations={**bound, **resolved, **marks},
    )
    spec = object_at(binding, "spec")
    is_suspended = object_at(spec, "suspension").get("dispatching") is True
    return WorkPlan(
        place,
        name,
        manifest,
        labels={BINDING_ID: binding_id},
        annotations={**bound, **resolved},
        spec={
            "suspendDispatching": is_suspended,
            "preserveResourcesOnDeletion": spec.get("preserveResourcesOnDeletion") is True,
        },
    )


def _resolve_conflicts(template: JsonObject, binding: JsonObject) -> str:
    """The template's annotation overrides the policy."""
    resolution = annotations_of(template).get(CONFLICT_RESOLUTION, "")
    if resolution in _RESOLUTIONS:
        return resolution
    is_overwrite = string_at(binding, "spec", "conflictResolution") == "Overwrite"
    return "overwrite" if is_overwrite else "abort"


def manifests_of(work: JsonObject) -> list[JsonObject]:
    return objects_at(work, "spec", "workload", "manifests")


async def ensure_work(hub: Hub, plan: WorkPlan) -> None:
    """Create or update the Work; written only if it differs."""
    existing = hub.works.get(plan.name, plan.namespace)
    if existing is None:
        await hub.client.create(WORKS, _new_work(plan, hub.identities.uid()))
        return
    if is_terminating(existing):
        raise RequeueError(f"work {plan.namespace}/{plan.name} is being deleted")
    desired = with_metadata(
        existing, labels=plan.labels, annotations=plan.annotations, finalizers=(WORK_FINALIZER,)
    )
    desired["spec"] = _work_spec(plan, labels_of(existing).get(WORK_ID, ""))
    if desired != existing:
        await hub.client.update(WORKS, desired)


def _new_work(plan: WorkPlan, permanent_id: str) -> JsonObject:
    metadata: JsonObject = {
        "namespace": plan.namespace,
        "name": plan.name,
        "labels": {**plan.labels, WORK_ID: permanent_id},
        "finalizers": [WORK_FINALIZER],
    }
    if plan.annotations:
        metadata["annotations"] = {**plan.annotations}
    if plan.owners:
        metadata["ownerReferences"] = list[JsonValue](plan.owners)
    return {
        "apiVersion": WORKS.api_version,
        "kind": WORKS.kind,
        "metadata": metadata,
        "spec": _work_spec(plan, permanent_id),
    }


def _work_spec(plan: WorkPlan, permanent_id: str) -> JsonObject:
    manifest = _record_managed(with_metadata(plan.manifest, labels={WORK_ID: permanent_id}))
    return {**plan.spec, "workload": {"manifests": [manifest]}}


def _record_managed(manifest: JsonObject) -> JsonObject:
    """Record the keys that come from the hub: a missing one was removed there."""
    labels = ",".join(sorted(labels_of(manifest)))
    names = {*annotations_of(manifest), MANAGED_LABELS, MANAGED_ANNOTATIONS}
    marks = {MANAGED_LABELS: labels, MANAGED_ANNOTATIONS: ",".join(sorted(names))}
    return with_metadata(manifest, annotations=marks)
