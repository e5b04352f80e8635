"""The hub and its members as Karmada's contract asks for them: addresses, tokens, a restart.

Members take bearer tokens, and a kube-apiserver reads its token file only once; further tokens are
therefore those of service accounts, which can be taken back.
"""

from __future__ import annotations

import secrets

from compute_sim_planes.api_server.testing import ServerAddress
from compute_sim_planes.json_types import JsonObject, string_at
from e2e.planes.client import Endpoint, PlaneClient
from e2e.planes.identities import ADMIN
from e2e.planes.kubeconfig import Token
from e2e.planes.plane import Plane
from e2e.planes.stack import RealPlanes
from e2e.planes.waiting import until

_NAMESPACE = "kube-system"


def address_of(plane: Plane, user: str = ADMIN.user) -> ServerAddress:
    """The plane's API server, for its administrator or another user."""
    token = plane.site.tokens.of(plane.name, user).token
    return ServerAddress(plane.server, token, plane.site.pki.authority)


class RealKarmadaStack:
    """Karmada of a running topology."""

    def __init__(self, planes: RealPlanes) -> None:
        self._planes = planes
        # Which service account speaks with which token.
        self._accounts: dict[str, str] = {}

    @property
    def hub(self) -> ServerAddress:
        return address_of(self._planes.karmada.hub)

    def member(self, name: str) -> ServerAddress:
        return address_of(self._planes.plane(name))

    async def issue_token(self, member: str) -> str:
        name = f"issued-{secrets.token_hex(4)}"
        async with self._planes.plane(member).client() as client:
            await client.create(_service_account(name))
            await client.create(_binding(name))
            path = f"/api/v1/namespaces/{_NAMESPACE}/serviceaccounts/{name}/token"
            issued = await client.post(
                path, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
            )
        token = string_at(issued, "status", "token")
        self._accounts[token] = name
        return token

    async def revoke_token(self, member: str, token: str) -> None:
        plane, name = self._planes.plane(member), self._accounts.pop(token)
        async with plane.client() as client:
            await client.delete(f"/api/v1/namespaces/{_NAMESPACE}/serviceaccounts/{name}")
            await client.delete(await client.path_of(_binding(name)))
        # Watches that were opened with it would go on, and so would the belief in it for seconds.
        await plane.api_server.restart()
        endpoint = Endpoint(plane.server, plane.site.pki.authority, Token(token))
        async with PlaneClient(endpoint) as stranger:

            async def refused() -> bool:
                return await stranger.is_refused("/api/v1/namespaces")

            await until("the token to be refused", refused, check=self._planes.check)

    async def restart_karmada(self) -> None:
        await self._planes.karmada.controller_manager.restart()


def _service_account(name: str) -> JsonObject:
    meta: JsonObject = {"namespace": _NAMESPACE, "name": name}
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta}


def _binding(name: str) -> JsonObject:
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": _NAMESPACE}],
    }
