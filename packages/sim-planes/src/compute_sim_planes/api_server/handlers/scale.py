"""Handlers of the `scale` subresource: an object's number of replicas as `autoscaling/v1` Scale.

An autoscaler reads and writes it without knowing the kind, and with a right to nothing else of the
object. Without a number in the object a read is an internal error, and only a write that brings one
is accepted.
"""

from __future__ import annotations

from typing import Final

from compute_sim_planes.api_server import api_errors
from compute_sim_planes.api_server.handlers import storage_writes
from compute_sim_planes.api_server.handlers.storage_writes import WriteOptions
from compute_sim_planes.api_server.handlers.write import check_identity
from compute_sim_planes.api_server.http.request import ApiRequest, check_options, is_dry_run
from compute_sim_planes.api_server.http.request_bodies import media_type, parse_json
from compute_sim_planes.api_server.http.responses import object_response
from compute_sim_planes.api_server.http.transport import Response
from compute_sim_planes.api_server.kinds.kind import ScalePaths
from compute_sim_planes.api_server.patch.json_patch import (
    PatchError,
    PatchSyntaxError,
    json_patch,
    merge_patch,
)
from compute_sim_planes.api_server.schema import field_problems
from compute_sim_planes.api_server.storage.records import StoredObject, decode, encode
from compute_sim_planes.json_types import (
    JsonObject,
    JsonValue,
    integer_at,
    object_at,
    string_at,
    value_at,
)

VERBS: Final = frozenset({"get", "patch", "update"})
_NO_NUMBER: Final = -(2**31)
"""The number that a patch of an object without one starts from, and must not leave."""
_COPIED: Final = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
_PATCHES: Final = {
    "application/merge-patch+json": merge_patch,
    "application/json-patch+json": json_patch,
}


async def scale(call: ApiRequest, verb: str) -> Response:
    """Answers a request about the Scale of one object."""
    paths = call.kind.scale
    if paths is None:
        raise api_errors.not_found(call.kind.group_resource, call.name)
    if verb == "get":
        existing = call.state.store.get(call.kind.group_resource, call.namespace, call.name)
        if existing is None:
            raise api_errors.not_found(call.kind.group_resource, call.name)
        document = existing.decode_as(call.kind)
        if integer_at(document, *paths.replicas) is None:
            raise api_errors.internal(f"the spec replicas field {_quoted(paths)} does not exist")
        return object_response(encode(derive_scale(document, paths)))
    check_options(call, "PatchOptions" if verb == "patch" else "UpdateOptions")
    dry_run = is_dry_run(call.query.get("dryRun"), "UpdateOptions")

    def edit(existing: StoredObject, before: JsonObject) -> JsonObject:
        shown = derive_scale(before, paths)
        if integer_at(before, *paths.replicas) is None:
            shown["spec"] = {"replicas": _NO_NUMBER}
        wanted = _wanted(call, verb, shown)
        return _edited(call, paths, existing, before, wanted)

    raw = await storage_writes.update(call, edit, WriteOptions(call.field_manager, dry_run))
    return object_response(encode(derive_scale(decode(raw), paths)))


def derive_scale(document: JsonObject, paths: ScalePaths) -> JsonObject:
    metadata = object_at(document, "metadata")
    status: JsonObject = {"replicas": integer_at(document, *paths.status_replicas) or 0}
    if selector := string_at(document, *paths.selector):
        status["selector"] = selector
    replicas = integer_at(document, *paths.replicas)
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: metadata[name] for name in _COPIED if name in metadata},
        "spec": {} if not replicas else {"replicas": replicas},
        "status": status,
    }


def _wanted(call: ApiRequest, verb: str, shown: JsonObject) -> JsonObject:
    if verb == "update":
        wanted = parse_json(call.body)
        return wanted if isinstance(wanted, dict) else {}
    patch = _PATCHES.get(media_type(call.headers))
    if patch is None:
        raise api_errors.unsupported_media_type(tuple(_PATCHES))
    try:
        return patch(shown, parse_json(call.body))
    except PatchSyntaxError as error:
        raise api_errors.bad_request(str(error)) from error
    except PatchError as error:
        raise api_errors.patch_failed() from error


def _edited(
    call: ApiRequest,
    paths: ScalePaths,
    existing: StoredObject,
    before: JsonObject,
    wanted: JsonObject,
) -> JsonObject:
    check_identity(call, existing, wanted)
    version = string_at(wanted, "metadata", "resourceVersion")
    if version and version != str(existing.revision):
        raise api_errors.conflict(call.kind.group_resource, existing.name)
    replicas: JsonValue = value_at(wanted, "spec", "replicas")
    number = replicas if type(replicas) is int else 0
    if number == _NO_NUMBER:
        raise api_errors.bad_request(f"the spec replicas field {_quoted(paths)} cannot be empty")
    if number < 0:
        detail = "should be a non-negative integer"
        problem = field_problems.invalid("spec.replicas", number, detail)
        raise api_errors.invalid_kind("autoscaling", "Scale", existing.name, [problem])
    return storage_writes.shape(call, _with(before, paths.replicas, number), before)


def _quoted(paths: ScalePaths) -> str:
    return f'".{".".join(paths.replicas)}"'


def _with(document: JsonObject, path: tuple[str, ...], value: int) -> JsonObject:
    name, *rest = path
    if not rest:
        return {**document, name: value}
    return {**document, name: _with(object_at(document, name), tuple(rest), value)}
