"""Karmada in pods of a kind cluster: installed by karmadactl, then made a plane of the stack.

karmadactl sets up neither static tokens nor audit logs nor a token webhook; its API server's
Deployment is patched with them. The stack joins the members, as with Karmada's processes.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from compute_sim_planes.json_types import JsonObject, JsonValue
from e2e.backends.kind import addresses, configuration
from e2e.backends.kind.clusters import KindCluster
from e2e.backends.kind.commands import run
from e2e.backends.kind.configuration import ISSUER
from e2e.backends.kind.servers import ClusterServer, ServerInCluster
from e2e.harness.access.client import PlaneClient, has_condition
from e2e.harness.access.waiting import until
from e2e.harness.planes import flags
from e2e.harness.planes.plane import HUB_AUDIENCE, RealPlane
from e2e.harness.planes.plane_manifests import KARMADA_CLUSTER, a_namespace
from e2e.harness.planes.stack_runtime import StackRuntime
from e2e.harness.planes.topology import PlaneSpec, Rates
from e2e.harness.processes import probes
from e2e.harness.stack.hub import CLUSTERS
from e2e.world.objects import object_at, objects_at, text_at, texts_at, uid_of

# The version in e2e/harness/programs/karmada/go.mod; a test compares the two.
VERSION: Final = "v1.18.2"
# Explicit, because a karmadactl built from source has no default image version.
IMAGES: Final = "docker.io/karmada"
KINDS: Final = f"https://github.com/karmada-io/karmada/releases/download/{VERSION}/crds.tar.gz"
COMPONENTS: Final = (
    "karmada-aggregated-apiserver",
    "karmada-controller-manager",
    "karmada-scheduler",
    "karmada-webhook",
)
KUBERNETES: Final = configuration.NODE_IMAGE.rpartition(":")[2]
SYSTEM: Final = "karmada-system"
API_SERVER: Final = f"/apis/apps/v1/namespaces/{SYSTEM}/deployments/karmada-apiserver"
CONTROLLERS: Final = "karmada-controller-manager"
# karmadactl's issuer.
ISSUER_NAME: Final = "https://kubernetes.default.svc.cluster.local"
PATIENCE: Final = timedelta(minutes=5)


def install(host: KindCluster, rates: Rates) -> None:
    """Runs `karmadactl init` and waits until all its pods are ready."""
    pki, own = host.spec.run.pki, host.spec.run.path / "karmada"
    own.mkdir(exist_ok=True)
    quick = rates is Rates.QUICK
    run(
        [
            *("karmadactl", "init", "--kubeconfig", host.kubeconfig),
            *("--karmada-data", own, "--karmada-pki", own / "pki"),
            *("--ca-cert-file", pki("ca.crt"), "--ca-key-file", pki("ca.key")),
            *("--karmada-apiserver-advertise-address", host.address()),
            *("--cert-external-ip", host.spec.address),
            *("--port", str(addresses.KARMADA_PORT)),
            *("--kube-image-tag", KUBERNETES, "--crds", KINDS),
            *(f"--{name}-image={IMAGES}/{name}:{VERSION}" for name in COMPONENTS),
            *_extra(CONTROLLERS, flags.QUICK_CONTROLLERS if quick else ()),
            *_extra("karmada-scheduler", flags.QUICK_SCHEDULER if quick else ()),
        ]
    )


def _extra(component: str, arguments: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"--{component}-extra-args={argument}" for argument in arguments)


def derive_opened(deployment: JsonObject, hub: str) -> JsonObject:
    """The patch of karmadactl's Deployment that makes its API server a plane of the stack. Pure.

    Strategy Recreate: pod anti-affinity keeps two of them off the only node.
    """
    template = object_at(deployment, "spec", "template", "spec")
    (server,) = objects_at(template, "containers")
    folders = configuration.volumes(hub)
    command: list[JsonValue] = [*texts_at(server, "command"), *_arguments(hub)]
    mounts: list[JsonValue] = [
        *objects_at(server, "volumeMounts"),
        *(_mount(name, path, is_read_only=read) for name, path, read in folders),
    ]
    volumes: list[JsonValue] = [
        *objects_at(template, "volumes"),
        *(_volume(name, path) for name, path, _ in folders),
    ]
    opened: JsonObject = {**server, "command": command, "volumeMounts": mounts}
    return {
        "spec": {
            "strategy": {"type": "Recreate", "rollingUpdate": None},
            "template": {"spec": {"containers": [opened], "volumes": volumes}},
        }
    }


def _mount(name: str, path: str, *, is_read_only: bool) -> JsonObject:
    return {"name": name, "mountPath": path, "readOnly": is_read_only}


def _volume(name: str, path: str) -> JsonObject:
    return {"name": name, "hostPath": {"path": path, "type": "Directory"}}


def _arguments(hub: str) -> list[str]:
    """The flags of a hub of our own (`flags.kube_apiserver`)."""
    arguments = {
        **configuration.access_arguments(hub),
        "authentication-token-webhook-config-file": f"{addresses.access_of(hub)}/{ISSUER}",
        "authentication-token-webhook-version": "v1",
        "authentication-token-webhook-cache-ttl": "5s",
        "api-audiences": f"{ISSUER_NAME},{HUB_AUDIENCE}",
    }
    return [f"--{name}={value}" for name, value in arguments.items()]


class KarmadaServer:
    """Karmada's API server, which is the hub."""

    def __init__(self, spec: PlaneSpec, runtime: StackRuntime, host: ClusterServer) -> None:
        self.name: Final = f"{spec.name}.karmada"
        self.host = host
        self.rates = Rates.DEFAULT
        port = host.cluster.spec.guest_port
        self.plane = RealPlane(
            spec, runtime, port, self, ServerInCluster(f"{spec.name}.controllers")
        )

    def start(self) -> None:
        self.host.start()

    async def up(self) -> None:
        await self.host.up()
        await asyncio.to_thread(install, self.host.cluster, self.rates)
        await open_to_stack(self.host.plane, self.plane.name)
        await self._serves()

    async def restart(self) -> None:
        await delete_pods(self.host.plane, "karmada-apiserver")
        await self._serves()

    async def stop(self) -> None:
        await self.crash()

    async def crash(self) -> None:
        await self.host.crash()

    async def _serves(self) -> None:
        # With a token of the stack, which only the patched server accepts.
        ready = probes.https_answers(self.plane.endpoint(), "/readyz")
        check = self.plane.runtime.check
        await until(f"{self.name} to be ready", ready, check=check, patience=PATIENCE)


