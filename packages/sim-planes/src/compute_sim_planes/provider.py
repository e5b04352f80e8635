"""Simulated provider of a cell: runs Instances without gates (`docs/spec/cell.md` 15).

```
gated ─► ignored             ungated ─► finalizer, "pod" with the spec frozen ─► status by its phase
deleting ─► pod gone after a delay ─► finalizer removed
```

The tag of an image determines how its pod behaves. Forbidden actions of the operators are recorded
in `violations`. It shares no code with the operators.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from compute_sim_planes.client.reflector import list_and_watch
from compute_sim_planes.client.rest import Client, Resource
from compute_sim_planes.client.workqueue import NamespacedName, WorkQueue, namespaced_name
from compute_sim_planes.conditions import Condition, derive_conditions, find_condition
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
from compute_sim_planes.time.sources import Clock

INSTANCES: Final = Resource("compute.datumapis.com", "v1alpha", "instances", "Instance")
FINALIZER: Final = "unikraft.datumapis.com/finalizer"
PROVIDER_CONDITIONS: Final = ("Available", "Programmed")
# Of the schema, and of the Go cell operator, which wrote these conditions while it waited for
# quota.
INITIAL_REASONS: Final = ("Pending", "PendingQuota")
RUNS_FOR: Final = timedelta(seconds=1)  # of images that end
_SLOW: Final = re.compile(r"slow-([0-9]{1,6})")


@dataclass(slots=True)
class ProviderOptions:
    """Delays; may be changed while it runs."""

    start_delay: timedelta = timedelta(seconds=1)  # 0: Running in the first ungated reconcile
    stop_delay: timedelta = timedelta(seconds=1)


class Phase(StrEnum):
    """The phase of a pod."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True)
class PodState:
    """The phase of a pod, a failure, and the time until it changes."""

    phase: Phase
    failure: tuple[str, str] | None = None  # reason and message while Pending
    changes_in: timedelta | None = None


IMAGE_FAILURES: Final = {
    "image-unavailable": ("ImageUnavailable", "The instance image could not be pulled"),
    "crash": ("InstanceCrashing", "The instance is repeatedly failing to start"),
    "config-error": (
        "ConfigurationError",
        "The instance could not be started due to a configuration error",
    ),
}
ENDS: Final = {"failed": Phase.FAILED, "stopped": Phase.SUCCEEDED}


def derive_pod_state(tag: str, age: timedelta, options: ProviderOptions) -> PodState:
    """The state of a pod with this image tag at an age."""
    if tag in IMAGE_FAILURES:
        return PodState(Phase.PENDING, IMAGE_FAILURES[tag])
    if tag == "hang":
        return PodState(Phase.PENDING)
    slow = _SLOW.fullmatch(tag)
    pending = timedelta(seconds=int(slow[1])) if slow else options.start_delay
    if age < pending:
        return PodState(Phase.PENDING, changes_in=pending - age)
    if tag not in ENDS:
        return PodState(Phase.RUNNING)
    if age < pending + RUNS_FOR:
        return PodState(Phase.RUNNING, changes_in=pending + RUNS_FOR - age)
    return PodState(ENDS[tag])


def read_tag(instance: JsonObject) -> str:
    """The tag of the first container's image."""
    containers = objects_at(instance, "spec", "runtime", "sandbox", "containers")
    image = string_at(containers[0], "image") if containers else ""
    return image.rpartition("/")[2].partition(":")[2]


def derive_pod_conditions(state: PodState, generation: int | None) -> tuple[Condition, Condition]:
    """The conditions Available and Programmed."""
    match state.phase:
        case Phase.PENDING:
            reason, message = state.failure or ("Provisioning", "Instance is provisioning")
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
        Condition("Available", *available, generation=generation),
        Condition("Programmed", *programmed, generation=generation),
    )


@dataclass(slots=True)
class Pod:
    """The workload of one Instance, with the spec of its start."""

    name: str
    tag: str
    template_hash: str
    spec: JsonObject
    began: datetime
    address: str
    has_run: bool = False
    ends_at: datetime | None = None
    written_conditions: dict[str, JsonObject] = field(default_factory=dict[str, JsonObject])


