"""Members that join and leave: execution spaces, taints, and the end.

```
joined ─► execution space, finalizer     not Ready ─► a taint: nothing new comes, the rest stays
deleted ─► execution space goes, its Works with it ─► no binding means it any more ─► gone
```
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta
from typing import Final

from compute_sim_planes.api_server.sources import render_time
from compute_sim_planes.client_errors import AlreadyExistsError
from compute_sim_planes.json_copies import copy_object
from compute_sim_planes.json_types import (
    JsonObject,
    JsonValue,
    ensure_object,
    objects_at,
    string_at,
)
from compute_sim_planes.karmada.bindings import target_clusters
from compute_sim_planes.karmada.hub import Hub
from compute_sim_planes.karmada.kinds import (
    CLUSTER_FINALIZER,
    CLUSTERS,
    NAMESPACES,
    NOT_READY_TAINT,
    SYSTEM_LABEL,
)
from compute_sim_planes.karmada.metadata import (
    finalizers_of,
    is_going,
    name_of,
    with_metadata,
    without_finalizer,
)
from compute_sim_planes.karmada.names import derive_execution_space
from compute_sim_planes.karmada.retrying import Retrying

_NO_SCHEDULE: Final = "NoSchedule"


class ClusterController:
    """Over all members."""

    def __init__(self, hub: Hub, tasks: asyncio.TaskGroup) -> None:
        self._hub = hub
        self._queue = Retrying(self._look, tasks, "clusters", hub.knobs)

    def start(self) -> None:
        self._hub.clusters.listen(self._on_change)

    def _on_change(self, _: JsonObject | None, after: JsonObject | None) -> None:
        if after is not None:
            self._queue.add(name_of(after))

    async def _look(self, name: str) -> timedelta | None:
        cluster = self._hub.clusters.get(name)
        if cluster is None:
            return None
        if is_going(cluster):
            return await self._leave(cluster)
        await self._ensure_space(name)
        wanted = with_metadata(self._tainted(cluster), finalizers=(CLUSTER_FINALIZER,))
        if wanted != cluster:
            await self._hub.client.update(CLUSTERS, wanted)
        return None

    async def _ensure_space(self, cluster: str) -> None:
        name = derive_execution_space(cluster)
        if self._hub.namespaces.get(name) is not None:
            return
        with suppress(AlreadyExistsError):
            await self._hub.client.create(
                NAMESPACES,
                {
                    "apiVersion": NAMESPACES.api_version,
                    "kind": NAMESPACES.kind,
                    "metadata": {"name": name, "labels": {SYSTEM_LABEL: "true"}},
                },
            )

    def _tainted(self, cluster: JsonObject) -> JsonObject:
        """With the taint if it is not Ready, else without."""
        taints = objects_at(cluster, "spec", "taints")
        others = [one for one in taints if string_at(one, "key") != NOT_READY_TAINT]
        is_ready = self._hub.is_ready(cluster)
        if is_ready == (len(others) == len(taints)):
            return cluster
        wanted = copy_object(cluster)
        entries: list[JsonValue] = [*others]
        if not is_ready:
            since = render_time(self._hub.clock.now())
            entries.append({"key": NOT_READY_TAINT, "effect": _NO_SCHEDULE, "timeAdded": since})
        spec = ensure_object(wanted, "spec")
        spec.pop("taints", None)
        if entries:
            spec["taints"] = entries
        return wanted

    async def _leave(self, cluster: JsonObject) -> timedelta | None:
        space = derive_execution_space(name_of(cluster))
        if CLUSTER_FINALIZER not in finalizers_of(cluster):
            return None
        is_there = await self._hub.client.get(NAMESPACES, space)
        if is_there is not None:
            if not is_going(is_there):
                await self._hub.client.delete(NAMESPACES, space)
            return self._hub.knobs.cleanup_interval
        if any(name_of(cluster) in target_clusters(one) for one in self._hub.bindings.items()):
            return self._hub.knobs.cleanup_interval
        await self._hub.client.update(CLUSTERS, without_finalizer(cluster, CLUSTER_FINALIZER))
        return None
