"""The simulated cluster of `bench.pod_provider`, with a kubelet that runs every Pod at once.

It runs behind a TLS server in its own process. Times are taken from commits: an Instance without
its gate, and the Pod of its name. Mutating requests of the provider are counted as they arrive; its
Lease is not counted.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import secrets
import sys
import time
from collections.abc import Coroutine, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import orjson
import uvloop

from bench._commanded import serve
from compute_api_types.crd import derive_crds
from compute_sim_planes.api_server.authz.identity import ADMIN, Tokens
from compute_sim_planes.api_server.http.server import PrefixRoutes
from compute_sim_planes.api_server.http.transport import Response
from compute_sim_planes.api_server.kinds.kind import GroupResource
from compute_sim_planes.api_server.manifests import apply_manifests
from compute_sim_planes.api_server.plane import Plane, PlaneParts
from compute_sim_planes.api_server.storage.records import Change, ChangeType
from compute_sim_planes.client.rest import Client, Resource
from compute_sim_planes.conditions import is_condition_true
from compute_sim_planes.json_types import JsonObject, JsonValue, object_at, objects_at, string_at
from compute_sim_planes.time.sources import SeededIdentities

NAMESPACE: Final = "ns-1f0a2b3c-4d5e-4f60-8a7b-9c0d1e2f3a4b"
INSTANCE: Final = Resource("compute.datumapis.com", "v1alpha", "instances", "Instance")
POD: Final = Resource("", "v1", "pods", "Pod")
INSTANCES: Final = GroupResource("compute.datumapis.com", "instances")
PODS: Final = GroupResource("", "pods")
PROBE_TIMEOUT: Final = 30.0
GATED: Final[JsonObject] = {"spec": {"controller": {"schedulingGates": [{"name": "Quota"}]}}}
OPEN: Final[JsonObject] = {"spec": {"controller": {"schedulingGates": None}}}


class CountedTransport:
    """The plane, with a count of mutating requests but those of the Lease."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane
        self.writes = 0

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        if method not in {"GET", "HEAD"} and not _is_aside(target):
            self.writes += 1
        return await self._plane.request(method, target, headers, body)


def _is_aside(target: str) -> bool:
    """Requests about the Lease, and Events, which are recorded and not reconciled."""
    return any(part in target for part in ("/leases", "/events"))


