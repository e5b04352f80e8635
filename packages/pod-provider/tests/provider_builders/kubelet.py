"""A kubelet and a scheduler in small: Pods get a node, run by the tag of their image, and end.

`ok` runs; `crash` ends after each start; `missing` is never pulled; `hang` stays Pending; `stuck`
runs and never ends. It writes Pod status as kubelet does, over the same API server.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Final

from compute_sim_planes.api_server.testing import Api
from compute_sim_planes.json_types import (
    JsonObject,
    JsonValue,
    object_at,
    objects_at,
    string_at,
)

LOOKS_EVERY: Final = 0.05  # seconds
NODE: Final = "node-1"
TRUE: Final = ("PodScheduled", "Ready", "ContainersReady")


class FakeKubelet:
    """Runs the Pods of one cluster until cancelled."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.started: list[str] = []  # UIDs of Pods, in the order of their starts

    async def run(self) -> None:
        while True:
            listed = (await self._api.get("/api/v1/pods")).expect(200)
            for pod in objects_at(listed, "items"):
                await self._handle(pod)
            await asyncio.sleep(LOOKS_EVERY)

    async def _handle(self, pod: JsonObject) -> None:
        metadata = object_at(pod, "metadata")
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        tag = string_at(objects_at(pod, "spec", "containers")[0], "image").rpartition(":")[2]
        if "deletionTimestamp" in metadata:
            if tag != "stuck":
                await self._api.delete(path, {"gracePeriodSeconds": 0})
            return
        if string_at(pod, "spec", "nodeName") or tag == "hang":
            return
        self.started.append(string_at(pod, "metadata", "uid"))
        await self._api.merge(path, {"spec": {"nodeName": NODE}})
        await self._api.merge(f"{path}/status", {"status": status_of(tag, pod)})


def status_of(tag: str, pod: JsonObject) -> JsonObject:
    names = [string_at(one, "name") for one in objects_at(pod, "spec", "containers")]
    if tag == "missing":
        state: JsonObject = {"waiting": {"reason": "ErrImagePull", "message": "not found"}}
        return {"phase": "Pending", "containerStatuses": _each(names, state, 0)}
    if tag == "crash":
        state = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}
        ended: JsonObject = {"terminated": {"reason": "Error", "exitCode": 1}}
        return {"phase": "Running", "containerStatuses": _each(names, state, 3, ended)}
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    conditions: list[JsonValue] = [{"type": one, "status": "True"} for one in TRUE]
    return {
        "phase": "Running",
        "conditions": conditions,
        "podIPs": [{"ip": "10.0.0.9"}],
        "containerStatuses": _each(names, {"running": {"startedAt": now}}, 0),
    }


def _each(
    names: list[str], state: JsonObject, restarts: int, last: JsonObject | None = None
) -> list[JsonValue]:
    return [
        {"name": name, "state": state, "restartCount": restarts, "lastState": last or {}}
        for name in names
    ]