class Provider:
    """The provider of one cell; `pods` by Instance UID."""

    def __init__(
        self, client: Client, clock: Clock, options: ProviderOptions | None = None
    ) -> None:
        self.options = options or ProviderOptions()
        self.pods: dict[str, Pod] = {}
        self.started: list[str] = []  # UIDs in the order of their starts
        self.violations: list[str] = []
        self._client = client
        self._clock = clock

    async def run(self) -> None:
        """Run until cancelled; pods keep running meanwhile."""
        async with asyncio.TaskGroup() as tasks:
            work = WorkQueue(self._reconcile, tasks, "provider")
            async with aclosing(list_and_watch(self._client, INSTANCES)) as changes:
                async for seen in changes:
                    work.add(namespaced_name(seen.object))

    async def _reconcile(self, key: NamespacedName) -> timedelta | None:
        existing = await self._client.get(INSTANCES, key.name, key.namespace)
        if existing is None:
            return None
        if string_at(existing, "metadata", "deletionTimestamp"):
            return await self._tear_down(existing)
        if not isinstance(value_at(existing, "spec", "runtime", "sandbox"), dict):
            return None
        return await self._reconcile_pod(existing)

    # running -------------------------------------------------------------------------------------

    async def _reconcile_pod(self, existing: JsonObject) -> timedelta | None:
        uid = string_at(existing, "metadata", "uid")
        pod = self.pods.get(uid)
        if array_at(existing, "spec", "controller", "schedulingGates"):
            if pod is not None:
                self._add_violation("started with a gate", existing)
            return None
        if FINALIZER not in strings_at(existing, "metadata", "finalizers"):
            if pod is not None:
                self._add_violation("started twice for one UID", existing)
            existing = await self._protect(existing)
        if pod is None:
            pod = self.pods[uid] = self._start(existing)
        return await self._update_status(existing, pod)

    async def _protect(self, existing: JsonObject) -> JsonObject:
        finalizers = [*strings_at(existing, "metadata", "finalizers"), FINALIZER]
        return await self._set_finalizers(existing, finalizers)

    def _start(self, existing: JsonObject) -> Pod:
        place = len(self.started)
        self.started.append(string_at(existing, "metadata", "uid"))
        self._check_foreign(existing, {})
        return Pod(
            name=string_at(existing, "metadata", "name"),
            tag=read_tag(existing),
            template_hash=string_at(existing, "spec", "controller", "templateHash"),
            spec=object_at(existing, "spec"),
            began=self._clock.now(),
            address=f"10.128.{place // 250}.{place % 250 + 2}",
        )

    async def _update_status(self, existing: JsonObject, pod: Pod) -> timedelta | None:
        state = derive_pod_state(pod.tag, self._clock.now() - pod.began, self.options)
        self._check_foreign(existing, pod.written_conditions)
        pod.has_run |= state.phase is Phase.RUNNING
        status = self._status(existing, pod, state)
        if status != {name: value_at(existing, "status", name) for name in status}:
            # With the version that was read, so that a concurrent condition is not lost.
            version = string_at(existing, "metadata", "resourceVersion")
            answer = await self._client.patch(
                INSTANCES,
                pod.name,
                {"metadata": {"resourceVersion": version}, "status": status},
                namespace=string_at(existing, "metadata", "namespace"),
                subresource="status",
            )
            pod.written_conditions = {
                kind: find_condition(answer, kind) or {} for kind in PROVIDER_CONDITIONS
            }
        return state.changes_in

    def _status(self, existing: JsonObject, pod: Pod, state: PodState) -> JsonObject:
        updated = copy_object(existing)
        for condition in derive_pod_conditions(
            state, integer_at(existing, "metadata", "generation")
        ):
            entries = derive_conditions(updated, condition, self._clock.now())
            ensure_object(updated, "status")["conditions"] = entries
        status: JsonObject = {"conditions": value_at(updated, "status", "conditions")}
        if pod.has_run:
            status["controller"] = {"observedTemplateHash": pod.template_hash}
            status["networkInterfaces"] = [{"assignments": {"networkIP": pod.address}}]
        return status

    def _check_foreign(self, existing: JsonObject, written: dict[str, JsonObject]) -> None:
        """Record foreign writes to the provider's conditions; until its first write only the
        schema's default is valid.
        """
        for kind in PROVIDER_CONDITIONS:
            entry = find_condition(existing, kind)
            is_ours = entry == written[kind] if written else _is_initial(entry)
            if not is_ours:
                self._add_violation(f"foreign write to {kind}", existing)

    # ending --------------------------------------------------------------------------------------

    async def _tear_down(self, existing: JsonObject) -> timedelta | None:
        finalizers = strings_at(existing, "metadata", "finalizers")
        if FINALIZER not in finalizers:
            return None
        uid = string_at(existing, "metadata", "uid")
        now = self._clock.now()
        pod = self.pods.get(uid)
        if pod is not None:
            pod.ends_at = pod.ends_at or now + self.options.stop_delay
            if now < pod.ends_at:
                return pod.ends_at - now
        await self._set_finalizers(existing, [one for one in finalizers if one != FINALIZER])
        self.pods.pop(uid, None)
        return None

    async def _set_finalizers(self, existing: JsonObject, finalizers: list[str]) -> JsonObject:
        metadata: JsonObject = {
            "finalizers": list[JsonValue](finalizers),
            "resourceVersion": string_at(existing, "metadata", "resourceVersion"),
        }
        return await self._client.patch(
            INSTANCES,
            string_at(existing, "metadata", "name"),
            {"metadata": metadata},
            namespace=string_at(existing, "metadata", "namespace"),
        )

    def _add_violation(self, what: str, existing: JsonObject) -> None:
        key = namespaced_name(existing)
        violation = f"{key.namespace}/{key.name}: {what}"
        if violation not in self.violations:
            self.violations.append(violation)


def _is_initial(entry: JsonObject | None) -> bool:
    return entry is None or string_at(entry, "reason") in INITIAL_REASONS
