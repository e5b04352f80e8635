"""What an administrator does before anything runs: `deploy/` on every plane, and credentials.

Applied as it is rendered; what an installation must say itself is said here: where API servers find
the webhook and who signed its certificate, the bindings of each cell, the ServiceAccounts' tokens.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from compute_api_types.wire import JsonObject
from e2e.backends.port import HOME, HUB, ROOT, SINGLE, Cell
from e2e.backends.shipped import cell_bindings, manifests
from e2e.documents import a_location
from e2e.objects import object_at, objects_at, text_at
from e2e.planes.client import PlaneClient
from e2e.planes.identities import Identity
from e2e.planes.kubeconfig import Context, Token, render_kubeconfig
from e2e.planes.links import Link
from e2e.planes.plane import Plane
from e2e.planes.stack import RealPlanes

SYSTEM: Final = "compute-system"
SCRAPER: Final = Identity("metrics-scraper")
ONE_DAY: Final = 86_400
RBAC: Final = "rbac.authorization.k8s.io"


async def install_single(planes: RealPlanes, webhook: Link) -> None:
    """Both operators in one plain cluster."""
    plane = planes.plane(SINGLE.name)
    documents = [_with_address(one, webhook, plane) for one in manifests("single-cluster")]
    async with plane.client() as client:
        await _apply(client, [*documents, scraper_binding()])


async def install(planes: RealPlanes, cells: Iterable[Cell], webhook: Link) -> None:
    """Everything that ships for a federation, where it belongs."""
    cells = tuple(cells)
    await install_far_planes(planes, cells, webhook)
    async with planes.plane(HOME).client() as home:
        await _apply(home, manifests("management"))
    for cell in cells:
        async with planes.plane(cell.name).client() as member:
            await _apply(member, manifests("cell"))
    await furnish_homes(planes, cells)


async def furnish_homes(planes: RealPlanes, cells: Iterable[Cell]) -> None:
    """What is beside the operators where they run, and does not ship."""
    async with planes.plane(HOME).client() as home:
        await home.apply(scraper_binding())
    for cell in cells:
        async with planes.plane(cell.name).client() as member:
            await _apply(member, [a_location(cell.city), scraper_binding()])


async def install_far_planes(planes: RealPlanes, cells: Iterable[Cell], webhook: Link) -> None:
    """What ships for planes on which no operator runs: Milo's root and the hub."""
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


def _with_address(document: JsonObject, webhook: Link, plane: Plane) -> JsonObject:
    """API servers of these planes resolve no Services: the patch `url` that `deploy/` speaks of."""
    if text_at(document, "kind") != "ValidatingWebhookConfiguration":
        return document
    for one in objects_at(document, "webhooks"):
        path = text_at(one, "clientConfig", "service", "path")
        one["clientConfig"] = client_of(webhook, path, plane)
    return document


def client_of(webhook: Link, path: str, plane: Plane) -> JsonObject:
    """How an API server of this plane reaches the webhook."""
    return {
        "url": f"https://{webhook.address}:{webhook.port}{path}",
        "caBundle": base64.b64encode(plane.site.pki.authority).decode(),
    }


def scraper_binding() -> JsonObject:
    """Somebody who may read metrics, by the role that ships for it."""
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "metrics-scraper"},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "compute-metrics-reader"},
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": SCRAPER.user}],
    }


async def issue_token(planes: RealPlanes, plane: str, account: str) -> Token:
    """A token of a ServiceAccount that `deploy/` made on a plane."""
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
    context = Context("plane", server, planes.plane(ROOT).site.pki.authority, token)
    path.write_text(render_kubeconfig([context]), "utf-8")
    path.chmod(0o600)
    return path
