"""Milo's part in a stack: the gateway's process, its settings and its addresses."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from e2e.planes import probes
from e2e.planes.client import Endpoint, PlaneClient
from e2e.planes.gateway.routing import GROUP
from e2e.planes.gateway.settings import GatewaySettings
from e2e.planes.identities import ADMIN
from e2e.planes.kubeconfig import Context
from e2e.planes.plane import Plane
from e2e.planes.process import Command, ManagedProcess

TREE: Final = Path(__file__).parents[2]
CONTEXT: Final = "milo"


@dataclass(frozen=True, slots=True)
class Milo:
    """The gateway and how to reach planes through it."""

    root: Plane
    projects: tuple[Plane, ...]
    port: int
    gateway: ManagedProcess

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


def prepare_milo(root: Plane, projects: Sequence[Plane]) -> Milo:
    """Reserves the port and writes the settings; starts nothing."""
    site, run = root.site, root.site.ground.run
    port = site.ports.reserve()
    settings = GatewaySettings(
        address=site.ground.address,
        port=port,
        certificate=run.pki("server.crt"),
        key=run.pki("server.key"),
        authority=run.pki("ca.crt"),
        tokens=run.of_plane(root.name, "tokens.csv"),
        front_proxy_certificate=run.pki("front-proxy.crt"),
        front_proxy_key=run.pki("front-proxy.key"),
        root=root.server,
        root_token=site.tokens.of(root.name).token,
        projects={plane.name: plane.server for plane in projects},
        project_tokens={plane.name: site.tokens.of(plane.name).token for plane in projects},
    )
    written = run.write_for_plane(root.name, "gateway.json", settings.model_dump_json())
    command = Command(
        "milo-gateway",
        Path(sys.executable),
        ("-m", "e2e.planes.gateway", str(written)),
        {"PYTHONPATH": str(TREE)},
    )
    ready = probes.https_answers(site.endpoint(root.name, port), "/readyz")
    return Milo(root, tuple(projects), port, site.add_command(command, ready))
