"""Handler of patches: merge, JSON, strategic merge for built-in kinds, and server-side apply."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from compute_sim_planes.api_server import api_errors
from compute_sim_planes.api_server.handlers import storage_writes
from compute_sim_planes.api_server.handlers.storage_writes import WriteOptions
from compute_sim_planes.api_server.handlers.write import check_version
from compute_sim_planes.api_server.http.presentation import present_object
from compute_sim_planes.api_server.http.request import ApiRequest, check_options, is_dry_run
from compute_sim_planes.api_server.http.request_bodies import (
    check_name,
    check_object_namespace,
    check_type,
    media_type,
    parse_json,
    parse_yaml,
)
from compute_sim_planes.api_server.http.responses import object_response
from compute_sim_planes.api_server.http.transport import Response
from compute_sim_planes.api_server.patch.json_patch import (
    PatchError,
    PatchSyntaxError,
    json_patch,
    merge_patch,
)
from compute_sim_planes.api_server.patch.server_side_apply import (
    AppliedTypeError,
    ApplyConflictError,
    apply_configuration,
)
from compute_sim_planes.api_server.patch.strategic_merge import strategic_merge_patch
from compute_sim_planes.api_server.schema import field_problems
from compute_sim_planes.api_server.storage.records import StoredObject, encode
from compute_sim_planes.json_types import JsonObject, JsonValue, object_at, string_at

MERGE: Final = "application/merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
APPLY: Final = "application/apply-patch+yaml"

Patch = Callable[[JsonObject, JsonValue], JsonObject]
_PATCHES: Final[dict[str, Patch]] = {
    MERGE: merge_patch,
    JSON_PATCH: json_patch,
    STRATEGIC: strategic_merge_patch,
}


async def patch(call: ApiRequest) -> Response:
    content_type = media_type(call.headers)
    accepted = (
        (JSON_PATCH, MERGE, STRATEGIC, APPLY) if call.kind.built_in else (JSON_PATCH, MERGE, APPLY)
    )
    if content_type not in accepted:
        raise api_errors.unsupported_media_type(accepted)
    if content_type == APPLY:
        return await _apply(call)
    _check_options(call)
    parsed, patch_with = _parse_patch(call, content_type), _PATCHES[content_type]
    options = _options(call)
    raw = await storage_writes.update(
        call,
        lambda existing, before: _patched(call, existing, before, lambda o: patch_with(o, parsed)),
        options,
    )
    return object_response(present_object(call, raw), 200, call.warnings)


def _parse_patch(call: ApiRequest, content_type: str) -> JsonValue:
    parsed = parse_json(call.body)
    if content_type == JSON_PATCH and not isinstance(parsed, list):
        expected = "object into Go value of type []handlers.jsonPatchOp"
    elif content_type != JSON_PATCH and not isinstance(parsed, dict):
        expected = "array into Go value of type map[string]interface {}"
    else:
        return parsed
    raise api_errors.bad_request(f"error decoding patch: json: cannot unmarshal {expected}")


def _check_options(call: ApiRequest) -> None:
    if "force" in call.query:
        problem = field_problems.forbidden("force", "may not be specified for non-apply patch")
        raise api_errors.invalid_options("PatchOptions", [problem])


def _options(call: ApiRequest, *, recorded: bool = False) -> WriteOptions:
    check_options(call, "PatchOptions")
    dry_run = is_dry_run(call.query.get("dryRun"), "PatchOptions")
    return WriteOptions(call.field_manager, dry_run, call.path.subresource, recorded)


def _patched(
    call: ApiRequest,
    existing: StoredObject,
    before: JsonObject,
    patch_it: Callable[[JsonObject], JsonObject],
) -> JsonObject:
    try:
        desired = patch_it(before)
    except PatchSyntaxError as error:
        raise api_errors.bad_request(str(error)) from error
    except PatchError as error:
        raise api_errors.patch_failed() from error
    check_type(call.kind, desired)
    try:
        desired = storage_writes.shape(call, desired, before)
    except api_errors.StatusError as error:
        # A patched object that cannot be decoded is reported as an error of the patch.
        problem = field_problems.invalid("patch", encode(desired).decode(), error.message)
        raise api_errors.invalid_kind("", "", "", [problem]) from error
    check_object_namespace(call, desired)
    check_name(call, desired)
    check_version(call, existing, desired)
    return desired


async def _apply(call: ApiRequest) -> Response:
    if not call.query.get("fieldManager"):
        problem = field_problems.required("fieldManager", "is required for apply patch")
        raise api_errors.invalid_options("PatchOptions", [problem])
    applied = _parse_applied(call)
    options = _options(call, recorded=True)
    store, resource = call.state.store, call.kind.group_resource
    if store.get(resource, call.namespace, call.name) is not None:
        raw = await storage_writes.update(
            call, lambda existing, before: _applied(call, existing, before, applied), options
        )
        return object_response(present_object(call, raw), 200, call.warnings)
    if call.path.subresource:
        raise api_errors.not_found(resource, call.name)
    uid = string_at(applied, "metadata", "uid")
    if uid:
        why = (
            f"uid mismatch: the provided object specified uid {uid}, "
            "and no existing object was found"
        )
        raise api_errors.conflict(resource, call.name, why)
    object_at(applied, "metadata").pop("resourceVersion", None)
    desired = _merge(call, None, applied)
    raw = await storage_writes.create(call, desired, options)
    return object_response(present_object(call, raw), 201, call.warnings)


def _parse_applied(call: ApiRequest) -> JsonObject:
    applied = parse_yaml(call.body)
    if not isinstance(applied, dict):
        raise api_errors.bad_request("error decoding YAML: the document is no object")
    check_type(call.kind, applied)
    check_object_namespace(call, applied)
    metadata = object_at(applied, "metadata")
    metadata.setdefault("name", call.name)
    check_name(call, applied)
    if metadata.get("managedFields"):
        raise api_errors.bad_request("metadata.managedFields must be nil")
    metadata.pop("managedFields", None)
    metadata.pop("creationTimestamp", None)
    return applied


def _applied(
    call: ApiRequest, existing: StoredObject, before: JsonObject, applied: JsonObject
) -> JsonObject:
    metadata = object_at(applied, "metadata")
    version = string_at(metadata, "resourceVersion")
    if version and version != str(existing.revision):
        raise api_errors.conflict(call.kind.group_resource, call.name)
    return _merge(call, before, applied)


_ALWAYS_TAKEN: Final = frozenset({"apiVersion", "kind"})


def _resets(call: ApiRequest, applied: JsonObject) -> frozenset[str]:
    """The fields that this request may neither write nor own."""
    if call.path.subresource == "status":
        return frozenset(applied) - _ALWAYS_TAKEN - {"status"}
    return frozenset({"status"}) if call.kind.has_status else frozenset()


def _merge(call: ApiRequest, document: JsonObject | None, applied: JsonObject) -> JsonObject:
    kind, subresource = call.kind, call.path.subresource
    try:
        merged = apply_configuration(
            document,
            applied,
            manager=call.query["fieldManager"],
            force=call.flag("force"),
            schema=kind.schema,
            now=call.state.clock.now(),
            subresource=subresource,
            resets=_resets(call, applied),
        )
    except ApplyConflictError as error:
        causes: list[JsonValue] = [conflict.cause() for conflict in error.conflicts]
        raise api_errors.apply_conflict(error.message, causes) from error
    except AppliedTypeError as error:
        metadata = object_at(applied, "metadata")
        subject = f"{string_at(metadata, 'namespace')}/{string_at(metadata, 'name')}"
        raise api_errors.unexplained(
            f"failed to create typed patch object ({subject}; {kind.api_version}, "
            f"Kind={kind.kind}): {error}"
        ) from error
    return storage_writes.shape(call, merged)
