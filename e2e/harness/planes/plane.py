"""One plane: a kube-apiserver on its own etcd prefix, and a kube-controller-manager for it.

The controller-manager starts after the CRDs exist: its garbage collector discovers later kinds only
every 30 s (neighbours.md 1.9), which tests would have to wait for.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from compute_sim_planes.json_types import JsonObject
from e2e.harness.access.client import Endpoint, PlaneClient, has_condition
from e2e.harness.access.kubeconfig import Context
from e2e.harness.access.waiting import side_by_side, until
from e2e.harness.planes import flags
from e2e.harness.planes.identities import ADMIN
from e2e.harness.planes.server_protocols import RunningServer
from e2e.harness.planes.stack_runtime import StackRuntime
from e2e.harness.planes.topology import PlaneSpec, Role
from e2e.harness.processes import probes
from e2e.harness.processes.process import ManagedProcess

RIGHTS_PATH = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
TOKENS_PATH = "/apis/authentication.k8s.io/v1/tokenreviews"
# The audience of the management operator's token for the hub (deploy/management).
HUB_AUDIENCE = "compute-hub"
# Planes whose operator may make HorizontalPodAutoscalers.
WITH_AUTOSCALERS = frozenset({Role.CELL, Role.SINGLE})


@dataclass(frozen=True, slots=True)
class RealPlane:
    """A plane of the stack with its servers: two processes, or a cluster."""

    spec: PlaneSpec
    runtime: StackRuntime
    port: int
    api_server: RunningServer
    controller_manager: RunningServer

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def server(self) -> str:
        return self.runtime.server_at(self.port)

    def endpoint(self, user: str = ADMIN.user) -> Endpoint:
        return self.runtime.endpoint(self.name, self.port, user)

    def client(self, user: str = ADMIN.user) -> PlaneClient:
        """A client as this user; a context manager."""
        return PlaneClient(self.endpoint(user))

    def context(self) -> Context:
        return self.runtime.context(self.name, self.port)


def prepare_plane(spec: PlaneSpec, runtime: StackRuntime, root_port: int | None) -> RealPlane:
    """Reserves ports and writes files; starts nothing. A project is authorized by the root."""
    port = root_port if spec.role is Role.ROOT and root_port else runtime.ports.reserve()
    own_port = runtime.ports.reserve()
    write_access(spec.name, runtime, port)
    from_root = spec.role is Role.PROJECT and root_port is not None
    if from_root and root_port is not None:
        asked = Context(
            "root",
            runtime.server_at(root_port) + RIGHTS_PATH,
            runtime.pki.authority,
            runtime.pki.admin,
        )
        runtime.write_kubeconfig(spec.name, "rights.kubeconfig", asked)
    slot = runtime.slots.get(spec.name)
    arguments = flags.kube_apiserver(
        runtime.settings,
        spec.name,
        port,
        rights_from_root=from_root,
        slot=slot,
        audience=HUB_AUDIENCE if runtime.issuer and spec.role is Role.HUB else "",
    )
    ready = probes.https_answers(runtime.endpoint(spec.name, port), "/readyz")
    return RealPlane(
        spec,
        runtime,
        port,
        runtime.add(f"{spec.name}.kube-apiserver", "kube-apiserver", arguments, ready),
        runtime.add(
            f"{spec.name}.kube-controller-manager",
            "kube-controller-manager",
            flags.kube_controller_manager(
                runtime.settings,
                spec.name,
                own_port,
                slot=slot,
                has_autoscalers=spec.role in WITH_AUTOSCALERS,
            ),
            probes.https_answers(runtime.health_of(own_port), "/healthz"),
        ),
    )


def write_access(plane: str, runtime: StackRuntime, port: int) -> None:
    """Writes the API server's token file and the administrator's kubeconfig."""
    runtime.settings.run.write_for_plane(plane, "tokens.csv", runtime.tokens.render(plane))
    runtime.write_kubeconfig(plane, "admin.kubeconfig", runtime.context(plane, port))


def prepare_scheduler(plane: RealPlane) -> ManagedProcess:
    """A kube-scheduler, for a plane that runs pods."""
    runtime, port = plane.runtime, plane.runtime.ports.reserve()
    return runtime.add(
        f"{plane.name}.kube-scheduler",
        "kube-scheduler",
        flags.kube_scheduler(runtime.settings, plane.name, port),
        probes.https_answers(runtime.health_of(port), "/healthz"),
    )


def trust_issuer(plane: RealPlane, issuer: RealPlane) -> None:
    """Configures the plane that verifies unknown tokens."""
    runtime = plane.runtime
    asked = Context("issuer", issuer.server + TOKENS_PATH, runtime.pki.authority, runtime.pki.admin)
    runtime.write_kubeconfig(plane.name, "issuer.kubeconfig", asked)


async def install_crds(
    client: PlaneClient, crds: Iterable[JsonObject], runtime: StackRuntime
) -> None:
    """Applies CRDs and waits until each is served."""

    async def install(crd: JsonObject) -> None:
        path = await client.path_of(crd)
        await client.apply(crd)

        async def established() -> bool:
            return has_condition(await client.get(path), "Established")

        await until(f"{path} to be served", established, check=runtime.check)

    await side_by_side(install(crd) for crd in crds)
