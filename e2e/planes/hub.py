"""Karmada on the hub: its four processes, its manifests, and members joined by hand.

Order as in neighbours.md 4.2: kinds and webhooks before the controllers that read them, secrets
before clusters, and nothing is believed ready before it answers.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Protocol

from compute_sim_planes.json_types import JsonObject
from e2e.planes import flags, probes
from e2e.planes.client import PlaneClient, has_condition
from e2e.planes.manifests import KARMADA_CLUSTER, KARMADA_SYSTEM, KarmadaManifests, a_namespace
from e2e.planes.plane import Plane, install_crds
from e2e.planes.ports import LOOPBACK
from e2e.planes.process import ManagedProcess
from e2e.planes.running import Restartable
from e2e.planes.topology import CITY_LABEL, Rates
from e2e.planes.waiting import side_by_side, until

CLUSTERS = "/apis/cluster.karmada.io/v1alpha1/clusters"


class OnHub(Protocol):
    """Karmada around a hub's API server, whoever runs it."""

    @property
    def hub(self) -> Plane: ...

    @property
    def controller_manager(self) -> Restartable:
        """What takes a new address of a member only at its start."""
        ...

    async def bring_up(self, client: PlaneClient) -> None:
        """From a hub with our CRDs to a hub that takes clusters."""
        ...


@dataclass(frozen=True, slots=True)
class Karmada:
    """Karmada's processes around the hub's API server."""

    hub: Plane
    manifests: KarmadaManifests
    aggregated_port: int
    webhook_port: int
    aggregated_apiserver: ManagedProcess
    webhook: ManagedProcess
    controller_manager: ManagedProcess
    scheduler: ManagedProcess

    async def bring_up(self, client: PlaneClient) -> None:
        """See `OnHub`."""
        await bring_up_karmada(self, client)


def prepare_karmada(hub: Plane, manifests: KarmadaManifests, rates: Rates) -> Karmada:
    """Reserves ports and composes command lines; starts nothing."""
    site, ground = hub.site, hub.site.ground
    aggregated, webhook, manager, scheduler = (site.ports.reserve() for _ in range(4))
    return Karmada(
        hub,
        manifests,
        aggregated,
        webhook,
        site.add(
            "karmada-aggregated-apiserver",
            "karmada-aggregated-apiserver",
            flags.karmada_aggregated_apiserver(ground, hub.name, aggregated),
            probes.https_answers(hub.endpoint(), CLUSTERS),
        ),
        site.add(
            "karmada-webhook",
            "karmada-webhook",
            flags.karmada_webhook(ground, hub.name, webhook),
            probes.https_answers(site.health_of(webhook), "/readyz/"),
        ),
        site.add(
            "karmada-controller-manager",
            "karmada-controller-manager",
            flags.karmada_controller_manager(ground, hub.name, manager, rates=rates),
            probes.http_answers(f"http://{ground.address}:{manager}/healthz"),
        ),
        site.add(
            "karmada-scheduler",
            "karmada-scheduler",
            flags.karmada_scheduler(ground, hub.name, scheduler, rates=rates),
            probes.http_answers(f"http://{ground.address}:{scheduler}/healthz"),
        ),
    )


async def bring_up_karmada(karmada: Karmada, client: PlaneClient) -> None:
    """From a hub with our CRDs to a hub that takes clusters."""
    hub, authority = karmada.hub, karmada.hub.site.pki.authority
    for name in (KARMADA_SYSTEM, KARMADA_CLUSTER):
        await client.apply(a_namespace(name))
    address = hub.site.ground.address
    host = "localhost" if address == LOOPBACK else address
    for document in karmada.manifests.aggregation(authority, karmada.aggregated_port, host):
        await client.apply(document)
    await side_by_side(
        (
            install_crds(client, karmada.manifests.crds(), hub.site),
            karmada.aggregated_apiserver.up(),
            karmada.webhook.up(),
        )
    )
    webhook = f"{hub.site.ground.address}:{karmada.webhook_port}"
    for document in karmada.manifests.webhooks(authority, webhook):
        await client.apply(document)
    await side_by_side((karmada.controller_manager.up(), karmada.scheduler.up()))


async def join(cell: Plane, karmada: OnHub, client: PlaneClient) -> None:
    """Makes a plane a member and waits until Karmada calls it Ready."""
    await client.apply(_secret_of(cell))
    cluster = cluster_of(cell)
    await client.apply(cluster)
    path = await client.path_of(cluster)

    async def ready() -> bool:
        return has_condition(await client.get(path), "Ready")

    await until(f"cluster {cell.name} to be Ready", ready, check=karmada.hub.site.check)


def cluster_of(cell: Plane) -> JsonObject:
    return {
        "apiVersion": "cluster.karmada.io/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": cell.name, "labels": {CITY_LABEL: cell.spec.city}},
        "spec": {
            "syncMode": "Push",
            "id": cell.name,
            "apiEndpoint": cell.server,
            "secretRef": {"namespace": KARMADA_CLUSTER, "name": cell.name},
        },
    }


def _secret_of(cell: Plane) -> JsonObject:
    # Tokens only: Karmada takes no client certificate for a member (neighbours.md 1.8).
    token = cell.site.tokens.of(cell.name).token.encode()
    content = {"token": token, "caBundle": cell.site.pki.authority}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"namespace": KARMADA_CLUSTER, "name": cell.name},
        "data": {name: base64.b64encode(value).decode() for name, value in content.items()},
    }
