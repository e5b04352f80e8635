"""Handler of the `finalize` subresource of namespaces, with which a client finishes a deletion."""

from __future__ import annotations

from compute_sim_planes.api_server import api_errors
from compute_sim_planes.api_server.http.request import ApiRequest
from compute_sim_planes.api_server.http.request_bodies import check_name, parse_object
from compute_sim_planes.api_server.http.responses import object_response
from compute_sim_planes.api_server.http.transport import Response
from compute_sim_planes.api_server.storage import system_fields
from compute_sim_planes.api_server.storage.kind_rules import rules_of
from compute_sim_planes.json_types import array_at, ensure_object


async def finalize_namespace(call: ApiRequest) -> Response:
    """Replace `spec.finalizers` only; without the last one the namespace is removed."""
    desired = parse_object(call)
    check_name(call, desired)
    store = call.state.store
    existing = store.get(call.kind.group_resource, "", call.name)
    if existing is None:
        raise api_errors.not_found(call.kind.group_resource, call.name)
    changed = existing.decode()
    ensure_object(changed, "spec")["finalizers"] = array_at(desired, "spec", "finalizers")
    if system_fields.can_be_removed(changed) and rules_of(call.kind).can_be_removed(changed):
        return object_response(store.remove(existing, call.user.name).raw)
    return object_response(store.replace(existing, call.kind, changed, call.user.name).raw)
