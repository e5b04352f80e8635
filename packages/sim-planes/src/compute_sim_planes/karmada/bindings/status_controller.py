"""Status of bindings and hub objects, aggregated from Works by the hub's interpreter scripts."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Final

from compute_sim_planes.client.workqueue import NamespacedName, namespaced_name
from compute_sim_planes.conditions import Condition, derive_conditions, find_condition
from compute_sim_planes.json_types import (
    JsonObject,
    JsonValue,
    object_at,
    objects_at,
    string_at,
)
from compute_sim_planes.karmada.bindings.resource_binding import target_clusters
from compute_sim_planes.karmada.event_recorder import EventText
from compute_sim_planes.karmada.hub import Hub
from compute_sim_planes.karmada.interpreter.customization import StatusItem
from compute_sim_planes.karmada.interpreter.lua_sandbox import ScriptError
from compute_sim_planes.karmada.interpreter.registry import Interpreters
from compute_sim_planes.karmada.kinds import (
    BINDING_NAME,
    BINDING_NAMESPACE,
    BINDINGS,
)
from compute_sim_planes.karmada.metadata import (
    annotations_of,
    is_terminating,
    name_of,
    namespace_of,
)
from compute_sim_planes.karmada.names import find_cluster
from compute_sim_planes.karmada.retry_queue import RetryQueue
from compute_sim_planes.karmada.templates import Templates

COMPONENT: Final = "resource-binding-status-controller"
_APPLIED: Final = Condition(
    "FullyApplied", "True", "FullyAppliedSuccess", "All works have been successfully applied"
)
_NOT_APPLIED: Final = Condition(
    "FullyApplied",
    "False",
    "FullyAppliedFailed",
    "Failed to apply all works, see status.aggregatedStatus for details",
)


class BindingStatusController:
    """Reconciles bindings after changes of their Works."""

    def __init__(
        self,
        hub: Hub,
        templates: Templates,
        interpreters: Interpreters,
        tasks: asyncio.TaskGroup,
    ) -> None:
        self._hub = hub
        self._templates = templates
        self._interpreters = interpreters
        self._queue = RetryQueue(self._reconcile, tasks, "binding status", hub.options)

    def start(self) -> None:
        self._hub.works.listen(self._on_work)
        self._hub.bindings.listen(self._on_binding)

    def _on_work(self, before: JsonObject | None, after: JsonObject | None) -> None:
        """Enqueue the binding of a changed Work. A new Work has no status, so an object that never
        had one stays as it is.
        """
        if before is None or (after is not None and before.get("status") == after.get("status")):
            return
        marks = annotations_of(after or before)
        if BINDING_NAME in marks and BINDING_NAMESPACE in marks:
            self._queue.add(NamespacedName(marks[BINDING_NAMESPACE], marks[BINDING_NAME]))

    def _on_binding(self, before: JsonObject | None, after: JsonObject | None) -> None:
        if after is None or not string_at(after, "status", "lastScheduledTime"):
            return
        if before is None or _template_version(before) != _template_version(after):
            self._queue.add(namespaced_name(after))

    async def _reconcile(self, key: NamespacedName) -> timedelta | None:
        binding = self._hub.bindings.get(key.name, key.namespace)
        if binding is None or is_terminating(binding):
            return None
        works = self._hub.works_of(binding)
        items = sorted(
            (summarise_work(work) for work in works if not is_terminating(work)),
            key=lambda item: item.cluster,
        )
        await self._update_binding(binding, items)
        await self._update_template(binding, items)
        return None

    async def _update_binding(self, binding: JsonObject, items: list[StatusItem]) -> None:
        existing = object_at(binding, "status")
        targets = set(target_clusters(binding))
        is_applied = bool(targets) and len(targets) == len(items)
        is_applied &= all(item.is_applied and item.cluster in targets for item in items)
        condition = _APPLIED if is_applied else _NOT_APPLIED
        status: dict[str, JsonValue] = {
            **existing,
            "conditions": derive_conditions(binding, condition, self._hub.clock.now()),
        }
        status.pop("aggregatedStatus", None)
        if items:
            status["aggregatedStatus"] = [item.as_json() for item in items]
        if status == existing:
            return
        await self._hub.client.update_status(BINDINGS, {**binding, "status": status})
        place = f"{namespace_of(binding)}/{name_of(binding)}"
        message = f"Update ResourceBinding({place}) with AggregatedStatus successfully."
        self._hub.events.record(
            binding, EventText(COMPONENT, "Normal", "AggregateStatusSucceed", message)
        )

    async def _update_template(self, binding: JsonObject, items: list[StatusItem]) -> None:
        """Write the hub object's aggregated status, computed from a live read."""
        reference = object_at(binding, "spec", "resource")
        interpreter = self._interpreters.aggregator(reference)
        resource = self._templates.find_kind(
            string_at(reference, "apiVersion"), string_at(reference, "kind")
        )
        if interpreter is None or resource is None:
            return
        name, namespace = string_at(reference, "name"), string_at(reference, "namespace")
        template = await self._hub.client.get(resource, name, namespace)
        if template is None:
            return
        try:
            desired = interpreter.aggregate(template, items or None)
        except ScriptError as failure:
            event = EventText(COMPONENT, "Warning", "AggregateStatusFailed", str(failure))
            self._hub.events.record(template, event)
            raise
        if desired.get("status") == template.get("status"):
            return
        await self._hub.client.update_status(resource, desired)
        message = "Update Resource with AggregatedStatus successfully."
        self._hub.events.record(
            template, EventText(COMPONENT, "Normal", "AggregateStatusSucceed", message)
        )


def summarise_work(work: JsonObject) -> StatusItem:
    """The status of one Work: empty with a message until it is applied. Pure."""
    cluster = find_cluster(namespace_of(work))
    applied = find_condition(work, "Applied")
    if string_at(applied, "status") != "True":
        return StatusItem(cluster, False, None, message=string_at(applied, "message"))
    entry = next(iter(objects_at(work, "status", "manifestStatuses")), None)
    status = entry.get("status") if entry is not None else None
    return StatusItem(
        cluster,
        True,
        status if isinstance(status, dict) else None,
        health=string_at(entry, "health") or "Unknown",
    )


def _template_version(binding: JsonObject) -> str:
    return string_at(binding, "spec", "resource", "resourceVersion")
