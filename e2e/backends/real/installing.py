"""Installs the operators as an administrator would: `deploy/` on every plane, and credentials.

The rendered manifests are applied unchanged, except for values that each installation sets: address
and CA of the webhook, the bindings of each cell, and the ServiceAccounts' tokens.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from compute_api_types.wire import JsonObject
from e2e.harness.access.client import PlaneClient
from e2e.harness.access.kubeconfig import Context, Token, render_kubeconfig
from e2e.harness.deploy.shipped import cell_bindings, manifests
from e2e.harness.planes.identities import Identity
from e2e.harness.planes.plane import RealPlane
from e2e.harness.processes.links import Link
from e2e.harness.stack.stack import RealPlanes
from e2e.world.documents import a_location
from e2e.world.objects import object_at, objects_at, text_at
from e2e.world.port import HOME, HUB, ROOT, SINGLE, Cell

SYSTEM: Final = "compute-system"
SCRAPER: Final = Identity("metrics-scraper")
ONE_DAY: Final = 86_400
RBAC: Final = "rbac.authorization.k8s.io"


async def install_single(planes: RealPlanes, webhook: Link) -> None:
    """Installs both operators in one cluster."""
    plane = planes.plane(SINGLE.name)
    documents = [_with_address(one, webhook, plane) for one in manifests("single-cluster")]
    async with plane.client() as client:
        await _apply(client, [*documents, scraper_binding()])


async def install(planes: RealPlanes, cells: Iterable[Cell], webhook: Link) -> None:
    """Installs the federation: each overlay on its plane."""
    cells = tuple(cells)
    await install_far_planes(planes, cells, webhook)
    async with planes.plane(HOME).client() as home:
        await _apply(home, manifests("management"))
    for cell in cells:
        async with planes.plane(cell.name).client() as member:
            await _apply(member, manifests("cell"))
    await prepare_homes(planes, cells)


async def prepare_homes(planes: RealPlanes, cells: Iterable[Cell]) -> None:
    """Installs what the operators' clusters need and `deploy/` does not contain."""
    async with planes.plane(HOME).client() as home:
        await home.apply(scraper_binding())
    for cell in cells:
        async with planes.plane(cell.name).client() as member:
            await _apply(member, [a_location(cell.city), scraper_binding()])


async def install_far_planes(planes: RealPlanes, cells: Iterable[Cell], webhook: Link) -> None:
    """Installs the overlays of planes without operators: Milo's root and the hub."""
    cells = tuple(cells)
    plane = planes.plane(ROOT)
    async with plane.client() as root:
        await _apply(root, [_with_address(one, webhook, plane) for one in manifests("milo")])
        for cell in cells:
            await _apply(root, cell_bindings("milo", cell.name, cell.city))
    async with planes.plane(HUB).client() as hub:
        await _apply(hub, manifests("hub"))
        for cell in cells:
            await _apply(hub, cell_bindings("hub", cell.name, cell.city))


async def _apply(client: PlaneClient, documents: Iterable[JsonObject]) -> None:
    for document in documents:
        await client.apply(document)


def _with_address(document: JsonObject, webhook: Link, plane: RealPlane) -> JsonObject:
    """Replaces `service` by `url`, as described in `deploy/`: these API servers resolve no
    Services.
    """
    if text_at(document, "kind") != "ValidatingWebhookConfiguration":
        return document
    for one in objects_at(document, "webhooks"):
        path = text_at(one, "clientConfig", "service", "path")
        one["clientConfig"] = client_of(webhook, path, plane)
    return document


def client_of(webhook: Link, path: str, plane: RealPlane) -> JsonObject:
    """The webhook's client configuration for the API server of this plane."""
    return {
        "url": f"https://{webhook.address}:{webhook.port}{path}",
        "caBundle": base64.b64encode(plane.runtime.pki.authority).decode(),
    }


def scraper_binding() -> JsonObject:
    """Binds the shipped metrics-reader role to the scraper."""
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "metrics-scraper"},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "compute-metrics-reader"},
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": SCRAPER.user}],
    }


async def issue_token(planes: RealPlanes, plane: str, account: str) -> Token:
    """A token of a ServiceAccount from `deploy/`."""
    path = f"/api/v1/namespaces/{SYSTEM}/serviceaccounts/{account}/token"
    asked: JsonObject = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": ONE_DAY},
    }
    async with planes.plane(plane).client() as client:
        issued = await client.post(path, asked)
    return Token(text_at(object_at(issued, "status"), "token"))


def write_kubeconfig(path: Path, planes: RealPlanes, server: str, token: Token) -> Path:
    context = Context("plane", server, planes.plane(ROOT).runtime.pki.authority, token)
    path.write_text(render_kubeconfig([context]), "utf-8")
    path.chmod(0o600)
    return path
