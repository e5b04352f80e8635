"""A kubelet and a scheduler in small: Pods get a node, run by the tag of their image, and end.

```
image-unavailable    never pulled                       hang      stays Pending
config-error         never created, the image's user is root
no-volume            never created, a volume cannot be mounted
crash, crash-after-<n>, oom    end, restart within a second, then wait and restart, as kubelet does
stuck                runs and never ends                any other runs
```

It writes Pod status as kubelet does, over the same API server. Reasons and the order of states are
kubelet's; messages are written after them, not recorded.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
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
CRASH_RUN: Final = 0.3  # seconds; of `crash` and `oom`
NOTICED_AFTER: Final = 1.0  # until the first end is noticed and answered by a restart
FIRST_BACK_OFF: Final = 10.0
_CRASH_AFTER: Final = re.compile(r"crash-after-([0-9]+)")
_PULL: Final = "failed to pull and unpack image: failed to resolve reference: not found"
_ROOT: Final = "container has runAsNonRoot and image will run as root"


class FakeKubelet:
    """Runs the Pods of one cluster until cancelled."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.started: list[str] = []  # UIDs of Pods, in the order of their starts
        self._began: dict[str, float] = {}  # times of the loop, by UID
        self._written: dict[str, JsonObject] = {}
        self.is_away = False  # the node controller marks its Pods
        self.has_cure = False  # what was missing is there: every tag runs

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
        tag = "ok" if self.has_cure else tag
        if "deletionTimestamp" in metadata:
            if tag != "stuck":
                await self._api.delete(path, {"gracePeriodSeconds": 0})
            return
        if tag == "hang":
            return
        uid = string_at(pod, "metadata", "uid")
        if not string_at(pod, "spec", "nodeName"):
            self.started.append(uid)
            self._began[uid] = asyncio.get_running_loop().time()
            await self._api.merge(path, {"spec": {"nodeName": NODE}})
        age = asyncio.get_running_loop().time() - self._began[uid]
        status = status_of(derive_container(tag, age), pod)
        if self.is_away:
            conditions = objects_at(status, "conditions")
            status["conditions"] = [_marked(one) for one in conditions]
        # `startedAt` is the time of the run, not of the look.
        if _shape(status) != _shape(self._written.get(uid)):
            self._written[uid] = status
            await self._api.merge(f"{path}/status", {"status": status})


@dataclass(frozen=True, slots=True)
class ContainerState:
    """One state of a container with its restarts."""

    state: JsonObject
    restarts: int = 0
    last: JsonObject | None = None

    @property
    def is_running(self) -> bool:
        return "running" in self.state

    @property
    def has_run(self) -> bool:
        return "waiting" not in self.state or self.last is not None


def derive_container(tag: str, age: float) -> ContainerState:
    """The state of a container at an age of its Pod, in seconds."""
    if tag == "image-unavailable":
        return ContainerState({"waiting": {"reason": "ErrImagePull", "message": _PULL}})
    if tag == "config-error":
        waiting: JsonObject = {"reason": "CreateContainerConfigError", "message": _ROOT}
        return ContainerState({"waiting": waiting})
    if tag == "no-volume":
        return ContainerState({"waiting": {"reason": "ContainerCreating"}})
    counted = _CRASH_AFTER.fullmatch(tag)
    if tag not in {"crash", "oom"} and counted is None:
        return ContainerState(_running())
    ended: JsonObject = {"reason": "Error", "exitCode": 1}
    if tag == "oom":
        ended = {"reason": "OOMKilled", "exitCode": 137}
    return _derive_crashing(age, float(counted[1]) if counted else CRASH_RUN, ended)


def _derive_crashing(age: float, run_time: float, ended: JsonObject) -> ContainerState:
    restarts, began, pause = 0, 0.0, NOTICED_AFTER
    while age >= began + run_time + pause:
        began += run_time + pause
        restarts += 1
        pause = FIRST_BACK_OFF * 2 ** (restarts - 1)
    last: JsonObject | None = {"terminated": ended} if restarts else None
    if age < began + run_time:
        return ContainerState(_running(), restarts, last)
    if not restarts:
        return ContainerState({"terminated": ended})
    waiting: JsonObject = {"reason": "CrashLoopBackOff", "message": "back-off restarting"}
    return ContainerState({"waiting": waiting}, restarts, {"terminated": ended})


def _running() -> JsonObject:
    return {"running": {"startedAt": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")}}


def status_of(container: ContainerState, pod: JsonObject) -> JsonObject:
    names = [string_at(one, "name") for one in objects_at(pod, "spec", "containers")]
    states: list[JsonValue] = [
        {
            "name": name,
            "state": container.state,
            "restartCount": container.restarts,
            "lastState": container.last or {},
        }
        for name in names
    ]
    ready = "True" if container.is_running else "False"
    conditions: list[JsonValue] = [
        {"type": one, "status": "True" if one == "PodScheduled" else ready} for one in TRUE
    ]
    return {
        "phase": "Running" if container.has_run else "Pending",
        "conditions": conditions,
        "podIPs": [{"ip": "10.0.0.9"}],
        "containerStatuses": states,
    }


def _marked(condition: JsonObject) -> JsonObject:
    """As the node controller does: Ready False, ContainersReady as kubelet wrote it."""
    return {**condition, "status": "False"} if condition["type"] == "Ready" else condition


def _shape(status: JsonObject | None) -> object:
    """A status without the times in it."""
    if status is None:
        return None
    states = [
        (
            one["restartCount"],
            *object_at(one, "state"),
            string_at(one, "state", "waiting", "reason"),
        )
        for one in objects_at(status, "containerStatuses")
    ]
    return status["phase"], status["conditions"], states
