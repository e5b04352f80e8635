"""From bindings to Works: one per member that was chosen, none anywhere else.

Only a change of the binding's generation leads here. So whatever does not change a binding (a claim
that is taken off, an object nobody has) sends nothing down.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Final

from compute_sim_planes.json_types import JsonObject, object_at, string_at
from compute_sim_planes.karmada.bindings import target_clusters
from compute_sim_planes.karmada.events import Said
from compute_sim_planes.karmada.hub import Hub
from compute_sim_planes.karmada.kinds import BINDING_FINALIZER, BINDINGS, WORKS
from compute_sim_planes.karmada.metadata import (
    finalizers_of,
    generation_of,
    is_going,
    name_of,
    namespace_of,
    uid_of,
    without_finalizer,
)
from compute_sim_planes.karmada.names import find_cluster
from compute_sim_planes.karmada.retrying import Retrying
from compute_sim_planes.karmada.templates import Templates
from compute_sim_planes.karmada.works import ensure_work, plan_work
from compute_sim_planes.keyed_work import Key, key_of

COMPONENT: Final = "binding-controller"


class BindingController:
    """Over all bindings."""

    def __init__(self, hub: Hub, templates: Templates, tasks: asyncio.TaskGroup) -> None:
        self._hub = hub
        self._templates = templates
        self._queue = Retrying(self._look, tasks, "bindings", hub.knobs)

    def start(self) -> None:
        self._hub.bindings.listen(self._on_change)

    def _on_change(self, before: JsonObject | None, after: JsonObject | None) -> None:
        if after is not None and (before is None or generation_of(before) != generation_of(after)):
            self._queue.add(key_of(after))

    async def _look(self, key: Key) -> timedelta | None:
        binding = self._hub.bindings.get(key.name, key.namespace)
        if binding is None:
            return None
        if is_going(binding):
            await self._delete_works(binding, keep=())
            if BINDING_FINALIZER in finalizers_of(binding):
                wanted = without_finalizer(binding, BINDING_FINALIZER)
                await self._hub.client.update(BINDINGS, wanted)
            return None
        await self._sync(binding)
        return None

    async def _sync(self, binding: JsonObject) -> None:
        clusters = target_clusters(binding)
        await self._delete_works(binding, keep=clusters)
        template = await self._find_template(binding)
        if template is None:
            return  # it is gone, and the binding goes in a moment
        for cluster in clusters:
            await ensure_work(self._hub, plan_work(template, binding, cluster))
        place = f"{namespace_of(binding)}/{name_of(binding)}"
        message = f"Sync work of ResourceBinding({place}) successful."
        for about in (binding, template):
            said = Said(COMPONENT, "Normal", "SyncWorkSucceed", message)
            self._hub.events.say(about, said)

    async def _delete_works(self, binding: JsonObject, *, keep: list[str] | tuple[()]) -> None:
        for work in self._hub.works_of(binding):
            if find_cluster(namespace_of(work)) not in keep and not is_going(work):
                await self._hub.client.delete(
                    WORKS, name_of(work), namespace=namespace_of(work), uid=uid_of(work)
                )

    async def _find_template(self, binding: JsonObject) -> JsonObject | None:
        """As it is now: what is held in memory may lack the claim that led here."""
        reference = object_at(binding, "spec", "resource")
        resource = self._templates.find_kind(
            string_at(reference, "apiVersion"), string_at(reference, "kind")
        )
        if resource is None:
            return None
        name, namespace = string_at(reference, "name"), string_at(reference, "namespace")
        return await self._hub.client.get(resource, name, namespace)
