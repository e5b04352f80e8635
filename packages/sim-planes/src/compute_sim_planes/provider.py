"""The provider of a cell, simulated: it runs ungated Instances, and is as strict as the real one
(`docs/spec/cell.md` 15).

```
gated ─► nothing at all      ungated ─► finalizer, "pod" with the spec frozen ─► status by its phase
deleting ─► pod gone after a while ─► finalizer off
```

How a pod fares is told by the tag of its image. What the operators must not do is recorded in
`violations`. It stands on the neighbours' client port and shares no code with the operators.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from compute_sim_planes.api_server.sources import Clock
from compute_sim_planes.client import Client, Resource
from compute_sim_planes.following import follow
from compute_sim_planes.json_copies import copy_object
from compute_sim_planes.json_types import (
    JsonObject,
    JsonValue,
    array_at,
    ensure_object,
    integer_at,
    object_at,
    objects_at,
    string_at,
    strings_at,
    value_at,
)
from compute_sim_planes.keyed_work import Key, KeyedWork, key_of
from compute_sim_planes.milo.conditions import Finding, derive_conditions, find_condition

INSTANCES: Final = Resource("compute.datumapis.com", "v1alpha", "instances", "Instance")
FINALIZER: Final = "unikraft.datumapis.com/finalizer"
OURS: Final = ("Available", "Programmed")
# Of the schema, and of the Go cell operator, which wrote our conditions while quota was waited for.
UNWRITTEN: Final = ("Pending", "PendingQuota")
RUNS_FOR: Final = timedelta(seconds=1)  # of images that end
_SLOW: Final = re.compile(r"slow-([0-9]{1,6})")


@dataclass(slots=True)
class ProviderKnobs:
    """How long things take; may be turned while it runs."""

    start_delay: timedelta = timedelta(seconds=1)  # 0: Running in the pass that sees it ungated
    stop_delay: timedelta = timedelta(seconds=1)


class Phase(StrEnum):
    """Of a pod."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True)
class Fate:
    """How a pod is doing, why, and when that changes."""

    phase: Phase
    trouble: tuple[str, str] | None = None  # reason and message while Pending
    changes_in: timedelta | None = None


TROUBLES: Final = {
    "image-unavailable": ("ImageUnavailable", "The instance image could not be pulled"),
    "crash": ("InstanceCrashing", "The instance is repeatedly failing to start"),
    "config-error": (
        "ConfigurationError",
        "The instance could not be started due to a configuration error",
    ),
}
ENDS: Final = {"failed": Phase.FAILED, "stopped": Phase.SUCCEEDED}


def derive_fate(tag: str, age: timedelta, knobs: ProviderKnobs) -> Fate:
    """How a pod of this image tag is doing at that age."""
    if tag in TROUBLES:
        return Fate(Phase.PENDING, TROUBLES[tag])
    if tag == "hang":
        return Fate(Phase.PENDING)
    slow = _SLOW.fullmatch(tag)
    pending = timedelta(seconds=int(slow[1])) if slow else knobs.start_delay
    if age < pending:
        return Fate(Phase.PENDING, changes_in=pending - age)
    if tag not in ENDS:
        return Fate(Phase.RUNNING)
    if age < pending + RUNS_FOR:
        return Fate(Phase.RUNNING, changes_in=pending + RUNS_FOR - age)
    return Fate(ENDS[tag])


def read_tag(instance: JsonObject) -> str:
    """The tag of the first container's image."""
    containers = objects_at(instance, "spec", "runtime", "sandbox", "containers")
    image = string_at(containers[0], "image") if containers else ""
    return image.rpartition("/")[2].partition(":")[2]


def derive_findings(fate: Fate, generation: int | None) -> tuple[Finding, Finding]:
    """What Available and Programmed say."""
    match fate.phase:
        case Phase.PENDING:
            reason, message = fate.trouble or ("Provisioning", "Instance is provisioning")
            available = ("Unknown", reason, message)
            programmed = ("Unknown", "ProgrammingInProgress", message)
        case Phase.RUNNING:
            available = ("True", "Available", "Instance is available")
            programmed = ("True", "Programmed", "Instance is available")
        case Phase.SUCCEEDED:
            available = programmed = ("False", "Stopping", "Instance has stopped")
        case Phase.FAILED:
            available = programmed = ("False", "Failed", "Instance failed")
    return (
        Finding("Available", *available, generation=generation),
        Finding("Programmed", *programmed, generation=generation),
    )


@dataclass(slots=True)
class Pod:
    """What runs for one Instance: frozen when it was made."""

    name: str
    tag: str
    template_hash: str
    spec: JsonObject
    began: datetime
    address: str
    has_run: bool = False
    ends_at: datetime | None = None
    said: dict[str, JsonObject] = field(default_factory=dict[str, JsonObject])


