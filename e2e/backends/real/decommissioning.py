"""Runs `compute-cell-operator decommission` with role G, which is bound only during the run."""

from __future__ import annotations

import asyncio
import subprocess
from typing import Final

from compute_api_types import names
from compute_api_types.wire import JsonObject
from e2e.backends.real import installing, programs
from e2e.backends.real.environment import DECOMMISSIONER, RealEnvironment
from e2e.harness.access.client import PlaneClient
from e2e.harness.stack.stack import RealPlanes
from e2e.world.port import HUB, ROOT, CommandResult

RBAC: Final = "rbac.authorization.k8s.io"
NAME: Final = "decommissioner"
ROLES: Final = {HUB: "compute-cell-decommission", ROOT: "compute-cell-decommission-quota"}


async def run_decommission(
    environment: RealEnvironment, arguments: tuple[str, ...]
) -> CommandResult:
    """Binds role G, runs the command, removes the bindings."""
    planes = environment.planes
    folder = planes.run_folder.path / "operators"
    folder.mkdir(exist_ok=True)  # with operators as pods the folder does not exist yet
    user = DECOMMISSIONER.user
    hub_token = planes.plane(HUB).runtime.tokens.of(HUB, user)
    hub = installing.write_kubeconfig(
        folder / f"{NAME}.hub", planes, planes.plane(HUB).server, hub_token
    )
    quota_token = planes.plane(ROOT).runtime.tokens.of(ROOT, user)
    quota = installing.write_kubeconfig(
        folder / f"{NAME}.milo", planes, planes.milo.server(), quota_token
    )
    command = [
        str(environment.programs[programs.CELL]),
        "decommission",
        "--hub-kubeconfig",
        str(hub),
        "--quota-kubeconfig",
        str(quota),
        *arguments,
    ]
    await _bind(planes)
    try:
        # In a thread, so that the scenario's loop is not blocked while the program runs.
        done = await asyncio.to_thread(_run, command)
    finally:
        await _unbind(planes)
    return CommandResult(done.returncode, done.stdout + done.stderr)


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


async def _bind(planes: RealPlanes) -> None:
    for plane, role in ROLES.items():
        async with planes.plane(plane).client() as client:
            await client.apply(_binding(role))
    async with planes.plane(HUB).client() as client:
        await client.apply(_lease_binding())
    # Projects cache a refusal for a second (neighbours.md 4.5).
    await asyncio.sleep(1.5)


async def _unbind(planes: RealPlanes) -> None:
    for plane, role in ROLES.items():
        async with planes.plane(plane).client() as client:
            await _delete(client, _binding(role))
    async with planes.plane(HUB).client() as client:
        await _delete(client, _lease_binding())


async def _delete(client: PlaneClient, document: JsonObject) -> None:
    await client.delete(await client.path_of(document))


def _binding(role: str) -> JsonObject:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": NAME},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": DECOMMISSIONER.user}],
    }


def _lease_binding() -> JsonObject:
    """Of the role for the cell's Lease, in its namespace alone."""
    binding = _binding(ROLES[HUB])
    role: JsonObject = {"apiGroup": RBAC, "kind": "Role", "name": ROLES[HUB]}
    metadata: JsonObject = {"name": NAME, "namespace": names.CELL_LEASES}
    return {**binding, "kind": "RoleBinding", "metadata": metadata, "roleRef": role}
