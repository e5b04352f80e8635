"""Simulated planes behind one HTTPS server, in real time: what a process of ours is pointed at.

Home and Milo's root are one plane, as where the operator runs in Milo's own cluster; the hub and
the project's control plane are found under paths of the same server. The operator's token is that
of its shipped identity, with the rights of `deploy/` and no others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from compute_management_operator.discovery.plan import CONTROL_PLANE
from compute_operator_kit.core.json import JsonMapping, JsonObject, decode_json_object, encode
from compute_sim_planes.api_server.authz.identity import Tokens, authenticated
from compute_sim_planes.api_server.http.server import HttpServer, PrefixRoutes
from compute_sim_planes.api_server.http.transport import Transport
from compute_sim_planes.api_server.manifests import apply_manifests
from compute_sim_planes.api_server.plane import Plane, PlaneParts
from compute_sim_planes.certificates import make_server_files
from compute_sim_planes.json_types import JsonObject as Manifest
from compute_sim_planes.kubeconfig import Context, write_kubeconfig
from compute_sim_planes.time.sources import SeededIdentities
from management_builders.documents import (
    a_location_document,
    a_network_document,
    a_project_document,
)
from management_builders.rights import OPERATOR, Witness, shipped_roles
from management_builders.world import definitions, neighbours

TOKEN = "operator-token"  # noqa: S105 - of a plane that lives for one test
STRANGER = "stranger-token"
SCRAPER = "scraper-token"


@dataclass(slots=True)
class ServedPlanes:
    """The planes, and the files that lead to them."""

    folder: Path
    root: Plane
    hub: Plane
    project: Plane
    server: HttpServer
    authority: bytes
    witness: Witness
    routes: PrefixRoutes
    tenants: dict[str, Plane] = field(default_factory=dict[str, Plane])

    @classmethod
    async def start(cls, folder: Path) -> ServedPlanes:
        users = {
            TOKEN: OPERATOR,
            STRANGER: authenticated("stranger"),
            SCRAPER: authenticated("scraper"),
        }
        planes = {
            name: Plane(name, PlaneParts(tokens=Tokens(users))) for name in ("root", "hub", "acme")
        }
        routes = PrefixRoutes()
        routes.add("", planes["root"])
        routes.add("/hub", planes["hub"])
        routes.add(CONTROL_PLANE.format("acme"), planes["acme"])
        files = make_server_files(folder)
        server = HttpServer(routes, tls=files.context())
        await server.start()
        served = cls(
            folder,
            planes["root"],
            planes["hub"],
            planes["acme"],
            server,
            files.authority.read_bytes(),
            Witness(),
            routes,
        )
        await served._fill()
        await served._grant()
        return served

    async def _fill(self) -> None:
        await apply_manifests(self.root.connect(), neighbours("miloapis.com"))
        await apply_manifests(self.hub.connect(), definitions("karmada.io"))
        await apply_manifests(self.project.connect(), definitions("networking.datumapis.com"))
        await self.put("root", "/api/v1/namespaces", _namespace("compute-system"))
        place = "/apis/networking.datumapis.com/v1alpha"
        await self.put("acme", f"{place}/locations", a_location_document("DFW"))
        await self.put("acme", f"{place}/namespaces/default/networks", a_network_document())
        await self._declare("acme")
        write_kubeconfig(self.folder / "root.yaml", [self._context("root", "")])
        write_kubeconfig(self.folder / "hub.yaml", [self._context("hub", "/hub")])

    async def _declare(self, project: str) -> None:
        """Creates a Project that is Ready."""
        projects = "/apis/resourcemanager.miloapis.com/v1alpha1/projects"
        await self.put("root", projects, a_project_document(project))
        ready: JsonObject = {
            "type": "Ready",
            "status": "True",
            "reason": "Ready",
            "message": "",
            "lastTransitionTime": "2026-03-01T00:00:00Z",
        }
        path = f"{projects}/{project}/status"
        await self.ask("root", "PATCH", path, {"status": {"conditions": [ready]}})

    async def add_project(self, project: str, transport: Transport) -> None:
        """One more project, with a control plane behind `transport`."""
        self.routes.add(CONTROL_PLANE.format(project), transport)
        await self._declare(project)

    async def add_tenant(self, project: str, cities: Sequence[str]) -> None:
        """One more project with a control plane as `acme` has one."""
        own = SeededIdentities(len(self.tenants) + 1)  # namespaces of other UIDs than `acme`'s
        parts = PlaneParts(tokens=Tokens({TOKEN: OPERATOR}), identities=own)
        plane = Plane(project, parts)
        self.tenants[project] = plane
        await apply_manifests(plane.connect(), definitions("networking.datumapis.com"))
        place = "/apis/networking.datumapis.com/v1alpha"
        for city in cities:
            await self.put(project, f"{place}/locations", a_location_document(city))
        await self.put(project, f"{place}/namespaces/default/networks", a_network_document())
        await apply_manifests(plane.connect(), shipped_roles("root"))
        plane.state.authorizer = self.witness.beside("root", plane.state.authorizer)
        await self.add_project(project, plane)

    async def _grant(self) -> None:
        """Rights as they ship, enforced from here on; and a user that may read metrics."""
        sides = ((self.root, ("home", "root")), (self.hub, ("hub",)), (self.project, ("root",)))
        for plane, names in sides:
            for side in names:
                await apply_manifests(plane.connect(), shipped_roles(side))
            # At home and at the root at once: whatever either grants is there.
            plane.state.authorizer = self.witness.beside(names[0], plane.state.authorizer)
        await apply_manifests(self.root.connect(), [_binding_of_scraper()])

    def _context(self, name: str, path: str) -> Context:
        return Context(name, f"{self.server.url}{path}", TOKEN, self.authority)

    async def put(self, plane: str, path: str, document: JsonMapping) -> JsonObject:
        """Creates an object, as an administrator."""
        return await self.ask(plane, "POST", path, document)

    async def ask(
        self, plane: str, method: str, path: str, body: JsonMapping | None = None
    ) -> JsonObject:
        known = {"root": self.root, "hub": self.hub, "acme": self.project, **self.tenants}
        existing = known[plane]
        kind = "merge-patch+json" if method == "PATCH" else "json"
        headers = {"Content-Type": f"application/{kind}"}
        raw = None if body is None else encode(body)
        answer = await existing.connect().request(method, path, headers, raw)
        content = b"".join([chunk async for chunk in answer.chunks()])
        await answer.close()
        assert answer.status < 300, content
        return decode_json_object(content)

    async def close(self) -> None:
        await self.server.close()
        for plane in (self.root, self.hub, self.project, *self.tenants.values()):
            await plane.close()


def _namespace(name: str) -> JsonObject:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def _binding_of_scraper() -> Manifest:
    """What the installation adds: its own Prometheus, bound to the role that ships."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "scraper"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "compute-metrics-reader",
        },
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "scraper"}],
    }