class Provider:
    """The provider of one cell; `pods` by Instance UID, `violations` as they were seen."""

    def __init__(self, client: Client, clock: Clock, knobs: ProviderKnobs | None = None) -> None:
        self.knobs = knobs or ProviderKnobs()
        self.pods: dict[str, Pod] = {}
        self.started: list[str] = []  # UIDs, in the order of their starts
        self.violations: list[str] = []
        self._client = client
        self._clock = clock

    async def run(self) -> None:
        """Works until it is cancelled; what runs goes on running meanwhile."""
        async with asyncio.TaskGroup() as tasks:
            work = KeyedWork(self._look, tasks, "provider")
            async with aclosing(follow(self._client, INSTANCES)) as changes:
                async for seen in changes:
                    work.wake(key_of(seen.object))

    async def _look(self, key: Key) -> timedelta | None:
        found = await self._client.get(INSTANCES, key.name, key.namespace)
        if found is None:
            return None
        if string_at(found, "metadata", "deletionTimestamp"):
            return await self._tear_down(found)
        if not isinstance(value_at(found, "spec", "runtime", "sandbox"), dict):
            return None
        return await self._tend(found)

    # running -------------------------------------------------------------------------------------

    async def _tend(self, found: JsonObject) -> timedelta | None:
        uid = string_at(found, "metadata", "uid")
        pod = self.pods.get(uid)
        if array_at(found, "spec", "controller", "schedulingGates"):
            if pod is not None:
                self._violate("started with a gate", found)
            return None
        if FINALIZER not in strings_at(found, "metadata", "finalizers"):
            if pod is not None:
                self._violate("started twice for one UID", found)
            found = await self._protect(found)
        if pod is None:
            pod = self.pods[uid] = self._start(found)
        return await self._tell(found, pod)

    async def _protect(self, found: JsonObject) -> JsonObject:
        finalizers = [*strings_at(found, "metadata", "finalizers"), FINALIZER]
        return await self._set_finalizers(found, finalizers)

    def _start(self, found: JsonObject) -> Pod:
        place = len(self.started)
        self.started.append(string_at(found, "metadata", "uid"))
        self._check_foreign(found, {})
        return Pod(
            name=string_at(found, "metadata", "name"),
            tag=read_tag(found),
            template_hash=string_at(found, "spec", "controller", "templateHash"),
            spec=object_at(found, "spec"),
            began=self._clock.now(),
            address=f"10.128.{place // 250}.{place % 250 + 2}",
        )

    async def _tell(self, found: JsonObject, pod: Pod) -> timedelta | None:
        fate = derive_fate(pod.tag, self._clock.now() - pod.began, self.knobs)
        self._check_foreign(found, pod.said)
        pod.has_run |= fate.phase is Phase.RUNNING
        status = self._status(found, pod, fate)
        if status != {name: value_at(found, "status", name) for name in status}:
            # With the version that was read: a condition written meanwhile must not be lost.
            version = string_at(found, "metadata", "resourceVersion")
            answer = await self._client.patch(
                INSTANCES,
                pod.name,
                {"metadata": {"resourceVersion": version}, "status": status},
                namespace=string_at(found, "metadata", "namespace"),
                subresource="status",
            )
            pod.said = {kind: find_condition(answer, kind) or {} for kind in OURS}
        return fate.changes_in

    def _status(self, found: JsonObject, pod: Pod, fate: Fate) -> JsonObject:
        told = copy_object(found)
        for finding in derive_findings(fate, integer_at(found, "metadata", "generation")):
            entries = derive_conditions(told, finding, self._clock.now())
            ensure_object(told, "status")["conditions"] = entries
        status: JsonObject = {"conditions": value_at(told, "status", "conditions")}
        if pod.has_run:
            status["controller"] = {"observedTemplateHash": pod.template_hash}
            status["networkInterfaces"] = [{"assignments": {"networkIP": pod.address}}]
        return status

    def _check_foreign(self, found: JsonObject, said: dict[str, JsonObject]) -> None:
        """Nobody else writes our conditions; before the first word only the schema has spoken."""
        for kind in OURS:
            entry = find_condition(found, kind)
            is_ours = entry == said[kind] if said else _is_unwritten(entry)
            if not is_ours:
                self._violate(f"foreign write to {kind}", found)

    # ending --------------------------------------------------------------------------------------

    async def _tear_down(self, found: JsonObject) -> timedelta | None:
        finalizers = strings_at(found, "metadata", "finalizers")
        if FINALIZER not in finalizers:
            return None
        uid = string_at(found, "metadata", "uid")
        now = self._clock.now()
        pod = self.pods.get(uid)
        if pod is not None:
            pod.ends_at = pod.ends_at or now + self.knobs.stop_delay
            if now < pod.ends_at:
                return pod.ends_at - now
        await self._set_finalizers(found, [one for one in finalizers if one != FINALIZER])
        self.pods.pop(uid, None)
        return None

    async def _set_finalizers(self, found: JsonObject, finalizers: list[str]) -> JsonObject:
        metadata: JsonObject = {
            "finalizers": list[JsonValue](finalizers),
            "resourceVersion": string_at(found, "metadata", "resourceVersion"),
        }
        return await self._client.patch(
            INSTANCES,
            string_at(found, "metadata", "name"),
            {"metadata": metadata},
            namespace=string_at(found, "metadata", "namespace"),
        )

    def _violate(self, what: str, found: JsonObject) -> None:
        key = key_of(found)
        violation = f"{key.namespace}/{key.name}: {what}"
        if violation not in self.violations:
            self.violations.append(violation)


def _is_unwritten(entry: JsonObject | None) -> bool:
    return entry is None or string_at(entry, "reason") in UNWRITTEN
