"""The dependencies distributor: delivers what a propagated object depends on, where it goes.

```
binding with propagateDeps ─► GetDependencies of its object ─► an attached binding per dependency
dependency changed ─► its independent bindings ─► the attached binding's resourceVersion ─► Work
not a dependency any more, binding deleted ─► detached: no cluster ─► Works and copies deleted
```

Without the interpreter's script an object has no dependencies and its binding is left alone.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Final

from compute_sim_planes.client.informer import Informer
from compute_sim_planes.client.workqueue import NamespacedName, namespaced_name
from compute_sim_planes.json_types import JsonObject, object_at, string_at
from compute_sim_planes.karmada.bindings.attached_binding import (
    depended_by_label,
    depends_on,
    derive_attached,
    detach,
    find_orphans,
    propagates_dependencies,
    render_dependencies,
    update_attached,
)
from compute_sim_planes.karmada.bindings.resource_binding import scheduled_clusters
from compute_sim_planes.karmada.event_recorder import EventText
from compute_sim_planes.karmada.hub import Hub
from compute_sim_planes.karmada.interpreter.lua_sandbox import ScriptError
from compute_sim_planes.karmada.interpreter.registry import Interpreters
from compute_sim_planes.karmada.kinds import BINDINGS, DEPENDENCIES, DEPENDENCIES_FINALIZER
from compute_sim_planes.karmada.metadata import (
    annotations_of,
    finalizers_of,
    generation_of,
    is_terminating,
    labels_of,
    name_of,
    namespace_of,
    with_metadata,
    without_finalizer,
)
from compute_sim_planes.karmada.names import derive_binding_name
from compute_sim_planes.karmada.retry_queue import RequeueError, RetryQueue
from compute_sim_planes.karmada.templates import Templates

COMPONENT: Final = "dependencies-distributor"


class DependenciesDistributor:
    """Reconciles the attached bindings of all independent bindings."""

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
        self._queue = RetryQueue(self._reconcile, tasks, "dependencies", hub.options)
        templates.on_informer_started(self._listen)

    def start(self) -> None:
        self._hub.bindings.listen(self._on_binding)

    def _on_binding(self, before: JsonObject | None, after: JsonObject | None) -> None:
        if after is None or not (_concerns(after) or (before is not None and _concerns(before))):
            return
        if before is None or generation_of(before) != generation_of(after):
            self._queue.add(namespaced_name(after))

    def _listen(self, informer: Informer) -> None:
        """Enqueue the bindings that depend on a changed object."""

        def on_change(before: JsonObject | None, after: JsonObject | None) -> None:
            changed = after or before
            if changed is None:
                return
            for binding in self._hub.bindings.items():
                if propagates_dependencies(binding) and depends_on(binding, changed):
                    self._queue.add(namespaced_name(binding))

        informer.listen(on_change)

    async def _reconcile(self, key: NamespacedName) -> timedelta | None:
        binding = self._hub.bindings.get(key.name, key.namespace)
        if binding is None:
            return None
        if not self._hub.options.propagates_dependencies:
            # Karmada sees the gate when it starts, and reconciles all bindings then.
            return self._hub.options.discovery_interval
        if is_terminating(binding) or not propagates_dependencies(binding):
            await self._detach(binding, self._attached(binding))
            if DEPENDENCIES_FINALIZER in finalizers_of(binding):
                desired = without_finalizer(binding, DEPENDENCIES_FINALIZER)
                await self._hub.client.update(BINDINGS, desired)
            return None
        await self._sync(binding)
        return None

    async def _sync(self, binding: JsonObject) -> None:
        template = await self._find(object_at(binding, "spec", "resource"))
        if template is None or not scheduled_clusters(binding):
            return
        interpreter = self._interpreters.dependencies(template)
        if interpreter is None:
            return
        try:
            references = interpreter.dependencies(template)
        except ScriptError as failure:
            event = EventText(COMPONENT, "Warning", "GetDependenciesFailed", str(failure))
            self._hub.events.record(template, event)
            raise
        binding = await self._record(binding, references)
        await self._detach(binding, find_orphans(self._attached(binding), references))
        for reference in references:
            self._templates.watch_kind(
                string_at(reference, "apiVersion"), string_at(reference, "kind")
            )
            dependency = await self._find(reference)
            if dependency is not None:
                await self._attach(binding, dependency)

    async def _record(self, binding: JsonObject, references: list[JsonObject]) -> JsonObject:
        rendered = render_dependencies(references)
        is_recorded = annotations_of(binding).get(DEPENDENCIES) == rendered
        if is_recorded and DEPENDENCIES_FINALIZER in finalizers_of(binding):
            return binding
        desired = with_metadata(
            binding, annotations={DEPENDENCIES: rendered}, finalizers=(DEPENDENCIES_FINALIZER,)
        )
        return await self._hub.client.update(BINDINGS, desired)

    async def _attach(self, binding: JsonObject, dependency: JsonObject) -> None:
        name = derive_binding_name(string_at(dependency, "kind"), name_of(dependency))
        existing = await self._hub.client.get(BINDINGS, name, namespace_of(dependency))
        if existing is None:
            own_id = self._hub.identities.uid()
            await self._hub.client.create(BINDINGS, derive_attached(binding, dependency, own_id))
            return
        if is_terminating(existing):
            raise RequeueError(f"binding {name!r} is being deleted")
        desired = update_attached(existing, binding, dependency)
        if desired != existing:
            await self._hub.client.update(BINDINGS, desired)

    async def _detach(self, binding: JsonObject, attached: list[JsonObject]) -> None:
        for one in attached:
            if not is_terminating(one):
                await self._hub.client.update(BINDINGS, detach(one, binding))

    def _attached(self, binding: JsonObject) -> list[JsonObject]:
        label = depended_by_label(binding)
        return [one for one in self._hub.bindings.items() if label in labels_of(one)]

    async def _find(self, reference: JsonObject) -> JsonObject | None:
        resource = self._templates.find_kind(
            string_at(reference, "apiVersion"), string_at(reference, "kind")
        )
        if resource is None:
            return None
        name, namespace = string_at(reference, "name"), string_at(reference, "namespace")
        return await self._hub.client.get(resource, name, namespace)


def _concerns(binding: JsonObject) -> bool:
    return propagates_dependencies(binding) or DEPENDENCIES_FINALIZER in finalizers_of(binding)