class PodPlanes:
    """The cluster, its kubelet and the cell operator's part: Instances that lose their gate."""

    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(16)
        identities = SeededIdentities(random.SystemRandom())
        tokens = Tokens({self.token: ADMIN})
        self.plane = Plane("cell", PlaneParts(tokens=tokens, identities=identities))
        self.counted = CountedTransport(self.plane)
        self._client = Client(self.plane.connect(), manager="people")
        self._kubelet = self.plane.connect()
        self._acts: set[asyncio.Task[None]] = set()
        self._opened: dict[str, float] = {}
        self._created: dict[str, float] = {}
        self._changed = asyncio.Event()

    def routes(self) -> PrefixRoutes:
        routes = PrefixRoutes()
        routes.add("/cell", self.counted)
        return routes

    async def fill(self) -> None:
        crds: list[JsonObject] = orjson.loads(orjson.dumps(derive_crds()))
        spaces = [a_namespace(name) for name in ("compute-system", NAMESPACE)]
        await apply_manifests(self.plane.connect(), [*crds, *spaces])
        self.plane.state.store.listen(self._see)

    # commands of the benchmark -------------------------------------------------------------------

    async def add(self, prefix: str, count: int) -> JsonValue:
        """Creates Instances behind a gate."""
        for number in range(count):
            await self._client.create(INSTANCE, an_instance(f"{prefix}-{number}"))
            await asyncio.sleep(0)
        return count

    async def open(self, prefix: str, count: int) -> JsonValue:
        """Takes the gates away, all at once."""
        for number in range(count):
            await self._open(f"{prefix}-{number}")
            await asyncio.sleep(0)
        return count

    async def _open(self, name: str) -> None:
        self._opened[name] = time.monotonic()
        await self._client.patch(INSTANCE, name, OPEN, namespace=NAMESPACE)

    async def probe(self, prefix: str, times: int, every: float) -> JsonValue:
        """Seconds from an Instance without gate to its Pod, one Instance after another."""
        await self.add(prefix, times)
        for number in range(times):
            name = f"{prefix}-{number}"
            await self._open(name)
            async with asyncio.timeout(PROBE_TIMEOUT):
                while name not in self._created:
                    self._changed.clear()
                    await self._changed.wait()
            await asyncio.sleep(every)
        return await self.gaps(prefix)

    async def gaps(self, prefix: str) -> JsonValue:
        return [
            created - self._opened[name]
            for name, created in self._created.items()
            if name.startswith(f"{prefix}-")
        ]

    async def span(self, prefix: str) -> JsonValue:
        """Seconds from the first Instance without gate to the last Pod."""
        opened = [at for name, at in self._opened.items() if name.startswith(f"{prefix}-")]
        created = [at for name, at in self._created.items() if name.startswith(f"{prefix}-")]
        return [max(created) - min(opened)]

    async def delete(self) -> JsonValue:
        names = [one.name for one in self.plane.state.store.bucket(INSTANCES).listed()]
        for name in names:
            await self._client.delete(INSTANCE, name, namespace=NAMESPACE)
            await asyncio.sleep(0)
        return len(names)

    async def count(self) -> JsonValue:
        instances = [one.decode() for one in self.plane.state.store.bucket(INSTANCES).listed()]
        return {
            "instances": len(instances),
            "available": sum(1 for one in instances if is_condition_true(one, "Available")),
            "pods": sum(1 for _ in self.plane.state.store.bucket(PODS).listed()),
            "writes": self.counted.writes,
        }

    # the kubelet ---------------------------------------------------------------------------------

    def _see(self, change: Change) -> None:
        if change.resource != PODS or change.type is ChangeType.DELETED:
            return
        document = change.after.decode()
        if change.type is ChangeType.ADDED:
            self._created[change.after.name] = time.monotonic()
            self._changed.set()
            self._act(self._run(document))
        elif "deletionTimestamp" in object_at(document, "metadata"):
            self._act(self._end(change.after.name))

    def _act(self, act: Coroutine[object, object, None]) -> None:
        task = asyncio.get_running_loop().create_task(act)
        self._acts.add(task)
        task.add_done_callback(self._acts.discard)

    async def _run(self, pod: JsonObject) -> None:
        status = {"status": a_running_status(pod)}
        await self._send("PATCH", string_at(pod, "metadata", "name"), status, "/status")

    async def _end(self, name: str) -> None:
        await self._send("DELETE", name, {"gracePeriodSeconds": 0})

    async def _send(
        self, method: str, name: str, body: Mapping[str, JsonValue], subresource: str = ""
    ) -> None:
        headers = {"content-type": "application/json"}
        if method == "PATCH":
            headers = {"content-type": "application/merge-patch+json"}
        path = f"{POD.path(NAMESPACE, name)}{subresource}"
        await self._kubelet.request(method, path, headers, json.dumps(body).encode())

    async def close(self) -> None:
        for act in list(self._acts):
            act.cancel()
        await self.plane.close()


# --- documents ------------------------------------------------------------------------------------


def a_namespace(name: str) -> JsonObject:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def an_instance(name: str) -> JsonObject:
    containers: list[JsonValue] = [
        {"name": one, "image": f"registry.example/{one}:1.27.3"} for one in ("web", "sidecar")
    ]
    return {
        "apiVersion": INSTANCE.api_version,
        "kind": INSTANCE.kind,
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "runtime": {
                "resources": {"instanceType": "datumcloud/d1-standard-2"},
                "sandbox": {"containers": containers},
            },
            "networkInterfaces": [{"network": {"name": "default"}}],
            "controller": {
                "templateHash": "v1-1",
                **object_at(GATED, "spec", "controller"),
            },
        },
    }


def a_running_status(pod: JsonObject) -> JsonObject:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    states: list[JsonValue] = [
        {
            "name": string_at(one, "name"),
            "image": string_at(one, "image"),
            "imageID": "",
            "ready": True,
            "restartCount": 0,
            "state": {"running": {"startedAt": now}},
        }
        for one in objects_at(pod, "spec", "containers")
    ]
    true: list[JsonValue] = [
        {"type": one, "status": "True"} for one in ("PodScheduled", "ContainersReady", "Ready")
    ]
    return {
        "phase": "Running",
        "conditions": true,
        "podIPs": [{"ip": "10.0.0.9"}],
        "containerStatuses": states,
    }


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    uvloop.run(serve(PodPlanes(), Path(sys.argv[1]), {"cell": "/cell"}))
