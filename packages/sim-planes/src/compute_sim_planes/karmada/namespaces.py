"""Namespaces of the hub go to every member, whether anything else does or not."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Final

from compute_sim_planes.client_errors import ApiError
from compute_sim_planes.json_types import JsonObject
from compute_sim_planes.karmada.hub import Hub
from compute_sim_planes.karmada.kinds import SKIP_PROPAGATION
from compute_sim_planes.karmada.metadata import is_going, labels_of, name_of
from compute_sim_planes.karmada.names import is_propagated
from compute_sim_planes.karmada.retrying import NotYetError, Retrying
from compute_sim_planes.karmada.works import ensure_work, plan_namespace_work

_NEVER: Final = "default"


class NamespaceController:
    """Over all namespaces; their Works go with them, as their owners."""

    def __init__(self, hub: Hub, tasks: asyncio.TaskGroup) -> None:
        self._hub = hub
        self._queue = Retrying(self._look, tasks, "namespaces", hub.knobs)

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

    async def _look(self, name: str) -> timedelta | None:
        namespace = self._hub.namespaces.get(name)
        if namespace is None or is_going(namespace) or not _is_pushed(namespace):
            return None
        failures: list[ApiError | NotYetError] = []
        for cluster in self._hub.clusters.items():
            try:
                await ensure_work(self._hub, plan_namespace_work(namespace, name_of(cluster)))
            except (ApiError, NotYetError) as failure:
                # One member whose execution space is not there must not hold the others up.
                failures.append(failure)
        if failures:
            raise failures[0]
        return None


def _is_pushed(namespace: JsonObject) -> bool:
    name = name_of(namespace)
    is_skipped = labels_of(namespace).get(SKIP_PROPAGATION, "").lower() == "true"
    return name != _NEVER and is_propagated(name) and not is_skipped
