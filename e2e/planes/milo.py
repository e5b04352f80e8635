"""Milo's part in a stack: the gateway, its controllers, their settings and their addresses."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import BaseModel

from compute_sim_planes.json_types import JsonObject
from compute_sim_planes.milo.kinds import PROJECTS
from e2e.planes import probes
from e2e.planes.client import Endpoint, PlaneClient, has_condition
from e2e.planes.ear import Ear
from e2e.planes.gateway.routing import GROUP
from e2e.planes.gateway.settings import ControllerSettings, GatewaySettings
from e2e.planes.identities import ADMIN
from e2e.planes.kubeconfig import Context
from e2e.planes.plane import TOKENS_PATH, Plane
from e2e.planes.process import Command, ManagedProcess, Probe
from e2e.planes.site import Site
from e2e.planes.topology import Role

TREE: Final = Path(__file__).parents[2]
CONTEXT: Final = "milo"
WAYS: Final = "ways.json"


@dataclass(frozen=True, slots=True)
class Milo:
    """The gateway, how to reach planes through it, and the controllers behind it."""

    root: Plane
    # Of the whole stack; projects come and go in it.
    planes: Mapping[str, Plane]
    port: int
    gateway: ManagedProcess
    controllers: ManagedProcess

    @property
    def projects(self) -> tuple[Plane, ...]:
        return tuple(p for p in tuple(self.planes.values()) if p.spec.role is Role.PROJECT)

    def server(self, project: str = "") -> str:
        """The address of the root, or of a project, whether it exists or not."""
        origin = self.root.site.server_at(self.port)
        path = f"/apis/{GROUP}/v1alpha1/projects/{project}/control-plane" if project else ""
        return origin + path

    def endpoint(self, project: str = "", user: str = ADMIN.user) -> Endpoint:
        """Credentials are the root's: Milo has no others."""
        site = self.root.site
        return Endpoint(
            self.server(project), site.pki.authority, site.tokens.of(self.root.name, user)
        )

    def client(self, project: str = "", user: str = ADMIN.user) -> PlaneClient:
        return PlaneClient(self.endpoint(project, user))

    def contexts(self) -> list[Context]:
        """`milo` is the root and `milo-<project>` a project, as users of the platform see them."""
        pki = self.root.site.pki
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


def prepare_milo(root: Plane, planes: Mapping[str, Plane], ear: Ear) -> Milo:
    """Reserves the port and writes the settings; starts nothing."""
    site, run = root.site, root.site.ground.run
    port = site.ports.reserve()
    directory = run.of_plane(root.name, "projects.json")
    gateway = GatewaySettings(
        address=site.ground.address,
        port=port,
        certificate=run.pki("server.crt"),
        key=run.pki("server.key"),
        authority=run.pki("ca.crt"),
        tokens=run.of_plane(root.name, "tokens.csv"),
        front_proxy_certificate=run.pki("front-proxy.crt"),
        front_proxy_key=run.pki("front-proxy.key"),
        root=root.server,
        directory=directory,
        ways=run.of_plane(root.name, WAYS),
        issuer=planes[site.issuer].server + TOKENS_PATH if site.issuer else "",
    )
    controllers = ControllerSettings(
        authority=run.pki("ca.crt"),
        root=root.server,
        root_token=site.tokens.of(root.name).token,
        directory=directory,
        address=ear.address,
        port=ear.port,
        secret=ear.secret,
    )
    first = [plane.name for plane in planes.values() if plane.spec.role is Role.PROJECT]
    return Milo(
        root,
        planes,
        port,
        _add(root, "milo-gateway", "e2e.planes.gateway", gateway, _answers(site, root, port)),
        _add(
            root,
            "milo-controller-manager",
            "e2e.planes.gateway.controllers",
            controllers,
            _are_ready(root, first),
        ),
    )


def _add(root: Plane, name: str, module: str, settings: BaseModel, ready: Probe) -> ManagedProcess:
    written = root.site.ground.run.write_for_plane(
        root.name, f"{name}.json", settings.model_dump_json()
    )
    program = Path(sys.executable)
    command = Command(name, program, ("-m", module, str(written)), {"PYTHONPATH": str(TREE)})
    return root.site.add_command(command, ready)


def _answers(site: Site, root: Plane, port: int) -> Probe:
    return probes.https_answers(site.endpoint(root.name, port), "/readyz")


def _are_ready(root: Plane, projects: Sequence[str]) -> Probe:
    """Controllers serve once the projects that are there from the start are Ready."""

    async def ready() -> bool:
        async with root.client() as client:
            found = [await client.find(PROJECTS.path(name=name)) for name in projects]
        return all(has_condition(project, "Ready") for project in found)

    return ready
