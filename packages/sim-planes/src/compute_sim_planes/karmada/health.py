"""Whether members answer, and what they serve: the status of Clusters.

A member that stops to answer, or answers again, is believed after a while only; the first word
about a new one counts at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import orjson

from compute_sim_planes.api_server.discovery import AGGREGATED_TYPE
from compute_sim_planes.api_server.transport import Transport, read_body
from compute_sim_planes.client_errors import error_of
from compute_sim_planes.json_types import JsonObject, JsonValue, objects_at, string_at
from compute_sim_planes.karmada.hub import Hub
from compute_sim_planes.karmada.kinds import CLUSTER_FINALIZER, CLUSTERS
from compute_sim_planes.karmada.members import MANAGER, Members
from compute_sim_planes.karmada.metadata import finalizers_of, generation_of, name_of
from compute_sim_planes.karmada.retrying import NotYetError, Retrying
from compute_sim_planes.milo.conditions import Finding, derive_conditions, find_condition

_READY: Final = Finding(
    "Ready", "True", "ClusterReady", "cluster is healthy and ready to accept workloads"
)
_AWAY: Final = Finding("Ready", "False", "ClusterNotReachable", "cluster is not reachable")
_COMPLETE: Final = Finding(
    "CompleteAPIEnablements",
    "True",
    "Complete",
    "collected complete APIEnablements from the cluster",
)


@dataclass(frozen=True, slots=True)
class _Heard:
    status: str
    since: datetime


@dataclass(frozen=True, slots=True)
class _Raw:
    version: bytes
    core: bytes
    groups: bytes


class HealthController:
    """Over all members."""

    def __init__(self, hub: Hub, members: Members, tasks: asyncio.TaskGroup) -> None:
        self._hub = hub
        self._members = members
        self._heard: dict[str, _Heard] = {}
        # Probes go on for as long as a world lives, and their answers hardly ever change.
        self._parsed: dict[_Raw, JsonObject] = {}
        self._queue = Retrying(self._look, tasks, "health", hub.knobs)

    def start(self) -> None:
        self._hub.clusters.listen(self._on_change)

    def _on_change(self, before: JsonObject | None, after: JsonObject | None) -> None:
        if after is None and before is not None:
            self._heard.pop(name_of(before), None)
        elif after is not None and (
            before is None or generation_of(before) != generation_of(after)
        ):
            self._queue.add(name_of(after))

    async def _look(self, name: str) -> timedelta | None:
        cluster = self._hub.clusters.get(name)
        if cluster is None:
            return None
        if CLUSTER_FINALIZER not in finalizers_of(cluster):
            raise NotYetError("the cluster controller comes first")
        collected = await self._ask(name)
        finding = self._believe(cluster, _AWAY if collected is None else _READY)
        if finding is not None:
            collected = collected if finding.status == "True" else None
            await self._tell(cluster, finding, collected or {})
        return self._hub.knobs.health_interval

    async def _ask(self, name: str) -> JsonObject | None:
        """What a member says of itself; None when it does not answer as it should."""
        try:
            transport = self._members.get(name).transport()
            if not await _is_healthy(transport):
                return None
            raw = await _read(transport)
        except (OSError, NotYetError):
            return None
        if raw not in self._parsed:
            self._parsed[raw] = _parse(raw)
        return self._parsed[raw]

    def _believe(self, cluster: JsonObject, heard: Finding) -> Finding | None:
        """What to say after this: nothing while it is too early to change one's mind."""
        name, now = name_of(cluster), self._hub.clock.now()
        before = self._heard.get(name)
        told = string_at(find_condition(cluster, "Ready"), "status")
        if before is None:
            # Just joined, or we just started.
            self._heard[name] = _Heard(heard.status, datetime.min.replace(tzinfo=now.tzinfo))
            return heard
        if before.status != heard.status:
            before = self._heard[name] = _Heard(heard.status, now)
        knobs = self._hub.knobs
        threshold = knobs.ready_after if heard.status == "True" else knobs.away_after
        if told and told != heard.status and now < before.since + threshold:
            return None
        return heard

    async def _tell(self, cluster: JsonObject, finding: Finding, collected: JsonObject) -> None:
        found = cluster.get("status")
        status: dict[str, JsonValue] = {**(found if isinstance(found, dict) else {}), **collected}
        told: JsonObject = {**cluster, "status": status}
        findings = (finding, _COMPLETE) if collected else (finding,)
        for one in findings:
            status["conditions"] = derive_conditions(told, one, self._hub.clock.now())
        if status != found:
            await self._hub.client.update_status(CLUSTERS, told)


async def _is_healthy(transport: Transport) -> bool:
    answer = await transport.request("GET", "/readyz", {"User-Agent": MANAGER}, None)
    await read_body(answer)
    return answer.status == 200


async def _read(transport: Transport) -> _Raw:
    """Version and kinds of a member, as it tells them."""
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
    """The same, as the status of a Cluster tells it."""
    version: JsonValue = orjson.loads(raw.version)
    found: list[JsonValue] = [orjson.loads(raw.core), orjson.loads(raw.groups)]
    served = [
        entry
        for document in found
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
