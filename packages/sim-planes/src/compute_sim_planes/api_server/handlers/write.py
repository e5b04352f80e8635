"""Writes of a whole object: create, and update of it or of its status."""

from __future__ import annotations

from compute_sim_planes.api_server import api_errors, field_problems, writes
from compute_sim_planes.api_server.answers import answer_object
from compute_sim_planes.api_server.bodies import check_name, check_place, parse_object
from compute_sim_planes.api_server.call import Call, check_options, is_dry_run
from compute_sim_planes.api_server.kinds import GroupResource
from compute_sim_planes.api_server.presentation import present_object
from compute_sim_planes.api_server.storage.records import Stored
from compute_sim_planes.api_server.transport import Answer
from compute_sim_planes.api_server.writes import WriteOptions
from compute_sim_planes.json_types import JsonObject, object_at, string_at


async def create(call: Call) -> Answer:
    options = _options(call, "CreateOptions")
    wanted = writes.shape(call, parse_object(call))
    check_place(call, wanted)
    raw = await writes.create(call, wanted, options)
    return answer_object(present_object(call, raw), 201, call.warnings)


async def update(call: Call) -> Answer:
    options = _options(call, "UpdateOptions")
    shaped = writes.shape(call, parse_object(call))
    check_place(call, shaped)
    check_name(call, shaped)
    if call.kind.create_on_update and not call.path.subresource and not _exists(call):
        object_at(shaped, "metadata").pop("resourceVersion", None)
        raw = await writes.create(call, shaped, options)
        return answer_object(present_object(call, raw), 201, call.warnings)
    raw = await writes.update(call, lambda found, _: _replace(call, found, shaped), options)
    return answer_object(present_object(call, raw), 200, call.warnings)


def _options(call: Call, kind: str) -> WriteOptions:
    check_options(call, kind)
    dry_run = is_dry_run(call.query.get("dryRun"), kind)
    return WriteOptions(call.field_manager, dry_run, call.path.subresource)


def _exists(call: Call) -> bool:
    found = call.state.store.get(call.kind.group_resource, call.namespace, call.name)
    return found is not None


def _replace(call: Call, found: Stored, wanted: JsonObject) -> JsonObject:
    """The wanted object, if it was made from the version that is found."""
    check_identity(call, found, wanted)
    check_version(call, found, wanted)
    # A copy, because an attempt that loses a race is made again from the same request.
    return {**wanted, "metadata": dict(object_at(wanted, "metadata"))}


def check_identity(call: Call, found: Stored, wanted: JsonObject) -> None:
    """Refuse a change that means another object than the one found."""
    uid = string_at(wanted, "metadata", "uid")
    if uid and uid != found.uid:
        raise api_errors.conflict(
            call.kind.group_resource,
            found.name,
            f"StorageError: invalid object, Code: 4, Key: {_storage_key(call, found)}, "
            "ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: "
            f"UID in precondition: {uid}, UID in object meta: {found.uid}",
        )


def _version_missing(resource: GroupResource, name: str) -> api_errors.ApiError:
    """Here a real server puts the plural where a validation error names the kind."""
    detail = "must be specified for an update"
    problem = field_problems.invalid("metadata.resourceVersion", 0, detail)
    return api_errors.invalid_kind(resource.group, resource.resource, name, [problem])


def check_version(call: Call, found: Stored, wanted: JsonObject) -> None:
    """Refuse a change that was made from another version than the one found."""
    version = string_at(wanted, "metadata", "resourceVersion")
    if version and not (version.isascii() and version.isdigit()):
        # Nobody checked it before the storage parses it.
        text = f'strconv.ParseUint: parsing "{version}": invalid syntax'
        raise api_errors.unexplained(text)
    if version and version != str(found.revision):
        raise api_errors.conflict(call.kind.group_resource, found.name)
    if not version and not call.kind.unconditional_update:
        raise _version_missing(call.kind.group_resource, found.name)


def _storage_key(call: Call, found: Stored) -> str:
    group = f"{call.kind.group}/" if call.kind.group else ""
    return f"/registry/{group}{call.kind.plural}/{found.key}"
