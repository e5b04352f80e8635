"""The scheduler: selects the members of a binding.

Bindings are reconciled when their generation changes and when a member's labels or spec change; a
member's status alone does not matter. A binding without a fitting member is emptied and waits for
such a change.
"""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import Final

from compute_sim_planes.client.workqueue import NamespacedName, namespaced_name
from compute_sim_planes.conditions import Condition, derive_conditions
from compute_sim_planes.json_types import JsonObject, JsonValue, object_at, string_at
from compute_sim_planes.karmada.bindings.placement import (
    ScheduleResult,
    choose_clusters,
    matches_affinity,
)
from compute_sim_planes.karmada.bindings.resource_binding import scheduled_clusters
from compute_sim_planes.karmada.event_recorder import EventText
from compute_sim_planes.karmada.hub import Hub
from compute_sim_planes.karmada.kinds import (
    APPLIED_PLACEMENT,
    BINDINGS,
    CLUSTER_POLICY_ID,
    POLICY_ID,
)
from compute_sim_planes.karmada.metadata import (
    annotations_of,
    generation_of,
    is_terminating,
    labels_of,
    name_of,
    namespace_of,
    version_of,
)
from compute_sim_planes.karmada.retry_queue import RetryQueue
from compute_sim_planes.time.sources import render_time

COMPONENT: Final = "default-scheduler"
SUCCESS: Final = "Binding has been scheduled successfully."


class Scheduler:
    """The scheduler of all bindings."""

    def __init__(self, hub: Hub, tasks: asyncio.TaskGroup) -> None:
        self._hub = hub
        self._queue = RetryQueue(self._reconcile, tasks, "scheduler", hub.options)

    def start(self) -> None:
        self._hub.bindings.listen(self._on_binding)
        self._hub.clusters.listen(self._on_cluster)

    def _on_binding(self, before: JsonObject | None, after: JsonObject | None) -> None:
        if after is None or not _has_policy(after):
            return
        if before is None or generation_of(before) != generation_of(after):
            self._queue.add(namespaced_name(after))

    def _on_cluster(self, before: JsonObject | None, after: JsonObject | None) -> None:
        if before is None or after is None:
            return  # a new member is not ready yet, and a deleted one was emptied before
        has_moved = labels_of(before) != labels_of(after) or (
            generation_of(before) != generation_of(after)
        )
        if not has_moved and is_terminating(before) == is_terminating(after):
            return
        for binding in self._hub.bindings.items():
            placement = object_at(binding, "spec", "placement")
            if matches_affinity(placement, before) or matches_affinity(placement, after):
                self._queue.add(namespaced_name(binding))

    async def _reconcile(self, key: NamespacedName) -> timedelta | None:
        binding = self._hub.bindings.get(key.name, key.namespace)
        if binding is None:
            return None
        if is_terminating(binding):
            place = f"{key.namespace}/{key.name}"
            self._record_events(binding, f"skip schedule deleting resourceBinding: {place}")
            return None
        choice = choose_clusters(binding, self._hub.clusters.items())
        written = await self._assign_clusters(binding, choice)
        await self._update_status(binding, written, choice)
        if choice.failure:
            self._record_events(binding, choice.failure)
        else:
            shown = ", ".join(f"{name}:0" for name in choice.clusters)
            self._record_events(binding, f"{SUCCESS} Result: {{{shown}}}", is_success=True)
        return None

    async def _assign_clusters(self, binding: JsonObject, result: ScheduleResult) -> JsonObject:
        """The binding with its target clusters; written only if they changed."""
        placement = _render_placement(object_at(binding, "spec", "placement"))
        is_known = annotations_of(binding).get(APPLIED_PLACEMENT) == placement
        if is_known and scheduled_clusters(binding) == [*result.clusters]:
            return binding
        clusters: list[JsonValue] = [{"name": name} for name in result.clusters]
        patch: JsonObject = {
            "metadata": {
                "annotations": {APPLIED_PLACEMENT: placement},
                "resourceVersion": version_of(binding),
            },
            "spec": {"clusters": clusters or None},
        }
        return await self._hub.client.patch(
            BINDINGS, name_of(binding), patch, namespace=namespace_of(binding)
        )

    async def _update_status(
        self, observed: JsonObject, written: JsonObject, result: ScheduleResult
    ) -> None:
        """Report the result for the observed generation."""
        now = self._hub.clock.now()
        if result.failure:
            condition = Condition("Scheduled", "False", "NoClusterFit", result.failure)
        else:
            condition = Condition("Scheduled", "True", "Success", SUCCESS)
        status: JsonObject = {"conditions": derive_conditions(written, condition, now)}
        if not result.failure:
            status["schedulerObservedGeneration"] = generation_of(observed)
            status["lastScheduledTime"] = render_time(now)
        existing = object_at(written, "status")
        if all(existing.get(name) == value for name, value in status.items()):
            return
        # With the version, so that a concurrent update of the other condition is not lost.
        patch: JsonObject = {
            "metadata": {"resourceVersion": version_of(written)},
            "status": status,
        }
        await self._hub.client.patch(
            BINDINGS,
            name_of(observed),
            patch,
            namespace=namespace_of(observed),
            subresource="status",
        )

    def _record_events(
        self, binding: JsonObject, message: str, *, is_success: bool = False
    ) -> None:
        reference = object_at(binding, "spec", "resource")
        template: JsonObject = {
            "apiVersion": string_at(reference, "apiVersion"),
            "kind": string_at(reference, "kind"),
            "metadata": {name: string_at(reference, name) for name in ("namespace", "name", "uid")},
        }
        event = EventText(
            COMPONENT,
            "Normal" if is_success else "Warning",
            "ScheduleBindingSucceed" if is_success else "ScheduleBindingFailed",
            message,
        )
        for about in (binding, template):
            self._hub.events.record(about, event)


def _has_policy(binding: JsonObject) -> bool:
    """Whether a policy claims the binding; others are not scheduled."""
    labels = labels_of(binding)
    return bool(labels.get(POLICY_ID) or labels.get(CLUSTER_POLICY_ID))


def _render_placement(placement: JsonObject) -> str:
    return json.dumps(placement, separators=(",", ":"), sort_keys=True)
