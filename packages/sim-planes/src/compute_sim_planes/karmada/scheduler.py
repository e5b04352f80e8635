"""The scheduler: which members a binding goes to.

Asked when a binding's generation moves and when a member's labels or spec do; a member's status
alone moves nothing. A binding that fits nowhere is emptied, and is not looked at again until one of
these happens.
"""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import Final

from compute_sim_planes.api_server.sources import render_time
from compute_sim_planes.json_types import JsonObject, JsonValue, object_at, string_at
from compute_sim_planes.karmada.bindings import target_clusters
from compute_sim_planes.karmada.events import Said
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
    is_going,
    labels_of,
    name_of,
    namespace_of,
    version_of,
)
from compute_sim_planes.karmada.placement import Choice, choose_clusters, is_meant
from compute_sim_planes.karmada.retrying import Retrying
from compute_sim_planes.keyed_work import Key, key_of
from compute_sim_planes.milo.conditions import Finding, derive_conditions

COMPONENT: Final = "default-scheduler"
SUCCESS: Final = "Binding has been scheduled successfully."


class Scheduler:
    """Over all bindings and all members."""

    def __init__(self, hub: Hub, tasks: asyncio.TaskGroup) -> None:
        self._hub = hub
        self._queue = Retrying(self._look, tasks, "scheduler", hub.knobs)

    def start(self) -> None:
        self._hub.bindings.listen(self._on_binding)
        self._hub.clusters.listen(self._on_cluster)

    def _on_binding(self, before: JsonObject | None, after: JsonObject | None) -> None:
        if after is None or not _has_policy(after):
            return
        if before is None or generation_of(before) != generation_of(after):
            self._queue.add(key_of(after))

    def _on_cluster(self, before: JsonObject | None, after: JsonObject | None) -> None:
        if before is None or after is None:
            return  # a new member is not ready yet, and one that is gone was emptied before
        has_moved = labels_of(before) != labels_of(after) or (
            generation_of(before) != generation_of(after)
        )
        if not has_moved and is_going(before) == is_going(after):
            return
        for binding in self._hub.bindings.items():
            placement = object_at(binding, "spec", "placement")
            if is_meant(placement, before) or is_meant(placement, after):
                self._queue.add(key_of(binding))

    async def _look(self, key: Key) -> timedelta | None:
        binding = self._hub.bindings.get(key.name, key.namespace)
        if binding is None:
            return None
        if is_going(binding):
            place = f"{key.namespace}/{key.name}"
            self._say(binding, f"skip schedule deleting resourceBinding: {place}")
            return None
        choice = choose_clusters(binding, self._hub.clusters.items())
        written = await self._place(binding, choice)
        await self._tell(binding, written, choice)
        if choice.complaint:
            self._say(binding, choice.complaint)
        else:
            shown = ", ".join(f"{name}:0" for name in choice.clusters)
            self._say(binding, f"{SUCCESS} Result: {{{shown}}}", is_success=True)
        return None

    async def _place(self, binding: JsonObject, choice: Choice) -> JsonObject:
        """The binding with its members; as it is when they are the same."""
        placement = _render_placement(object_at(binding, "spec", "placement"))
        is_known = annotations_of(binding).get(APPLIED_PLACEMENT) == placement
        if is_known and target_clusters(binding) == [*choice.clusters]:
            return binding
        clusters: list[JsonValue] = [{"name": name} for name in choice.clusters]
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

    async def _tell(self, seen: JsonObject, written: JsonObject, choice: Choice) -> None:
        """What was decided about the generation that was seen."""
        now = self._hub.clock.now()
        if choice.complaint:
            finding = Finding("Scheduled", "False", "NoClusterFit", choice.complaint)
        else:
            finding = Finding("Scheduled", "True", "Success", SUCCESS)
        status: JsonObject = {"conditions": derive_conditions(written, finding, now)}
        if not choice.complaint:
            status["schedulerObservedGeneration"] = generation_of(seen)
            status["lastScheduledTime"] = render_time(now)
        found = object_at(written, "status")
        if all(found.get(name) == value for name, value in status.items()):
            return
        # With the version: the condition about Works must not be lost.
        patch: JsonObject = {
            "metadata": {"resourceVersion": version_of(written)},
            "status": status,
        }
        await self._hub.client.patch(
            BINDINGS,
            name_of(seen),
            patch,
            namespace=namespace_of(seen),
            subresource="status",
        )

    def _say(self, binding: JsonObject, message: str, *, is_success: bool = False) -> None:
        reference = object_at(binding, "spec", "resource")
        template: JsonObject = {
            "apiVersion": string_at(reference, "apiVersion"),
            "kind": string_at(reference, "kind"),
            "metadata": {name: string_at(reference, name) for name in ("namespace", "name", "uid")},
        }
        said = Said(
            COMPONENT,
            "Normal" if is_success else "Warning",
            "ScheduleBindingSucceed" if is_success else "ScheduleBindingFailed",
            message,
        )
        for about in (binding, template):
            self._hub.events.say(about, said)


def _has_policy(binding: JsonObject) -> bool:
    """One that nobody has is not scheduled for its own sake."""
    labels = labels_of(binding)
    return bool(labels.get(POLICY_ID) or labels.get(CLUSTER_POLICY_ID))


def _render_placement(placement: JsonObject) -> str:
    return json.dumps(placement, separators=(",", ":"), sort_keys=True)
