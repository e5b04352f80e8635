"""`compute-cell-operator decommission` as a person runs it: role G, bound only meanwhile."""

from __future__ import annotations

import asyncio
import subprocess
from typing import Final

from compute_api_types.wire import JsonObject
from e2e.backends.port import HUB, ROOT, Run
from e2e.backends.real import installing, programs
from e2e.backends.real.theatre import DECOMMISSIONER, Theatre
from e2e.planes.client import PlaneClient
from e2e.planes.stack import RealPlanes

RBAC: Final = "rbac.authorization.k8s.io"
NAME: Final = "decommissioner"
ROLES: Final = {HUB: "compute-cell-decommission", ROOT: "compute-cell-decommission-quota"}


async def run_decommission(theatre: Theatre, arguments: tuple[str, ...]) -> Run:
    """Binds role G, runs the command, takes the bindings away again."""
    planes = theatre.planes
    folder = planes.run_folder.path / "operators"
    folder.mkdir(exist_ok=True)  # where they are pods, nobody else has made it
    user = DECOMMISSIONER.user
    hub_token = planes.plane(HUB).site.tokens.of(HUB, user)
    hub = installing.write_kubeconfig(
        folder / f"{NAME}.hub", planes, planes.plane(HUB).server, hub_token
    )
    quota_token = planes.plane(ROOT).site.tokens.of(ROOT, user)
    quota = installing.write_kubeconfig(
        folder / f"{NAME}.milo", planes, planes.milo.server(), quota_token
    )
    command = [
        str(theatre.programs[programs.CELL]),
        "decommission",
        "--hub-kubeconfig",
        str(hub),
        "--quota-kubeconfig",
        str(quota),
        *arguments,
    ]
    await _bind(planes)
    try:
        # In a thread: a scenario's loop must not stand still while a program runs.
        done = await asyncio.to_thread(_run, command)
    finally:
        await _unbind(planes)
    return Run(done.returncode, done.stdout + done.stderr)


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


async def _bind(planes: RealPlanes) -> None:
    for plane, role in ROLES.items():
        async with planes.plane(plane).client() as client:
            await client.apply(_binding(role))
    # Projects believe a refusal for a second (neighbours.md 4.5).
    await asyncio.sleep(1.5)


async def _unbind(planes: RealPlanes) -> None:
    for plane, role in ROLES.items():
        async with planes.plane(plane).client() as client:
            await _delete(client, _binding(role))


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
