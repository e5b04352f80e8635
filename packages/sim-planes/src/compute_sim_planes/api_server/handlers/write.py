"""Handlers of create, and of update of an object or of its status."""

from __future__ import annotations

from compute_sim_planes.api_server import api_errors
from compute_sim_planes.api_server.handlers import storage_writes
from compute_sim_planes.api_server.handlers.storage_writes import WriteOptions
from compute_sim_planes.api_server.http.presentation import present_object
from compute_sim_planes.api_server.http.request import ApiRequest, check_options, is_dry_run
from compute_sim_planes.api_server.http.request_bodies import (
    check_name,
    check_object_namespace,
    parse_object,
)
from compute_sim_planes.api_server.http.responses import object_response
from compute_sim_planes.api_server.http.transport import Response
from compute_sim_planes.api_server.kinds.kind import GroupResource
from compute_sim_planes.api_server.schema import field_problems
from compute_sim_planes.api_server.storage.records import StoredObject
from compute_sim_planes.json_types import JsonObject, object_at, string_at


async def create(call: ApiRequest) -> Response:
    options = _options(call, "CreateOptions")
    desired = storage_writes.shape(call, parse_object(call))
    check_object_namespace(call, desired)
    raw = await storage_writes.create(call, desired, options)
    return object_response(present_object(call, raw), 201, call.warnings)


async def update(call: ApiRequest) -> Response:
    options = _options(call, "UpdateOptions")
    shaped = storage_writes.shape(call, parse_object(call))
    check_object_namespace(call, shaped)
    check_name(call, shaped)
    if call.kind.create_on_update and not call.path.subresource and not _exists(call):
        object_at(shaped, "metadata").pop("resourceVersion", None)
        raw = await storage_writes.create(call, shaped, options)
        return object_response(present_object(call, raw), 201, call.warnings)
    raw = await storage_writes.update(
        call, lambda existing, _: _replace(call, existing, shaped), options
    )
    return object_response(present_object(call, raw), 200, call.warnings)


def _options(call: ApiRequest, kind: str) -> WriteOptions:
    check_options(call, kind)
    dry_run = is_dry_run(call.query.get("dryRun"), kind)
    return WriteOptions(call.field_manager, dry_run, call.path.subresource)


def _exists(call: ApiRequest) -> bool:
    existing = call.state.store.get(call.kind.group_resource, call.namespace, call.name)
    return existing is not None


def _replace(call: ApiRequest, existing: StoredObject, desired: JsonObject) -> JsonObject:
    """The desired object, if it names the stored UID and version."""
    check_identity(call, existing, desired)
    check_version(call, existing, desired)
    # A copy, because after a lost race the same request is tried again.
    return {**desired, "metadata": dict(object_at(desired, "metadata"))}


def check_identity(call: ApiRequest, existing: StoredObject, desired: JsonObject) -> None:
    """Refuse a change with another UID than the stored object's."""
    uid = string_at(desired, "metadata", "uid")
    if uid and uid != existing.uid:
        raise api_errors.conflict(
            call.kind.group_resource,
            existing.name,
            f"StorageError: invalid object, Code: 4, Key: {_storage_key(call, existing)}, "
            "ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: "
            f"UID in precondition: {uid}, UID in object meta: {existing.uid}",
        )


def _version_missing(resource: GroupResource, name: str) -> api_errors.StatusError:
    """Here a real server puts the plural where a validation error names the kind."""
    detail = "must be specified for an update"
    problem = field_problems.invalid("metadata.resourceVersion", 0, detail)
    return api_errors.invalid_kind(resource.group, resource.resource, name, [problem])


def check_version(call: ApiRequest, existing: StoredObject, desired: JsonObject) -> None:
    """Refuse a change that was made from another version than the stored one."""
    version = string_at(desired, "metadata", "resourceVersion")
    if version and not (version.isascii() and version.isdigit()):
        # Not validated earlier: a real server parses it in the storage layer.
        text = f'strconv.ParseUint: parsing "{version}": invalid syntax'
        raise api_errors.unexplained(text)
    if version and version != str(existing.revision):
        raise api_errors.conflict(call.kind.group_resource, existing.name)
    if not version and not call.kind.unconditional_update:
        raise _version_missing(call.kind.group_resource, existing.name)


def _storage_key(call: ApiRequest, existing: StoredObject) -> str:
    group = f"{call.kind.group}/" if call.kind.group else ""
    return f"/registry/{group}{call.kind.plural}/{existing.key}"
