"""Milo in a stack: the gateway and Milo's controllers, with their settings and addresses."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import BaseModel

from compute_sim_planes.json_types import JsonObject
from compute_sim_planes.milo.kinds import PROJECTS
from e2e.harness.access.client import Endpoint, PlaneClient, has_condition
from e2e.harness.access.kubeconfig import Context
from e2e.harness.gateway.routing import GROUP
from e2e.harness.gateway.settings import ControllerSettings, GatewaySettings
from e2e.harness.planes.identities import ADMIN
from e2e.harness.planes.plane import TOKENS_PATH, RealPlane
from e2e.harness.planes.stack_runtime import StackRuntime
from e2e.harness.planes.topology import Role
from e2e.harness.processes import probes
from e2e.harness.processes.process import Command, ManagedProcess, Probe
from e2e.harness.stack.control_server import ControlServer

TREE: Final = Path(__file__).parents[3]
CONTEXT: Final = "milo"
FAULT_ROUTES: Final = "ways.json"


@dataclass(frozen=True, slots=True)
class Milo:
    """The gateway, endpoints of planes through it, and the controllers."""

    root: RealPlane
    # All planes of the stack; projects are added and removed.
    planes: Mapping[str, RealPlane]
    port: int
    gateway: ManagedProcess
    controllers: ManagedProcess

    @property
    def projects(self) -> tuple[RealPlane, ...]:
        return tuple(p for p in tuple(self.planes.values()) if p.spec.role is Role.PROJECT)

    def server(self, project: str = "") -> str:
        """The address of the root or of a project, even one that does not exist."""
        origin = self.root.runtime.server_at(self.port)
        path = f"/apis/{GROUP}/v1alpha1/projects/{project}/control-plane" if project else ""
        return origin + path

    def endpoint(self, project: str = "", user: str = ADMIN.user) -> Endpoint:
        """Credentials are the root's: Milo has no others."""
        runtime = self.root.runtime
        return Endpoint(
            self.server(project), runtime.pki.authority, runtime.tokens.of(self.root.name, user)
        )

    def client(self, project: str = "", user: str = ADMIN.user) -> PlaneClient:
        return PlaneClient(self.endpoint(project, user))

    def contexts(self) -> list[Context]:
        """`milo` is the root and `milo-<project>` a project, as users of the platform reach
        them.
        """
        pki = self.root.runtime.pki
        names = {CONTEXT: "", **{f"{CONTEXT}-{plane.name}": plane.name for plane in self.projects}}
        return [
            Context(name, self.server(project), pki.authority, pki.admin)
            for name, project in names.items()
        ]


def a_project_named(name: str) -> JsonObject:
    return {
        "apiVersion": PROJECTS.api_version,
        "kind": PROJECTS.kind,
        "metadata": {"name": name},
        "spec": {"ownerRef": {"kind": "Organization", "name": "planes"}},
    }


def prepare_milo(
    root: RealPlane, planes: Mapping[str, RealPlane], control_server: ControlServer
) -> Milo:
    """Reserves the port and writes the settings; starts nothing."""
    runtime, run = root.runtime, root.runtime.settings.run
    port = runtime.ports.reserve()
    directory = run.of_plane(root.name, "projects.json")
    gateway = GatewaySettings(
        address=runtime.settings.address,
        port=port,
        certificate=run.pki("server.crt"),
        key=run.pki("server.key"),
        authority=run.pki("ca.crt"),
        tokens=run.of_plane(root.name, "tokens.csv"),
        front_proxy_certificate=run.pki("front-proxy.crt"),
        front_proxy_key=run.pki("front-proxy.key"),
        root=root.server,
        directory=directory,
        fault_routes=run.of_plane(root.name, FAULT_ROUTES),
        issuer=planes[runtime.issuer].server + TOKENS_PATH if runtime.issuer else "",
    )
    controllers = ControllerSettings(
        authority=run.pki("ca.crt"),
        root=root.server,
        root_token=runtime.tokens.of(root.name).token,
        directory=directory,
        address=control_server.address,
        port=control_server.port,
        secret=control_server.secret,
    )
    first = [plane.name for plane in planes.values() if plane.spec.role is Role.PROJECT]
    return Milo(
        root,
        planes,
        port,
        _add(root, "milo-gateway", "e2e.harness.gateway", gateway, _answers(runtime, root, port)),
        _add(
            root,
            "milo-controller-manager",
            "e2e.harness.gateway.controllers",
            controllers,
            _are_ready(root, first),
        ),
    )


def _add(
    root: RealPlane, name: str, module: str, settings: BaseModel, ready: Probe
) -> ManagedProcess:
    written = root.runtime.settings.run.write_for_plane(
        root.name, f"{name}.json", settings.model_dump_json()
    )
    program = Path(sys.executable)
    command = Command(name, program, ("-m", module, str(written)), {"PYTHONPATH": str(TREE)})
    return root.runtime.add_command(command, ready)


def _answers(runtime: StackRuntime, root: RealPlane, port: int) -> Probe:
    return probes.https_answers(runtime.endpoint(root.name, port), "/readyz")


def _are_ready(root: RealPlane, projects: Sequence[str]) -> Probe:
    """The controllers are ready when the initial projects are Ready."""

    async def ready() -> bool:
        async with root.client() as client:
            existing = [await client.find(PROJECTS.path(name=name)) for name in projects]
        return all(has_condition(project, "Ready") for project in existing)

    return ready
