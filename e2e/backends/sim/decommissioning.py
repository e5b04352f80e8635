"""Runs `compute-cell-operator decommission` on simulated planes as a user with role G.

The command's own parser and its own `decommission` are used; only the connections are simulated.
The kubeconfigs in its arguments do not exist.
"""

from __future__ import annotations

from typing import Final

from compute_api_types import labels, names
from compute_api_types.wire import JsonObject
from compute_cell_operator.decommission.command import (
    CONTROLLER,
    decommission,
    parse_command,
)
from compute_cell_operator.decommission.removal import RemovalDeps
from compute_cell_operator.planes import HUB as HUB_PLANE
from compute_cell_operator.wiring import COMPONENT
from compute_operator_kit.client.flow_control import FlowControl
from compute_operator_kit.client.http_client import HttpKubeClient
from compute_operator_kit.client.interface import FieldOwner
from compute_operator_kit.client.rest import RestConfig
from compute_operator_kit.core.keys import Role
from compute_quota_client import QuotaClient, QuotaSettings
from compute_quota_client import Surroundings as QuotaSurroundings
from compute_sim_planes.api_server.authz.identity import authenticated
from compute_sim_planes.api_server.manifests import apply_manifests
from compute_sim_planes.api_server.plane import Plane
from e2e.backends.sim.blueprints import MILO
from e2e.backends.sim.planes import SimPlanes
from e2e.backends.sim.quota_transport import QuotaTransport
from e2e.world.port import HUB, CommandResult

USER_AGENT_PREFIX: Final = "person:decommissioning"
ROLES: Final = {"hub": "compute-cell-decommission", "root": "compute-cell-decommission-quota"}
_FILES: Final = ("--hub-kubeconfig", "hub", "--quota-kubeconfig", "quota")
_GROUP: Final = "rbac.authorization.k8s.io"
_BINDINGS: Final = f"/apis/{_GROUP}/v1/clusterrolebindings/decommissioning"
_LEASE_BINDINGS: Final = (
    f"/apis/{_GROUP}/v1/namespaces/{names.CELL_LEASES}/rolebindings/decommissioning"
)


async def run_decommission(planes: SimPlanes, *arguments: str) -> CommandResult:
    """Runs the command and returns its exit code and output."""
    command = parse_command(COMPONENT, (*arguments, *_FILES))
    places = {"hub": planes.at(HUB), "root": planes.milo.planes.root}
    for side, plane in places.items():
        await apply_manifests(plane.connect(), [_binding(ROLES[side])])
    await apply_manifests(places["hub"].connect(), [_lease_binding()])
    lines: list[str] = []
    quota = _open_quota(planes)
    try:
        means = RemovalDeps(_open_hub(planes), quota, planes.clock, lines.append)
        code = await decommission(command, means)
    finally:
        await quota.aclose()
        for plane in places.values():
            await _unbind(plane, _BINDINGS)
        await _unbind(places["hub"], _LEASE_BINDINGS)
    return CommandResult(int(code), "\n".join(lines))


def _open_hub(planes: SimPlanes) -> HttpKubeClient:
    transport = planes.record(
        planes.reach(HUB, authenticated(USER_AGENT_PREFIX)), HUB, USER_AGENT_PREFIX
    )
    lane = FlowControl(HUB_PLANE, planes.clock)
    connection = RestConfig(HUB_PLANE, Role.HUB, transport, lane, user_agent=COMPONENT)
    return HttpKubeClient(connection, FieldOwner(CONTROLLER, COMPONENT))


def _open_quota(planes: SimPlanes) -> QuotaClient:
    user = authenticated(USER_AGENT_PREFIX)
    return QuotaClient(
        MILO,
        transport=QuotaTransport(
            lambda name: planes.record(planes.reach(name, user), name, USER_AGENT_PREFIX)
        ),
        settings=QuotaSettings(user_agent=COMPONENT, field_manager=labels.QUOTA_MANAGER),
        surroundings=QuotaSurroundings(
            chance=planes.clock.random(USER_AGENT_PREFIX).random, wall_clock=planes.clock.now
        ),
    )


def _binding(role: str) -> JsonObject:
    return {
        "apiVersion": f"{_GROUP}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "decommissioning"},
        "roleRef": {"apiGroup": _GROUP, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": _GROUP, "kind": "User", "name": USER_AGENT_PREFIX}],
    }


def _lease_binding() -> JsonObject:
    """Of the role for the cell's Lease, in its namespace alone."""
    binding = _binding(ROLES["hub"])
    role: JsonObject = {"apiGroup": _GROUP, "kind": "Role", "name": ROLES["hub"]}
    metadata: JsonObject = {"name": "decommissioning", "namespace": names.CELL_LEASES}
    return {**binding, "kind": "RoleBinding", "metadata": metadata, "roleRef": role}


async def _unbind(plane: Plane, path: str) -> None:
    answer = await plane.connect().request("DELETE", path, {}, None)
    await answer.close()
