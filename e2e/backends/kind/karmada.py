"""Karmada in pods of a kind cluster: installed by its own command, then opened to the stack.

karmadactl knows nothing of tokens, audit logs or a webhook that believes tokens of others; the
Deployment it made of the API server is given them. Members are joined by the stack, as those of
Karmada's processes are.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from compute_sim_planes.json_types import JsonObject, JsonValue
from e2e.backends.kind import configuration, places
from e2e.backends.kind.clusters import KindCluster
from e2e.backends.kind.commands import run
from e2e.backends.kind.configuration import ISSUER
from e2e.backends.kind.servers import ClusterServer, Within
from e2e.objects import object_at, objects_at, text_at, texts_at, uid_of
from e2e.planes import flags, probes
from e2e.planes.client import PlaneClient, has_condition
from e2e.planes.hub import CLUSTERS
from e2e.planes.manifests import KARMADA_CLUSTER, a_namespace
from e2e.planes.plane import HUB_AUDIENCE, Plane
from e2e.planes.site import Site
from e2e.planes.topology import PlaneSpec, Rates
from e2e.planes.waiting import until

# That of e2e/planes/karmada/go.mod; a test holds the two equal.
VERSION: Final = "v1.18.2"
# Said, and not left to karmadactl: one that was built by hand takes those of no release.
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
# As karmadactl sets it.
ISSUER_NAME: Final = "https://kubernetes.default.svc.cluster.local"
PATIENCE: Final = timedelta(minutes=5)


def install(host: KindCluster, rates: Rates) -> None:
    """`karmadactl init`; returns when all its pods are ready."""
    pki, own = host.asked.run.pki, host.asked.run.path / "karmada"
    own.mkdir(exist_ok=True)
    quick = rates is Rates.QUICK
    run(
        [
            *("karmadactl", "init", "--kubeconfig", host.kubeconfig),
            *("--karmada-data", own, "--karmada-pki", own / "pki"),
            *("--ca-cert-file", pki("ca.crt"), "--ca-key-file", pki("ca.key")),
            *("--karmada-apiserver-advertise-address", host.address()),
            *("--cert-external-ip", host.asked.address),
            *("--port", str(places.KARMADA_PORT)),
            *("--kube-image-tag", KUBERNETES, "--crds", KINDS),
            *(f"--{name}-image={IMAGES}/{name}:{VERSION}" for name in COMPONENTS),
            *_extra(CONTROLLERS, flags.QUICK_CONTROLLERS if quick else ()),
            *_extra("karmada-scheduler", flags.QUICK_SCHEDULER if quick else ()),
        ]
    )


def _extra(component: str, arguments: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"--{component}-extra-args={argument}" for argument in arguments)


def derive_opened(deployment: JsonObject, hub: str) -> JsonObject:
    """The change to karmadactl's Deployment that makes its API server a plane of the stack. Pure.

    Recreated, not rolled: its pods refuse to share a node, and there is one.
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
    """As on a hub of ours (`flags.kube_apiserver`)."""
    told = {
        **configuration.access_arguments(hub),
        "authentication-token-webhook-config-file": f"{places.access_of(hub)}/{ISSUER}",
        "authentication-token-webhook-version": "v1",
        "authentication-token-webhook-cache-ttl": "5s",
        "api-audiences": f"{ISSUER_NAME},{HUB_AUDIENCE}",
    }
    return [f"--{name}={value}" for name, value in told.items()]


class KarmadaServer:
    """Karmada's API server, which is the hub's."""

    def __init__(self, spec: PlaneSpec, site: Site, host: ClusterServer) -> None:
        self.name: Final = f"{spec.name}.karmada"
        self.host = host
        self.rates = Rates.DEFAULT
        port = host.cluster.asked.guest_port
        self.plane = Plane(spec, site, port, self, Within(f"{spec.name}.controllers"))

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
        # With a token of the stack: nobody but the opened server takes it.
        ready = probes.https_answers(self.plane.endpoint(), "/readyz")
        check = self.plane.site.check
        await until(f"{self.name} to be ready", ready, check=check, patience=PATIENCE)


async def open_to_stack(host: Plane, hub: str) -> None:
    async with host.client() as client:
        await client.patch(API_SERVER, derive_opened(await client.get(API_SERVER), hub))


async def delete_pods(host: Plane, app: str) -> None:
    """Ends the pods of one Deployment and waits until others are Ready in their place."""
    path = f"/api/v1/namespaces/{SYSTEM}/pods"
    query = f"?labelSelector=app%3D{app}"
    async with host.client() as client:
        before = {uid_of(pod) for pod in objects_at(await client.get(path + query), "items")}
        await client.delete(path + query)

        async def replaced() -> bool:
            found = objects_at(await client.get(path + query), "items")
            return bool(found) and all(
                uid_of(pod) not in before and has_condition(pod, "Ready") for pod in found
            )

        await until(f"new pods of {app}", replaced, check=host.site.check, patience=PATIENCE)


class Controllers:
    """karmada-controller-manager, in a pod that karmadactl began."""

    def __init__(self, host: Plane) -> None:
        self._host = host

    async def restart(self) -> None:
        await delete_pods(self._host, CONTROLLERS)


@dataclass(frozen=True, slots=True)
class KindKarmada:
    """See `e2e.planes.hub.OnHub`."""

    hub: Plane
    controller_manager: Controllers

    async def bring_up(self, client: PlaneClient) -> None:
        """karmadactl installed everything; what is left is where the credentials of members lie,
        and that clusters are served.
        """
        await client.apply(a_namespace(KARMADA_CLUSTER))

        async def serves() -> bool:
            return bool(text_at(await client.get(CLUSTERS), "kind"))

        await until("clusters to be served", serves, check=self.hub.site.check, patience=PATIENCE)
