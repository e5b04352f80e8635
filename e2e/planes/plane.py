"""One plane: a kube-apiserver on its own etcd prefix, and a kube-controller-manager for it.

The controller-manager starts after the CRDs are there: its garbage collector looks for new kinds
only every 30 s (neighbours.md 1.9), and a test must not wait for that.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from compute_sim_planes.json_types import JsonObject
from e2e.planes import flags, probes
from e2e.planes.client import Endpoint, PlaneClient, has_condition
from e2e.planes.identities import ADMIN
from e2e.planes.kubeconfig import Context
from e2e.planes.process import ManagedProcess
from e2e.planes.running import Running
from e2e.planes.site import Site
from e2e.planes.topology import PlaneSpec, Role
from e2e.planes.waiting import side_by_side, until

RIGHTS_PATH = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
TOKENS_PATH = "/apis/authentication.k8s.io/v1/tokenreviews"
# What the hub expects a token of the management operator to be for (deploy/management).
HUB_AUDIENCE = "compute-hub"


@dataclass(frozen=True, slots=True)
class Plane:
    """A plane of the stack and what runs behind it: two processes, or a cluster."""

    spec: PlaneSpec
    site: Site
    port: int
    api_server: Running
    controller_manager: Running

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def server(self) -> str:
        return self.site.server_at(self.port)

    def endpoint(self, user: str = ADMIN.user) -> Endpoint:
        return self.site.endpoint(self.name, self.port, user)

    def client(self, user: str = ADMIN.user) -> PlaneClient:
        """A client as this user; it is a context manager."""
        return PlaneClient(self.endpoint(user))

    def context(self) -> Context:
        return self.site.context(self.name, self.port)


def prepare_plane(spec: PlaneSpec, site: Site, root_port: int | None) -> Plane:
    """Reserves ports and writes files; starts nothing. A project gets its rights from the root."""
    port = root_port if spec.role is Role.ROOT and root_port else site.ports.reserve()
    own_port = site.ports.reserve()
    write_access(spec.name, site, port)
    from_root = spec.role is Role.PROJECT and root_port is not None
    if from_root and root_port is not None:
        asked = Context(
            "root", site.server_at(root_port) + RIGHTS_PATH, site.pki.authority, site.pki.admin
        )
        site.write_kubeconfig(spec.name, "rights.kubeconfig", asked)
    slot = site.slots.get(spec.name)
    arguments = flags.kube_apiserver(
        site.ground,
        spec.name,
        port,
        rights_from_root=from_root,
        slot=slot,
        audience=HUB_AUDIENCE if site.issuer and spec.role is Role.HUB else "",
    )
    ready = probes.https_answers(site.endpoint(spec.name, port), "/readyz")
    return Plane(
        spec,
        site,
        port,
        site.add(f"{spec.name}.kube-apiserver", "kube-apiserver", arguments, ready),
        site.add(
            f"{spec.name}.kube-controller-manager",
            "kube-controller-manager",
            flags.kube_controller_manager(site.ground, spec.name, own_port, slot=slot),
            probes.https_answers(site.health_of(own_port), "/healthz"),
        ),
    )


def write_access(plane: str, site: Site, port: int) -> None:
    """Who may speak to an API server with which token, and how its administrator does."""
    site.ground.run.write_for_plane(plane, "tokens.csv", site.tokens.render(plane))
    site.write_kubeconfig(plane, "admin.kubeconfig", site.context(plane, port))


def prepare_scheduler(plane: Plane) -> ManagedProcess:
    """For a plane that runs pods."""
    site, port = plane.site, plane.site.ports.reserve()
    return site.add(
        f"{plane.name}.kube-scheduler",
        "kube-scheduler",
        flags.kube_scheduler(site.ground, plane.name, port),
        probes.https_answers(site.health_of(port), "/healthz"),
    )


def let_believe(plane: Plane, issuer: Plane) -> None:
    """Tells a plane whom to ask about tokens that it does not know."""
    site = plane.site
    asked = Context("issuer", issuer.server + TOKENS_PATH, site.pki.authority, site.pki.admin)
    site.write_kubeconfig(plane.name, "issuer.kubeconfig", asked)


async def install_crds(client: PlaneClient, crds: Iterable[JsonObject], site: Site) -> None:
    """Applies CRDs and waits until each is served."""

    async def install(crd: JsonObject) -> None:
        path = await client.path_of(crd)
        await client.apply(crd)

        async def established() -> bool:
            return has_condition(await client.get(path), "Established")

        await until(f"{path} to be served", established, check=site.check)

    await side_by_side(install(crd) for crd in crds)
