"""A person runs `compute-cell-operator decommission` on simulated planes, bound to role G for it.

Arguments are read by the command's own parser and carried out by its own `decommission`; only the
connections are the world's. The kubeconfigs it asks for name nothing here.
"""

from __future__ import annotations

from typing import Final

from compute_api_types import labels
from compute_api_types.wire import JsonObject
from compute_cell_operator.decommission.command import (
    CONTROLLER,
    decommission,
    parse_command,
)
from compute_cell_operator.decommission.removal import Means
from compute_cell_operator.plane_names import HUB as HUB_PLANE
from compute_cell_operator.wiring import COMPONENT
from compute_operator_kit.exchange import Connection
from compute_operator_kit.keys import Role
from compute_operator_kit.kube import Writer
from compute_operator_kit.kube_http import KubeHttp
from compute_operator_kit.lane import Lane
from compute_quota_client import QuotaClient, QuotaSettings
from compute_quota_client import Surroundings as QuotaSurroundings
from compute_sim_planes.api_server.identity import authenticated
from compute_sim_planes.api_server.plane import Plane
from compute_sim_planes.api_server.seeding import apply_manifests
from e2e.backends.port import HUB, Run
from e2e.backends.sim.blueprints import MILO
from e2e.backends.sim.planes import SimPlanes
from e2e.backends.sim.quota_way import QuotaWay

PERSON: Final = "person:decommissioning"
ROLES: Final = {"hub": "compute-cell-decommission", "root": "compute-cell-decommission-quota"}
_FILES: Final = ("--hub-kubeconfig", "hub", "--quota-kubeconfig", "quota")
_BINDINGS: Final = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/decommissioning"


async def run_decommission(planes: SimPlanes, *arguments: str) -> Run:
    """The command as a person runs it, and what it printed."""
    command = parse_command(COMPONENT, (*arguments, *_FILES))
    places = {"hub": planes.at(HUB), "root": planes.milo.planes.root}
    for side, plane in places.items():
        await apply_manifests(plane.connect(), [_binding(ROLES[side])])
    lines: list[str] = []
    quota = _open_quota(planes)
    try:
        means = Means(_open_hub(planes), quota, planes.clock, lines.append)
        code = await decommission(command, means)
    finally:
        await quota.aclose()
        for plane in places.values():
            await _unbind(plane)
    return Run(int(code), "\n".join(lines))


def _open_hub(planes: SimPlanes) -> KubeHttp:
    transport = planes.record(planes.reach(HUB, authenticated(PERSON)), HUB, PERSON)
    lane = Lane(HUB_PLANE, planes.clock)
    connection = Connection(HUB_PLANE, Role.HUB, transport, lane, user_agent=COMPONENT)
    return KubeHttp(connection, Writer(CONTROLLER, COMPONENT))


def _open_quota(planes: SimPlanes) -> QuotaClient:
    user = authenticated(PERSON)
    return QuotaClient(
        MILO,
        transport=QuotaWay(lambda name: planes.record(planes.reach(name, user), name, PERSON)),
        settings=QuotaSettings(user_agent=COMPONENT, field_manager=labels.QUOTA_MANAGER),
        surroundings=QuotaSurroundings(
            chance=planes.clock.random(PERSON).random, wall_clock=planes.clock.now
        ),
    )


def _binding(role: str) -> JsonObject:
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "decommissioning"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": group, "kind": "User", "name": PERSON}],
    }


async def _unbind(plane: Plane) -> None:
    answer = await plane.connect().request("DELETE", _BINDINGS, {}, None)
    await answer.close()
