"""From Works to bindings and hub objects: what all members say, folded by the hub's interpreter."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Final

from compute_sim_planes.json_types import (
    JsonObject,
    JsonValue,
    object_at,
    objects_at,
    string_at,
)
from compute_sim_planes.karmada.bindings import target_clusters
from compute_sim_planes.karmada.events import Said
from compute_sim_planes.karmada.hub import Hub
from compute_sim_planes.karmada.interpreter import StatusItem
from compute_sim_planes.karmada.interpreters import Interpreters
from compute_sim_planes.karmada.kinds import (
    BINDING_NAME,
    BINDING_NAMESPACE,
    BINDINGS,
)
from compute_sim_planes.karmada.lua_sandbox import ScriptError
from compute_sim_planes.karmada.metadata import (
    annotations_of,
    is_going,
    name_of,
    namespace_of,
)
from compute_sim_planes.karmada.names import find_cluster
from compute_sim_planes.karmada.retrying import Retrying
from compute_sim_planes.karmada.templates import Templates
from compute_sim_planes.keyed_work import Key, key_of
from compute_sim_planes.milo.conditions import Finding, derive_conditions, find_condition

COMPONENT: Final = "resource-binding-status-controller"
_APPLIED: Final = Finding(
    "FullyApplied", "True", "FullyAppliedSuccess", "All works have been successfully applied"
)
_NOT_APPLIED: Final = Finding(
    "FullyApplied",
    "False",
    "FullyAppliedFailed",
    "Failed to apply all works, see status.aggregatedStatus for details",
)


class BindingStatusController:
    """Over all bindings, woken by their Works."""

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
        self._queue = Retrying(self._look, tasks, "binding status", hub.knobs)

    def start(self) -> None:
        self._hub.works.listen(self._on_work)
        self._hub.bindings.listen(self._on_binding)

    def _on_work(self, before: JsonObject | None, after: JsonObject | None) -> None:
        """A Work that is new has nothing to say yet, so an object that never had one stays as it
        is.
        """
        if before is None or (after is not None and before.get("status") == after.get("status")):
            return
        marks = annotations_of(after or before)
        if BINDING_NAME in marks and BINDING_NAMESPACE in marks:
            self._queue.add(Key(marks[BINDING_NAMESPACE], marks[BINDING_NAME]))

    def _on_binding(self, before: JsonObject | None, after: JsonObject | None) -> None:
        if after is None or not string_at(after, "status", "lastScheduledTime"):
            return
        if before is None or _template_version(before) != _template_version(after):
            self._queue.add(key_of(after))

    async def _look(self, key: Key) -> timedelta | None:
        binding = self._hub.bindings.get(key.name, key.namespace)
        if binding is None or is_going(binding):
            return None
        works = self._hub.works_of(binding)
        items = sorted(
            (summarise_work(work) for work in works if not is_going(work)),
            key=lambda item: item.cluster,
        )
        await self._tell_binding(binding, items)
        await self._tell_template(binding, items)
        return None

    async def _tell_binding(self, binding: JsonObject, items: list[StatusItem]) -> None:
        found = object_at(binding, "status")
        targets = set(target_clusters(binding))
        is_applied = bool(targets) and len(targets) == len(items)
        is_applied &= all(item.is_applied and item.cluster in targets for item in items)
        finding = _APPLIED if is_applied else _NOT_APPLIED
        status: dict[str, JsonValue] = {
            **found,
            "conditions": derive_conditions(binding, finding, self._hub.clock.now()),
        }
        status.pop("aggregatedStatus", None)
        if items:
            status["aggregatedStatus"] = [item.as_json() for item in items]
        if status == found:
            return
        await self._hub.client.update_status(BINDINGS, {**binding, "status": status})
        place = f"{namespace_of(binding)}/{name_of(binding)}"
        message = f"Update ResourceBinding({place}) with AggregatedStatus successfully."
        self._hub.events.say(binding, Said(COMPONENT, "Normal", "AggregateStatusSucceed", message))

    async def _tell_template(self, binding: JsonObject, items: list[StatusItem]) -> None:
        """The hub object's status, from the object as it is now; only that is written."""
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
            wanted = interpreter.aggregate(template, items or None)
        except ScriptError as failure:
            said = Said(COMPONENT, "Warning", "AggregateStatusFailed", str(failure))
            self._hub.events.say(template, said)
            raise
        if wanted.get("status") == template.get("status"):
            return
        await self._hub.client.update_status(resource, wanted)
        message = "Update Resource with AggregatedStatus successfully."
        self._hub.events.say(template, Said(COMPONENT, "Normal", "AggregateStatusSucceed", message))


def summarise_work(work: JsonObject) -> StatusItem:
    """What one Work says: while it is not applied nothing but that, whatever it holds. Pure."""
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
