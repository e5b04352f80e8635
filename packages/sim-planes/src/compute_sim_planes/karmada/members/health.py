"""The cluster status controller: readiness and served kinds of members.

A change between Ready and not Ready is reported only after a threshold; the first probe of a new
member is reported at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import orjson

from compute_sim_planes.api_server.http.transport import Transport, read_body
from compute_sim_planes.api_server.kinds.discovery import AGGREGATED_TYPE
from compute_sim_planes.client.errors import error_of
from compute_sim_planes.conditions import Condition, derive_conditions, find_condition
from compute_sim_planes.json_types import JsonObject, JsonValue, objects_at, string_at
from compute_sim_planes.karmada.hub import Hub
from compute_sim_planes.karmada.kinds import CLUSTER_FINALIZER, CLUSTERS
from compute_sim_planes.karmada.members.connections import MANAGER, Members
from compute_sim_planes.karmada.metadata import finalizers_of, generation_of, name_of
from compute_sim_planes.karmada.retry_queue import RequeueError, RetryQueue

_READY: Final = Condition(
    "Ready", "True", "ClusterReady", "cluster is healthy and ready to accept workloads"
)
_NOT_REACHABLE: Final = Condition(
    "Ready", "False", "ClusterNotReachable", "cluster is not reachable"
)
_COMPLETE: Final = Condition(
    "CompleteAPIEnablements",
    "True",
    "Complete",
    "collected complete APIEnablements from the cluster",
)


@dataclass(frozen=True, slots=True)
class _ObservedStatus:
    status: str
    since: datetime


@dataclass(frozen=True, slots=True)
class _Raw:
    version: bytes
    core: bytes
    groups: bytes


class HealthController:
    """Probes all members."""

    def __init__(self, hub: Hub, members: Members, tasks: asyncio.TaskGroup) -> None:
        self._hub = hub
        self._members = members
        self._observed: dict[str, _ObservedStatus] = {}
        # Parsed probe results: probes repeat for the whole run, and their bodies rarely change.
        self._parsed: dict[_Raw, JsonObject] = {}
        self._queue = RetryQueue(self._reconcile, tasks, "health", hub.options)

    def start(self) -> None:
        self._hub.clusters.listen(self._on_change)

    def _on_change(self, before: JsonObject | None, after: JsonObject | None) -> None:
        if after is None and before is not None:
            self._observed.pop(name_of(before), None)
        elif after is not None and (
            before is None or generation_of(before) != generation_of(after)
        ):
            self._queue.add(name_of(after))

    async def _reconcile(self, name: str) -> timedelta | None:
        cluster = self._hub.clusters.get(name)
        if cluster is None:
            return None
        if CLUSTER_FINALIZER not in finalizers_of(cluster):
            raise RequeueError("the cluster controller comes first")
        collected = await self._probe(name)
        condition = self._threshold_adjusted(
            cluster, _NOT_REACHABLE if collected is None else _READY
        )
        if condition is not None:
            collected = collected if condition.status == "True" else None
            await self._update_status(cluster, condition, collected or {})
        return self._hub.options.health_interval

    async def _probe(self, name: str) -> JsonObject | None:
        """Version and kinds of a member; None when it is unhealthy or unreachable."""
        try:
            transport = self._members.get(name).transport()
            if not await _is_healthy(transport):
                return None
            raw = await _read(transport)
        except (OSError, RequeueError):
            return None
        if raw not in self._parsed:
            self._parsed[raw] = _parse(raw)
        return self._parsed[raw]

    def _threshold_adjusted(self, cluster: JsonObject, observed: Condition) -> Condition | None:
        """The condition to report; None until a change has lasted for its threshold."""
        name, now = name_of(cluster), self._hub.clock.now()
        before = self._observed.get(name)
        reported = string_at(find_condition(cluster, "Ready"), "status")
        if before is None:
            # The member just joined, or Karmada just started.
            self._observed[name] = _ObservedStatus(
                observed.status, datetime.min.replace(tzinfo=now.tzinfo)
            )
            return observed
        if before.status != observed.status:
            before = self._observed[name] = _ObservedStatus(observed.status, now)
        options = self._hub.options
        threshold = (
            options.success_threshold if observed.status == "True" else options.failure_threshold
        )
        if reported and reported != observed.status and now < before.since + threshold:
            return None
        return observed

    async def _update_status(
        self, cluster: JsonObject, condition: Condition, collected: JsonObject
    ) -> None:
        existing = cluster.get("status")
        status: dict[str, JsonValue] = {
            **(existing if isinstance(existing, dict) else {}),
            **collected,
        }
        updated: JsonObject = {**cluster, "status": status}
        conditions = (condition, _COMPLETE) if collected else (condition,)
        for one in conditions:
            status["conditions"] = derive_conditions(updated, one, self._hub.clock.now())
        if status != existing:
            await self._hub.client.update_status(CLUSTERS, updated)


async def _is_healthy(transport: Transport) -> bool:
    answer = await transport.request("GET", "/readyz", {"User-Agent": MANAGER}, None)
    await read_body(answer)
    return answer.status == 200


async def _read(transport: Transport) -> _Raw:
    """Version and kinds of a member, as bytes."""
    version, core, groups = [await _get(transport, path) for path in ("/version", "/api", "/apis")]
    return _Raw(version, core, groups)


async def _get(transport: Transport, path: str) -> bytes:
    headers = {"User-Agent": MANAGER, "Accept": f"{AGGREGATED_TYPE},application/json"}
    answer = await transport.request("GET", path, headers, None)
    body = await read_body(answer)
    if answer.status != 200:
        raise ConnectionError(str(error_of(answer.status, body)))
    return body


def _parse(raw: _Raw) -> JsonObject:
    """The same as fields of a Cluster's status."""
    version: JsonValue = orjson.loads(raw.version)
    documents: list[JsonValue] = [orjson.loads(raw.core), orjson.loads(raw.groups)]
    served = [
        entry
        for document in documents
        for group in objects_at(document, "items")
        for entry in _group_versions(group)
    ]
    served.sort(key=lambda entry: string_at(entry, "groupVersion"))
    return {
        "kubernetesVersion": string_at(version, "gitVersion"),
        "apiEnablements": list[JsonValue](served),
    }


def _group_versions(group: JsonObject) -> Iterator[JsonObject]:
    name = string_at(group, "metadata", "name")
    for version in objects_at(group, "versions"):
        number = string_at(version, "version")
        resources: list[JsonValue] = [
            {
                "name": string_at(one, "resource"),
                "kind": string_at(one, "responseKind", "kind"),
            }
            for one in objects_at(version, "resources")
        ]
        yield {
            "groupVersion": f"{name}/{number}" if name else number,
            "resources": sorted(resources, key=lambda one: string_at(one, "name")),
        }