async def open_to_stack(host: RealPlane, hub: str) -> None:
    async with host.client() as client:
        await client.patch(API_SERVER, derive_opened(await client.get(API_SERVER), hub))


async def delete_pods(host: RealPlane, app: str) -> None:
    """Deletes the pods of one Deployment and waits until new ones are Ready."""
    path = f"/api/v1/namespaces/{SYSTEM}/pods"
    query = f"?labelSelector=app%3D{app}"
    async with host.client() as client:
        before = {uid_of(pod) for pod in objects_at(await client.get(path + query), "items")}
        await client.delete(path + query)

        async def replaced() -> bool:
            pods = objects_at(await client.get(path + query), "items")
            return bool(pods) and all(
                uid_of(pod) not in before and has_condition(pod, "Ready") for pod in pods
            )

        await until(f"new pods of {app}", replaced, check=host.runtime.check, patience=PATIENCE)


class Controllers:
    """karmada-controller-manager in its pod."""

    def __init__(self, host: RealPlane) -> None:
        self._host = host

    async def restart(self) -> None:
        await delete_pods(self._host, CONTROLLERS)


@dataclass(frozen=True, slots=True)
class KindKarmada:
    """See `e2e.harness.stack.hub.OnHub`."""

    hub: RealPlane
    controller_manager: Controllers

    async def bring_up(self, client: PlaneClient) -> None:
        """Waits until clusters are served and stores the credentials of members; karmadactl has
        installed everything else.
        """
        await client.apply(a_namespace(KARMADA_CLUSTER))

        async def serves() -> bool:
            return bool(text_at(await client.get(CLUSTERS), "kind"))

        await until(
            "clusters to be served", serves, check=self.hub.runtime.check, patience=PATIENCE
        )
