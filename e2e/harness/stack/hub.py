"""Karmada on the hub: its four processes, its manifests, and members joined without karmadactl.

Order as in neighbours.md 4.2: CRDs and webhooks before the controllers that read them, Secrets
before Clusters, and each step waits until the last is ready.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Protocol

from compute_sim_planes.json_types import JsonObject
from e2e.harness.access.client import PlaneClient, has_condition
from e2e.harness.access.waiting import side_by_side, until
from e2e.harness.planes import flags
from e2e.harness.planes.plane import RealPlane, install_crds
from e2e.harness.planes.plane_manifests import (
    KARMADA_CLUSTER,
    KARMADA_SYSTEM,
    KarmadaManifests,
    a_namespace,
)
from e2e.harness.planes.server_protocols import RestartableServer
from e2e.harness.planes.topology import CITY_LABEL, Rates
from e2e.harness.processes import probes
from e2e.harness.processes.ports import LOOPBACK
from e2e.harness.processes.process import ManagedProcess

CLUSTERS = "/apis/cluster.karmada.io/v1alpha1/clusters"


class HubKarmada(Protocol):
    """Karmada around a hub's API server, as processes or in pods."""

    @property
    def hub(self) -> RealPlane: ...

    @property
    def controller_manager(self) -> RestartableServer:
        """Must be restarted to use a new address of a member."""
        ...

    async def bring_up(self, client: PlaneClient) -> None:
        """Prepares a hub with our CRDs for joining clusters."""
        ...


@dataclass(frozen=True, slots=True)
class Karmada:
    """Karmada's processes around the hub's API server."""

    hub: RealPlane
    manifests: KarmadaManifests
    aggregated_port: int
    webhook_port: int
    aggregated_apiserver: ManagedProcess
    webhook: ManagedProcess
    controller_manager: ManagedProcess
    scheduler: ManagedProcess

    async def bring_up(self, client: PlaneClient) -> None:
        """See `HubKarmada`."""
        await bring_up_karmada(self, client)


def prepare_karmada(hub: RealPlane, manifests: KarmadaManifests, rates: Rates) -> Karmada:
    """Reserves ports and builds command lines; starts nothing."""
    runtime, settings = hub.runtime, hub.runtime.settings
    aggregated, webhook, manager, scheduler = (runtime.ports.reserve() for _ in range(4))
    return Karmada(
        hub,
        manifests,
        aggregated,
        webhook,
        runtime.add(
            "karmada-aggregated-apiserver",
            "karmada-aggregated-apiserver",
            flags.karmada_aggregated_apiserver(settings, hub.name, aggregated),
            probes.https_answers(hub.endpoint(), CLUSTERS),
        ),
        runtime.add(
            "karmada-webhook",
            "karmada-webhook",
            flags.karmada_webhook(settings, hub.name, webhook),
            probes.https_answers(runtime.health_of(webhook), "/readyz/"),
        ),
        runtime.add(
            "karmada-controller-manager",
            "karmada-controller-manager",
            flags.karmada_controller_manager(settings, hub.name, manager, rates=rates),
            probes.http_answers(f"http://{settings.address}:{manager}/healthz"),
        ),
        runtime.add(
            "karmada-scheduler",
            "karmada-scheduler",
            flags.karmada_scheduler(settings, hub.name, scheduler, rates=rates),
            probes.http_answers(f"http://{settings.address}:{scheduler}/healthz"),
        ),
    )


async def bring_up_karmada(karmada: Karmada, client: PlaneClient) -> None:
    """Prepares a hub with our CRDs for joining clusters."""
    hub, authority = karmada.hub, karmada.hub.runtime.pki.authority
    for name in (KARMADA_SYSTEM, KARMADA_CLUSTER):
        await client.apply(a_namespace(name))
    address = hub.runtime.settings.address
    host = "localhost" if address == LOOPBACK else address
    for document in karmada.manifests.aggregation(authority, karmada.aggregated_port, host):
        await client.apply(document)
    await side_by_side(
        (
            install_crds(client, karmada.manifests.crds(), hub.runtime),
            karmada.aggregated_apiserver.up(),
            karmada.webhook.up(),
        )
    )
    webhook = f"{hub.runtime.settings.address}:{karmada.webhook_port}"
    for document in karmada.manifests.webhooks(authority, webhook):
        await client.apply(document)
    await side_by_side((karmada.controller_manager.up(), karmada.scheduler.up()))


async def join(cell: RealPlane, karmada: HubKarmada, client: PlaneClient) -> None:
    """Makes a plane a member and waits until its Cluster is Ready."""
    await client.apply(_secret_of(cell))
    cluster = cluster_of(cell)
    await client.apply(cluster)
    path = await client.path_of(cluster)

    async def ready() -> bool:
        return has_condition(await client.get(path), "Ready")

    await until(f"cluster {cell.name} to be Ready", ready, check=karmada.hub.runtime.check)


def cluster_of(cell: RealPlane) -> JsonObject:
    return {
        "apiVersion": "cluster.karmada.io/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": cell.name, "labels": {CITY_LABEL: cell.spec.city}},
        "spec": {
            "syncMode": "Push",
            "id": cell.name,
            "apiEndpoint": cell.server,
            "secretRef": {"namespace": KARMADA_CLUSTER, "name": cell.name},
            # Of an administrator, who may impersonate: `clusters/<c>/proxy` needs it.
            "impersonatorSecretRef": {"namespace": KARMADA_CLUSTER, "name": cell.name},
        },
    }


def _secret_of(cell: RealPlane) -> JsonObject:
    # Karmada accepts no client certificate for a member, only tokens (neighbours.md 1.8).
    token = cell.runtime.tokens.of(cell.name).token.encode()
    content = {"token": token, "caBundle": cell.runtime.pki.authority}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"namespace": KARMADA_CLUSTER, "name": cell.name},
        "data": {name: base64.b64encode(value).decode() for name, value in content.items()},
    }
