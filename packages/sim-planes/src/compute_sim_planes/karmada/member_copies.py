"""One copy in one member: made, kept as wanted, deleted.

What the member added to it (labels, annotations, finalizers, owners) stays; what the hub once sent
and no longer has goes. A copy that is not Karmada's is taken over only where the policy says so.
"""

from __future__ import annotations

from typing import Final

from compute_sim_planes.client import Resource
from compute_sim_planes.client_errors import ConflictError
from compute_sim_planes.json_copies import copy_object
from compute_sim_planes.json_types import (
    JsonObject,
    JsonValue,
    array_at,
    ensure_object,
    string_at,
    string_map_at,
)
from compute_sim_planes.karmada.interpreters import Interpreters
from compute_sim_planes.karmada.kinds import (
    CONFLICT_RESOLUTION,
    MANAGED,
    MANAGED_ANNOTATIONS,
    MANAGED_LABELS,
)
from compute_sim_planes.karmada.members import Member
from compute_sim_planes.karmada.metadata import (
    annotations_of,
    labels_of,
    name_of,
    namespace_of,
    version_of,
)
from compute_sim_planes.karmada.retrying import NotYetError
from compute_sim_planes.karmada.works import prune
from compute_sim_planes.keyed_work import key_of

_ATTEMPTS: Final = 5


async def ensure_copy(
    member: Member, resource: Resource, manifest: JsonObject, interpreters: Interpreters
) -> None:
    """The copy is as the manifest says; raises what the member said against it."""
    found = await member.find(resource, key_of(manifest))
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            if found is None:
                await create_copy(member, resource, manifest)
            else:
                await update_copy(member, resource, manifest, found, interpreters)
        except ConflictError:
            # The member writes its status all the time: made again from what is there now.
            if attempt == _ATTEMPTS:
                raise
            key = key_of(manifest)
            found = await member.client().get(resource, key.name, key.namespace)
        else:
            return


async def create_copy(member: Member, resource: Resource, manifest: JsonObject) -> None:
    made = await member.client().create(resource, manifest)
    member.record(resource, key_of(manifest), made)


async def update_copy(
    member: Member,
    resource: Resource,
    manifest: JsonObject,
    found: JsonObject,
    interpreters: Interpreters,
) -> None:
    """Writes only what differs."""
    key = key_of(manifest)
    if not _may_take(manifest, found):
        place = f"kind={resource.kind}, {namespace_of(found)}/{name_of(found)}"
        raise NotYetError(
            f"resource({place}) already exists in the cluster {member.name} and the "
            f"{CONFLICT_RESOLUTION} strategy value is empty, Karmada will not manage this resource"
        )
    wanted = interpreters.retain(retain_member_fields(manifest, found), found)
    if wanted == retain_member_fields(prune(found), found):
        member.record(resource, key, found)
        return
    member.record(resource, key, await member.client().update(resource, wanted))


def needs_update(
    member: Member, resource: Resource, manifest: JsonObject, found: JsonObject
) -> bool:
    """Whether a copy is other than it was left; a member's own defaults are no difference."""
    if not member.is_recorded(resource, key_of(manifest), found):
        return True
    return labels_of(manifest) != labels_of(found)


async def delete_copy(member: Member, resource: Resource, manifest: JsonObject) -> None:
    """Asks for the deletion and does not wait for it; what is not Karmada's stays."""
    key = key_of(manifest)
    found = await member.find(resource, key)
    if found is None or not is_managed(found):
        return
    await member.client().delete(
        resource, key.name, namespace=key.namespace, propagation="Background"
    )
    member.forget(resource, key)


def is_managed(found: JsonObject) -> bool:
    return labels_of(found).get(MANAGED) == "true"


def retain_member_fields(wanted: JsonObject, found: JsonObject) -> JsonObject:
    """The wanted object with what belongs to the member's copy. Pure."""
    kept = copy_object(wanted)
    metadata = ensure_object(kept, "metadata")
    metadata["resourceVersion"] = version_of(found)
    for field in ("finalizers", "ownerReferences"):
        metadata.pop(field, None)
        if entries := array_at(found, "metadata", field):
            metadata[field] = entries
    managed = annotations_of(found)
    for field, record in (("labels", MANAGED_LABELS), ("annotations", MANAGED_ANNOTATIONS)):
        once_sent = set(managed.get(record, "").split(","))
        sent = string_map_at(wanted, "metadata", field)
        own: dict[str, JsonValue] = {
            name: value
            for name, value in string_map_at(found, "metadata", field).items()
            if name not in sent and name not in once_sent
        }
        if merged := {**own, **sent}:
            metadata[field] = merged
    return kept


def _may_take(manifest: JsonObject, found: JsonObject) -> bool:
    return is_managed(found) or (
        string_at(manifest, "metadata", "annotations", CONFLICT_RESOLUTION) == "overwrite"
    )
