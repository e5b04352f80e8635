"""Delivery of project Networks into cells, a part of NSO that sim-planes does not simulate.

It uses the client of sim-planes and works on real servers too.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import Final

from compute_api_types.names import parse_hub_namespace
from compute_sim_planes.client.errors import ApiError
from compute_sim_planes.client.reflector import list_and_watch
from compute_sim_planes.client.rest import Client, Resource
from compute_sim_planes.json_types import JsonObject, string_at
from compute_sim_planes.networking import NETWORKS

NAMESPACES: Final = Resource("", "v1", "namespaces", "Namespace", is_namespaced=False)


class NetworkDelivery:
    """Copies a project's Network into its namespace in the cell.

    The simulated NSO of a cell starts from that Network.
    """

    def __init__(self, client: Client, *names: str) -> None:
        self._client = client
        self._names = names

    async def run(self) -> None:
        async with aclosing(list_and_watch(self._client, NAMESPACES)) as changes:
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
                # It exists already; or the namespace is terminating, or gone.
                if refused.status not in {403, 404, 409}:
                    raise
