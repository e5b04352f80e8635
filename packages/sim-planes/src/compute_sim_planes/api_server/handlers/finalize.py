"""The `finalize` subresource of namespaces: how a client takes part in their end."""

from __future__ import annotations

from compute_sim_planes.api_server import api_errors, system_fields
from compute_sim_planes.api_server.answers import answer_object
from compute_sim_planes.api_server.bodies import check_name, parse_object
from compute_sim_planes.api_server.call import Call
from compute_sim_planes.api_server.kind_rules import rules_of
from compute_sim_planes.api_server.transport import Answer
from compute_sim_planes.json_types import array_at, ensure_object


async def finalize_namespace(call: Call) -> Answer:
    """Take over `spec.finalizers` and nothing else; the last one gone, the namespace goes too."""
    wanted = parse_object(call)
    check_name(call, wanted)
    store = call.state.store
    found = store.get(call.kind.group_resource, "", call.name)
    if found is None:
        raise api_errors.not_found(call.kind.group_resource, call.name)
    changed = found.decode()
    ensure_object(changed, "spec")["finalizers"] = array_at(wanted, "spec", "finalizers")
    if system_fields.may_leave(changed) and rules_of(call.kind).may_leave(changed):
        return answer_object(store.remove(found, call.user.name).raw)
    return answer_object(store.replace(found, call.kind, changed, call.user.name).raw)
