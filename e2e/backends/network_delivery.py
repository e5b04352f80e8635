"""NSO's delivery of Networks into cells, which is no part of what sim-planes emulates of NSO.

Stands on the client port of sim-planes, so that it works beside real servers too.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import Final

from compute_api_types.names import parse_hub_namespace
from compute_sim_planes.client import Client, Resource
from compute_sim_planes.client_errors import ApiError
from compute_sim_planes.following import follow
from compute_sim_planes.json_types import JsonObject, string_at
from compute_sim_planes.networking import NETWORKS

NAMESPACES: Final = Resource("", "v1", "namespaces", "Namespace", is_namespaced=False)


class NetworkDelivery:
    """Brings the Network of a project into the cell's namespace for it, as NSO's own delivery does;
    what is emulated of NSO in a cell begins with a Network there.
    """

    def __init__(self, client: Client, *names: str) -> None:
        self._client = client
        self._names = names

    async def run(self) -> None:
        async with aclosing(follow(self._client, NAMESPACES)) as changes:
            async for seen in changes:
                namespace = string_at(seen.object, "metadata", "name")
                going = string_at(seen.object, "metadata", "deletionTimestamp")
                if parse_hub_namespace(namespace) is not None and not going:
                    await self._deliver(namespace)

    async def _deliver(self, namespace: str) -> None:
        for name in self._names:
            wanted: JsonObject = {
                "apiVersion": NETWORKS.api_version,
                "kind": NETWORKS.kind,
                "metadata": {"name": name, "namespace": namespace},
                "spec": {"ipam": {"mode": "Auto"}},
            }
            try:
                await self._client.create(NETWORKS, wanted)
            except ApiError as refused:
                # It is there already; or the namespace has just begun to go, or is gone.
                if refused.status not in {403, 404, 409}:
                    raise
