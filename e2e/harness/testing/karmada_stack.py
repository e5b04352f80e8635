"""Hub and members for Karmada's contract tests: addresses, tokens, a restart.

A kube-apiserver reads its token file only at its start; further tokens are therefore those of
ServiceAccounts, which can be revoked.
"""

from __future__ import annotations

import secrets

from compute_sim_planes.api_server.testing import ServerAddress
from compute_sim_planes.json_types import JsonObject, string_at
from e2e.harness.access.client import Endpoint, PlaneClient
from e2e.harness.access.kubeconfig import Token
from e2e.harness.access.waiting import until
from e2e.harness.planes.identities import ADMIN
from e2e.harness.planes.plane import RealPlane
from e2e.harness.stack.stack import RealPlanes

_NAMESPACE = "kube-system"


def address_of(plane: RealPlane, user: str = ADMIN.user) -> ServerAddress:
    """The address of a plane's API server, for its administrator or another user."""
    token = plane.runtime.tokens.of(plane.name, user).token
    return ServerAddress(plane.server, token, plane.runtime.pki.authority)


class RealKarmadaStack:
    """Karmada in a running topology."""

    def __init__(self, planes: RealPlanes) -> None:
        self._planes = planes
        # ServiceAccount by token.
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
        # A revoked token stays cached for seconds and keeps open watches; a restart ends both.
        await plane.api_server.restart()
        endpoint = Endpoint(plane.server, plane.runtime.pki.authority, Token(token))
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
