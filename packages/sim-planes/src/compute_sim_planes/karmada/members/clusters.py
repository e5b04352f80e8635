"""The cluster controller: execution namespaces and taints of members, and their removal.

```
joined ─► execution namespace, finalizer     not Ready ─► taint: no new objects, existing ones stay
deleted ─► execution namespace and Works deleted ─► no binding targets it ─► finalizer removed
```
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta
from typing import Final

from compute_sim_planes.client.errors import AlreadyExistsError
from compute_sim_planes.json_copies import copy_object
from compute_sim_planes.json_types import (
    JsonObject,
    JsonValue,
    ensure_object,
    objects_at,
    string_at,
)
from compute_sim_planes.karmada.bindings.resource_binding import target_clusters
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
    is_terminating,
    name_of,
    with_metadata,
    without_finalizer,
)
from compute_sim_planes.karmada.names import derive_execution_space
from compute_sim_planes.karmada.retry_queue import RetryQueue
from compute_sim_planes.time.sources import render_time

_NO_SCHEDULE: Final = "NoSchedule"


class ClusterController:
    """Reconciles all Clusters."""

    def __init__(self, hub: Hub, tasks: asyncio.TaskGroup) -> None:
        self._hub = hub
        self._queue = RetryQueue(self._reconcile, tasks, "clusters", hub.options)

    def start(self) -> None:
        self._hub.clusters.listen(self._on_change)

    def _on_change(self, _: JsonObject | None, after: JsonObject | None) -> None:
        if after is not None:
            self._queue.add(name_of(after))

    async def _reconcile(self, name: str) -> timedelta | None:
        cluster = self._hub.clusters.get(name)
        if cluster is None:
            return None
        if is_terminating(cluster):
            return await self._leave(cluster)
        await self._ensure_space(name)
        desired = with_metadata(self._tainted(cluster), finalizers=(CLUSTER_FINALIZER,))
        if desired != cluster:
            await self._hub.client.update(CLUSTERS, desired)
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
        """The Cluster with the taint if it is not Ready, else without."""
        taints = objects_at(cluster, "spec", "taints")
        others = [one for one in taints if string_at(one, "key") != NOT_READY_TAINT]
        is_ready = self._hub.is_ready(cluster)
        if is_ready == (len(others) == len(taints)):
            return cluster
        desired = copy_object(cluster)
        entries: list[JsonValue] = [*others]
        if not is_ready:
            since = render_time(self._hub.clock.now())
            entries.append({"key": NOT_READY_TAINT, "effect": _NO_SCHEDULE, "timeAdded": since})
        spec = ensure_object(desired, "spec")
        spec.pop("taints", None)
        if entries:
            spec["taints"] = entries
        return desired

    async def _leave(self, cluster: JsonObject) -> timedelta | None:
        space = derive_execution_space(name_of(cluster))
        if CLUSTER_FINALIZER not in finalizers_of(cluster):
            return None
        is_there = await self._hub.client.get(NAMESPACES, space)
        if is_there is not None:
            if not is_terminating(is_there):
                await self._hub.client.delete(NAMESPACES, space)
            return self._hub.options.cleanup_interval
        if any(name_of(cluster) in target_clusters(one) for one in self._hub.bindings.items()):
            return self._hub.options.cleanup_interval
        await self._hub.client.update(CLUSTERS, without_finalizer(cluster, CLUSTER_FINALIZER))
        return None
