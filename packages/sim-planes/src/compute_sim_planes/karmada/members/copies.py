"""One copy in one member: created, updated to the manifest, deleted.

Labels, annotations, finalizers and owners that the member added stay; keys that the hub sent
earlier and no longer has are removed. An object without Karmada's label is adopted only with the
conflict resolution `overwrite`.
"""

from __future__ import annotations

from typing import Final

from compute_sim_planes.client.errors import ConflictError
from compute_sim_planes.client.rest import Resource
from compute_sim_planes.client.workqueue import namespaced_name
from compute_sim_planes.json_copies import copy_object
from compute_sim_planes.json_types import (
    JsonObject,
    JsonValue,
    array_at,
    ensure_object,
    string_at,
    string_map_at,
)
from compute_sim_planes.karmada.bindings.works import prune
from compute_sim_planes.karmada.interpreter.registry import Interpreters
from compute_sim_planes.karmada.kinds import (
    CONFLICT_RESOLUTION,
    MANAGED,
    MANAGED_ANNOTATIONS,
    MANAGED_LABELS,
)
from compute_sim_planes.karmada.members.connections import Member
from compute_sim_planes.karmada.metadata import (
    annotations_of,
    labels_of,
    name_of,
    namespace_of,
    version_of,
)
from compute_sim_planes.karmada.retry_queue import RequeueError

_ATTEMPTS: Final = 5


async def ensure_copy(
    member: Member, resource: Resource, manifest: JsonObject, interpreters: Interpreters
) -> None:
    """Create or update the copy as in the manifest; raises the member's refusal."""
    existing = await member.find(resource, namespaced_name(manifest))
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            if existing is None:
                await create_copy(member, resource, manifest)
            else:
                await update_copy(member, resource, manifest, existing, interpreters)
        except ConflictError:
            # The member's controllers write its status concurrently: retry from a live read.
            if attempt == _ATTEMPTS:
                raise
            key = namespaced_name(manifest)
            existing = await member.client().get(resource, key.name, key.namespace)
        else:
            return


async def create_copy(member: Member, resource: Resource, manifest: JsonObject) -> None:
    made = await member.client().create(resource, manifest)
    member.record(resource, namespaced_name(manifest), made)


async def update_copy(
    member: Member,
    resource: Resource,
    manifest: JsonObject,
    existing: JsonObject,
    interpreters: Interpreters,
) -> None:
    """Update the copy if it differs."""
    key = namespaced_name(manifest)
    if not _may_adopt(manifest, existing):
        place = f"kind={resource.kind}, {namespace_of(existing)}/{name_of(existing)}"
        raise RequeueError(
            f"resource({place}) already exists in the cluster {member.name} and the "
            f"{CONFLICT_RESOLUTION} strategy value is empty, Karmada will not manage this resource"
        )
    desired = interpreters.retain(retain_member_fields(manifest, existing), existing)
    if desired == retain_member_fields(prune(existing), existing):
        member.record(resource, key, existing)
        return
    member.record(resource, key, await member.client().update(resource, desired))


def needs_update(
    member: Member, resource: Resource, manifest: JsonObject, existing: JsonObject
) -> bool:
    """Whether a copy was changed since the last write; the member's defaults do not count."""
    if not member.is_recorded(resource, namespaced_name(manifest), existing):
        return True
    return labels_of(manifest) != labels_of(existing)


async def delete_copy(member: Member, resource: Resource, manifest: JsonObject) -> None:
    """Delete the copy without waiting; an object without Karmada's label stays."""
    key = namespaced_name(manifest)
    existing = await member.find(resource, key)
    if existing is None or not is_managed(existing):
        return
    await member.client().delete(
        resource, key.name, namespace=key.namespace, propagation="Background"
    )
    member.forget(resource, key)


def is_managed(existing: JsonObject) -> bool:
    return labels_of(existing).get(MANAGED) == "true"


def retain_member_fields(desired: JsonObject, existing: JsonObject) -> JsonObject:
    """The desired object with the fields that belong to the member's copy. Pure."""
    kept = copy_object(desired)
    metadata = ensure_object(kept, "metadata")
    metadata["resourceVersion"] = version_of(existing)
    for field in ("finalizers", "ownerReferences"):
        metadata.pop(field, None)
        if entries := array_at(existing, "metadata", field):
            metadata[field] = entries
    managed = annotations_of(existing)
    for field, record in (("labels", MANAGED_LABELS), ("annotations", MANAGED_ANNOTATIONS)):
        once_sent = set(managed.get(record, "").split(","))
        sent = string_map_at(desired, "metadata", field)
        own: dict[str, JsonValue] = {
            name: value
            for name, value in string_map_at(existing, "metadata", field).items()
            if name not in sent and name not in once_sent
        }
        if merged := {**own, **sent}:
            metadata[field] = merged
    return kept


def _may_adopt(manifest: JsonObject, existing: JsonObject) -> bool:
    return is_managed(existing) or (
        string_at(manifest, "metadata", "annotations", CONFLICT_RESOLUTION) == "overwrite"
    )
