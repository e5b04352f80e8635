"""Works of a binding: one per target cluster, none for other members.

Only a change of the binding's generation is reconciled, so changes that do not affect a binding (a
removed claim, an unclaimed object) do not reach members.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Final

from compute_sim_planes.client.workqueue import NamespacedName, namespaced_name
from compute_sim_planes.json_types import JsonObject, object_at, string_at
from compute_sim_planes.karmada.bindings.resource_binding import target_clusters
from compute_sim_planes.karmada.bindings.works import ensure_work, plan_work
from compute_sim_planes.karmada.event_recorder import EventText
from compute_sim_planes.karmada.hub import Hub
from compute_sim_planes.karmada.kinds import BINDING_FINALIZER, BINDINGS, WORKS
from compute_sim_planes.karmada.metadata import (
    finalizers_of,
    generation_of,
    is_terminating,
    name_of,
    namespace_of,
    uid_of,
    without_finalizer,
)
from compute_sim_planes.karmada.names import find_cluster
from compute_sim_planes.karmada.retry_queue import RetryQueue
from compute_sim_planes.karmada.templates import Templates

COMPONENT: Final = "binding-controller"


class BindingController:
    """Reconciles the Works of all bindings."""

    def __init__(self, hub: Hub, templates: Templates, tasks: asyncio.TaskGroup) -> None:
        self._hub = hub
        self._templates = templates
        self._queue = RetryQueue(self._reconcile, tasks, "bindings", hub.options)

    def start(self) -> None:
        self._hub.bindings.listen(self._on_change)

    def _on_change(self, before: JsonObject | None, after: JsonObject | None) -> None:
        if after is not None and (before is None or generation_of(before) != generation_of(after)):
            self._queue.add(namespaced_name(after))

    async def _reconcile(self, key: NamespacedName) -> timedelta | None:
        binding = self._hub.bindings.get(key.name, key.namespace)
        if binding is None:
            return None
        if is_terminating(binding):
            await self._delete_works(binding, keep=())
            if BINDING_FINALIZER in finalizers_of(binding):
                desired = without_finalizer(binding, BINDING_FINALIZER)
                await self._hub.client.update(BINDINGS, desired)
            return None
        await self._sync(binding)
        return None

    async def _sync(self, binding: JsonObject) -> None:
        clusters = target_clusters(binding)
        await self._delete_works(binding, keep=clusters)
        template = await self._find_template(binding)
        if template is None:
            return  # the template was deleted, and the binding will be
        for cluster in clusters:
            await ensure_work(self._hub, plan_work(template, binding, cluster))
        place = f"{namespace_of(binding)}/{name_of(binding)}"
        message = f"Sync work of ResourceBinding({place}) successful."
        for about in (binding, template):
            event = EventText(COMPONENT, "Normal", "SyncWorkSucceed", message)
            self._hub.events.record(about, event)

    async def _delete_works(self, binding: JsonObject, *, keep: list[str] | tuple[()]) -> None:
        for work in self._hub.works_of(binding):
            if find_cluster(namespace_of(work)) not in keep and not is_terminating(work):
                await self._hub.client.delete(
                    WORKS, name_of(work), namespace=namespace_of(work), uid=uid_of(work)
                )

    async def _find_template(self, binding: JsonObject) -> JsonObject | None:
        """A live read: the informer may lack the claim that led here."""
        reference = object_at(binding, "spec", "resource")
        resource = self._templates.find_kind(
            string_at(reference, "apiVersion"), string_at(reference, "kind")
        )
        if resource is None:
            return None
        name, namespace = string_at(reference, "name"), string_at(reference, "namespace")
        return await self._hub.client.get(resource, name, namespace)
