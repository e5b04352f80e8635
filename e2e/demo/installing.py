"""Installs `deploy/` and the projects on the demo's planes, as an administrator would.

It sets the values that each installation sets: the CA of the webhook, the bindings of each cell,
and the Locations.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Final

from compute_api_types.wire import JsonObject
from compute_sim_planes.api_server.admission.webhook_clients import ServiceReference
from compute_sim_planes.api_server.manifests import apply_manifests
from compute_sim_planes.api_server.plane import Plane
from e2e.demo.backend import CELLS
from e2e.harness.deploy.shipped import cell_bindings, definitions, manifests
from e2e.world.documents import NETWORK_NAME, a_location, a_network
from e2e.world.objects import object_at, objects_at, text_at
from e2e.world.port import Cell, ProjectNamespace

# The second is the one that Workloads of `examples/` attach to.
NETWORKS: Final = (NETWORK_NAME, "default")
WEBHOOK: Final = ServiceReference("compute-system", "compute-webhook", 443)


async def install_root(root: Plane, authority: bytes) -> None:
    await _install(root, definitions("networking"))
    await _install(root, [_with_authority(one, authority) for one in manifests("milo")])
    for cell in CELLS:
        await _install(root, cell_bindings("milo", cell.name, cell.city))


async def install_home(home: Plane) -> None:
    await _install(home, manifests("management"))


async def install_hub(hub: Plane) -> None:
    await _install(hub, definitions("karmada"))
    await _install(hub, manifests("hub"))
    for cell in CELLS:
        await _install(hub, cell_bindings("hub", cell.name, cell.city))


async def install_cell(plane: Plane, cell: Cell) -> None:
    await _install(plane, definitions("networking"))
    await _install(plane, manifests("cell"))
    await _install(plane, [a_location(cell.city)])


async def prepare_project(project: Plane, place: ProjectNamespace) -> None:
    """Creates the networks for later Workloads and the Locations that they may name."""
    documents = [a_network(name, place.namespace) for name in NETWORKS]
    await _install(project, [*documents, *(a_location(cell.city) for cell in CELLS)])


async def _install(plane: Plane, documents: Iterable[JsonObject]) -> None:
    """Applies the documents of kinds that a plain API server serves; Deployments need a cluster."""
    served = [
        one
        for one in documents
        if plane.state.catalog.find_kind(text_at(one, "apiVersion"), text_at(one, "kind"))
    ]
    await apply_manifests(plane.connect(), served)


def _with_authority(document: JsonObject, authority: bytes) -> JsonObject:
    """The `caBundle` patch that `deploy/milo` leaves to the installation."""
    if text_at(document, "kind") == "ValidatingWebhookConfiguration":
        for webhook in objects_at(document, "webhooks"):
            bundle = base64.b64encode(authority).decode()
            webhook["clientConfig"] = {**object_at(webhook, "clientConfig"), "caBundle": bundle}
    return document
