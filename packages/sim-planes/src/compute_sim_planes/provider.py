"""Simulated provider of a cell: runs Instances without gates (`docs/spec/cell.md` 15).

```
gated ─► ignored             ungated ─► finalizer, "pod" with the spec frozen ─► status by its phase
deleting ─► pod gone after a delay ─► finalizer removed
suspended ─► pod gone, nothing reported; resumed ─► another pod
```

The tag of an image determines how its pod behaves (`pod_life.py`). Forbidden actions of the
operators are recorded in `violations`. It shares no code with the operators.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
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
from compute_sim_planes.pod_life import (
    NODE_UNREACHABLE,
    FirstContainer,
    Phase,
    PodState,
    ProviderOptions,
    derive_pod_state,
)
from compute_sim_planes.time.sources import Clock

INSTANCES: Final = Resource("compute.datumapis.com", "v1alpha", "instances", "Instance")
FINALIZER: Final = "unikraft.datumapis.com/finalizer"
PROVIDER_CONDITIONS: Final = ("Available", "Programmed")
# Of the schema, and of the Go cell operator, which wrote these conditions while it waited for
# quota.
INITIAL_REASONS: Final = ("Pending", "PendingQuota")
# Of the cell operator around a suspension, the only writes to `Available` that are not ours.
SUSPENSION_MESSAGES: Final = (
    "Instance is suspended and not serving traffic.",
    "Instance is being resumed",
)


def read_container(instance: JsonObject) -> FirstContainer:
    """The first container, with its own limit of memory or that of the whole type."""
    containers = objects_at(instance, "spec", "runtime", "sandbox", "containers")
    if not containers:
        return FirstContainer("", "")
    container = FirstContainer(string_at(containers[0], "name"), string_at(containers[0], "image"))
    memory = string_at(containers[0], "resources", "limits", "memory")
    return replace(container, memory=memory) if memory else container


def derive_pod_conditions(state: PodState, generation: int | None) -> tuple[Condition, Condition]:
    """The conditions Available and Programmed."""
    available, programmed = state.available, state.programmed
    return (
        Condition(
            "Available",
            available.status,
            available.reason,
            available.message,
            generation=generation,
        ),
        Condition(
            "Programmed",
            programmed.status,
            programmed.reason,
            programmed.message,
            generation=generation,
        ),
    )


@dataclass(slots=True)
class Pod:
    """The workload of one Instance, with the spec of its start."""

    key: NamespacedName
    container: FirstContainer
    template_hash: str
    spec: JsonObject
    began: datetime
    address: str
    has_started: bool = False
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
        self._stopped: dict[str, dict[str, JsonObject]] = {}  # conditions of suspended Instances
        self._client = client
        self._clock = clock
        self._is_node_away = False
        self._work: WorkQueue | None = None

    def set_node_away(self, *, is_away: bool) -> None:
        """Whether the node of all pods is unreachable; reported at once."""
        self._is_node_away = is_away
        for pod in self.pods.values():
            if self._work is not None:
                self._work.add(pod.key)

    async def run(self) -> None:
        """Run until cancelled; pods keep running meanwhile."""
        async with asyncio.TaskGroup() as tasks:
            work = self._work = WorkQueue(self._reconcile, tasks, "provider")
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
        if value_at(existing, "status", "suspended") is True:
            if pod is not None:
                self._stopped[uid] = self.pods.pop(uid).written_conditions
            return None
        if FINALIZER not in strings_at(existing, "metadata", "finalizers"):
            if pod is not None:
                self._add_violation("started twice for one UID", existing)
            existing = await self._protect(existing)
        if pod is None:
            pod = self.pods[uid] = self._start(existing, self._stopped.pop(uid, {}))
        return await self._update_status(existing, pod)

    async def _protect(self, existing: JsonObject) -> JsonObject:
        finalizers = [*strings_at(existing, "metadata", "finalizers"), FINALIZER]
        return await self._set_finalizers(existing, finalizers)

    def _start(self, existing: JsonObject, written: dict[str, JsonObject]) -> Pod:
        place = len(self.started)
        self.started.append(string_at(existing, "metadata", "uid"))
        self._check_foreign(existing, written)
        return Pod(
            key=namespaced_name(existing),
            container=read_container(existing),
            template_hash=string_at(existing, "spec", "controller", "templateHash"),
            spec=object_at(existing, "spec"),
            began=self._clock.now(),
            address=f"10.128.{place // 250}.{place % 250 + 2}",
            written_conditions=written,
        )

    async def _update_status(self, existing: JsonObject, pod: Pod) -> timedelta | None:
        state = derive_pod_state(pod.container, self._clock.now() - pod.began, self.options)
        if self._is_node_away and state.phase is Phase.RUNNING:
            # The node controller's mark; containers may run on, and nothing is known of them.
            state = replace(state, available=NODE_UNREACHABLE, has_started=True)
        self._check_foreign(existing, pod.written_conditions)
        pod.has_started |= state.has_started
        status = self._status(existing, pod, state)
        if status != {name: value_at(existing, "status", name) for name in status}:
            # With the version that was read, so that a concurrent condition is not lost.
            version = string_at(existing, "metadata", "resourceVersion")
            answer = await self._client.patch(
                INSTANCES,
                pod.key.name,
                {"metadata": {"resourceVersion": version}, "status": status},
                namespace=pod.key.namespace,
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
        if pod.has_started:
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
            if not is_ours and not (kind == "Available" and _is_of_suspension(entry)):
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
        self._stopped.pop(uid, None)
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


def _is_of_suspension(entry: JsonObject | None) -> bool:
    return entry is not None and string_at(entry, "message") in SUSPENSION_MESSAGES
