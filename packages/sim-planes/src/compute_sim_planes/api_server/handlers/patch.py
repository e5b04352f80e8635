"""Patches: merge, JSON, strategic merge for built-in kinds, and server-side apply."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from compute_sim_planes.api_server import api_errors, field_problems, writes
from compute_sim_planes.api_server.answers import answer_object
from compute_sim_planes.api_server.bodies import (
    check_name,
    check_place,
    check_type,
    media_type,
    parse_json,
    parse_yaml,
)
from compute_sim_planes.api_server.call import Call, check_options, is_dry_run
from compute_sim_planes.api_server.handlers.write import check_version
from compute_sim_planes.api_server.patches import (
    PatchError,
    PatchSyntaxError,
    json_patch,
    merge_patch,
)
from compute_sim_planes.api_server.presentation import present_object
from compute_sim_planes.api_server.server_side_apply import (
    AppliedTypeError,
    ApplyConflictError,
    apply_configuration,
)
from compute_sim_planes.api_server.storage.records import Stored, encode
from compute_sim_planes.api_server.strategic_merge import strategic_merge_patch
from compute_sim_planes.api_server.transport import Answer
from compute_sim_planes.api_server.writes import WriteOptions
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


async def patch(call: Call) -> Answer:
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
    raw = await writes.update(
        call,
        lambda found, before: _patched(call, found, before, lambda o: patch_with(o, parsed)),
        options,
    )
    return answer_object(present_object(call, raw), 200, call.warnings)


def _parse_patch(call: Call, content_type: str) -> JsonValue:
    parsed = parse_json(call.body)
    if content_type == JSON_PATCH and not isinstance(parsed, list):
        expected = "object into Go value of type []handlers.jsonPatchOp"
    elif content_type != JSON_PATCH and not isinstance(parsed, dict):
        expected = "array into Go value of type map[string]interface {}"
    else:
        return parsed
    raise api_errors.bad_request(f"error decoding patch: json: cannot unmarshal {expected}")


def _check_options(call: Call) -> None:
    if "force" in call.query:
        problem = field_problems.forbidden("force", "may not be specified for non-apply patch")
        raise api_errors.invalid_options("PatchOptions", [problem])


def _options(call: Call, *, recorded: bool = False) -> WriteOptions:
    check_options(call, "PatchOptions")
    dry_run = is_dry_run(call.query.get("dryRun"), "PatchOptions")
    return WriteOptions(call.field_manager, dry_run, call.path.subresource, recorded)


def _patched(
    call: Call, found: Stored, before: JsonObject, patch_it: Callable[[JsonObject], JsonObject]
) -> JsonObject:
    try:
        wanted = patch_it(before)
    except PatchSyntaxError as error:
        raise api_errors.bad_request(str(error)) from error
    except PatchError as error:
        raise api_errors.patch_failed() from error
    check_type(call.kind, wanted)
    try:
        wanted = writes.shape(call, wanted, before)
    except api_errors.ApiError as error:
        # What a patch made of the object cannot be read: a problem of the patch, to a real server.
        problem = field_problems.invalid("patch", encode(wanted).decode(), error.message)
        raise api_errors.invalid_kind("", "", "", [problem]) from error
    check_place(call, wanted)
    check_name(call, wanted)
    check_version(call, found, wanted)
    return wanted


async def _apply(call: Call) -> Answer:
    if not call.query.get("fieldManager"):
        problem = field_problems.required("fieldManager", "is required for apply patch")
        raise api_errors.invalid_options("PatchOptions", [problem])
    applied = _parse_applied(call)
    options = _options(call, recorded=True)
    store, resource = call.state.store, call.kind.group_resource
    if store.get(resource, call.namespace, call.name) is not None:
        raw = await writes.update(
            call, lambda found, before: _applied(call, found, before, applied), options
        )
        return answer_object(present_object(call, raw), 200, call.warnings)
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
    wanted = _merge(call, None, applied)
    raw = await writes.create(call, wanted, options)
    return answer_object(present_object(call, raw), 201, call.warnings)


def _parse_applied(call: Call) -> JsonObject:
    applied = parse_yaml(call.body)
    if not isinstance(applied, dict):
        raise api_errors.bad_request("error decoding YAML: the document is no object")
    check_type(call.kind, applied)
    check_place(call, applied)
    metadata = object_at(applied, "metadata")
    metadata.setdefault("name", call.name)
    check_name(call, applied)
    if metadata.get("managedFields"):
        raise api_errors.bad_request("metadata.managedFields must be nil")
    metadata.pop("managedFields", None)
    metadata.pop("creationTimestamp", None)
    return applied


def _applied(call: Call, found: Stored, before: JsonObject, applied: JsonObject) -> JsonObject:
    metadata = object_at(applied, "metadata")
    version = string_at(metadata, "resourceVersion")
    if version and version != str(found.revision):
        raise api_errors.conflict(call.kind.group_resource, call.name)
    return _merge(call, before, applied)


_ALWAYS_TAKEN: Final = frozenset({"apiVersion", "kind"})


def _resets(call: Call, applied: JsonObject) -> frozenset[str]:
    """The fields this request may neither write nor own."""
    if call.path.subresource == "status":
        return frozenset(applied) - _ALWAYS_TAKEN - {"status"}
    return frozenset({"status"}) if call.kind.has_status else frozenset()


def _merge(call: Call, found: JsonObject | None, applied: JsonObject) -> JsonObject:
    kind, subresource = call.kind, call.path.subresource
    try:
        merged = apply_configuration(
            found,
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
    return writes.shape(call, merged)
