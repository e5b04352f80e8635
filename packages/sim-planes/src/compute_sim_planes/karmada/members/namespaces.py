"""The namespace sync controller: copies namespaces of the hub to every member."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Final

from compute_sim_planes.client.errors import ApiError
from compute_sim_planes.json_types import JsonObject
from compute_sim_planes.karmada.bindings.works import ensure_work, plan_namespace_work
from compute_sim_planes.karmada.hub import Hub
from compute_sim_planes.karmada.kinds import SKIP_PROPAGATION
from compute_sim_planes.karmada.metadata import is_terminating, labels_of, name_of
from compute_sim_planes.karmada.names import is_propagated
from compute_sim_planes.karmada.retry_queue import RequeueError, RetryQueue

_NEVER: Final = "default"


class NamespaceSyncController:
    """Reconciles all namespaces; their Works are deleted with them by owner reference."""

    def __init__(self, hub: Hub, tasks: asyncio.TaskGroup) -> None:
        self._hub = hub
        self._queue = RetryQueue(self._reconcile, tasks, "namespaces", hub.options)

    def start(self) -> None:
        self._hub.namespaces.listen(self._on_namespace)
        self._hub.clusters.listen(self._on_cluster)

    def _on_namespace(self, _: JsonObject | None, after: JsonObject | None) -> None:
        if after is not None:
            self._queue.add(name_of(after))

    def _on_cluster(self, before: JsonObject | None, after: JsonObject | None) -> None:
        if before is None and after is not None:
            for namespace in self._hub.namespaces.items():
                self._queue.add(name_of(namespace))

    async def _reconcile(self, name: str) -> timedelta | None:
        namespace = self._hub.namespaces.get(name)
        if namespace is None or is_terminating(namespace) or not _is_pushed(namespace):
            return None
        failures: list[ApiError | RequeueError] = []
        for cluster in self._hub.clusters.items():
            try:
                await ensure_work(self._hub, plan_namespace_work(namespace, name_of(cluster)))
            except (ApiError, RequeueError) as failure:
                # A member without an execution namespace must not block the others.
                failures.append(failure)
        if failures:
            raise failures[0]
        return None


def _is_pushed(namespace: JsonObject) -> bool:
    name = name_of(namespace)
    is_skipped = labels_of(namespace).get(SKIP_PROPAGATION, "").lower() == "true"
    return name != _NEVER and is_propagated(name) and not is_skipped
