"""The execution controller: applies the manifests of Works to members and deletes their copies.

While a member is not Ready, its Works are retried with exponential back-off; only time or a change
of the Work ends the wait.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Final

from compute_sim_planes.client.errors import ApiError
from compute_sim_planes.client.rest import Resource
from compute_sim_planes.client.workqueue import NamespacedName, namespaced_name
from compute_sim_planes.conditions import Condition
from compute_sim_planes.json_types import JsonObject, object_at, string_at
from compute_sim_planes.karmada.bindings.works import manifests_of
from compute_sim_planes.karmada.event_recorder import EventText
from compute_sim_planes.karmada.hub import Hub
from compute_sim_planes.karmada.interpreter.lua_sandbox import ScriptError
from compute_sim_planes.karmada.interpreter.registry import Interpreters
from compute_sim_planes.karmada.kinds import WORK_FINALIZER, WORKS
from compute_sim_planes.karmada.members.connections import Members
from compute_sim_planes.karmada.members.copies import delete_copy, ensure_copy
from compute_sim_planes.karmada.metadata import (
    finalizers_of,
    generation_of,
    is_terminating,
    name_of,
    namespace_of,
    without_finalizer,
)
from compute_sim_planes.karmada.names import find_cluster
from compute_sim_planes.karmada.retry_queue import RequeueError, RetryQueue
from compute_sim_planes.karmada.templates import Templates

COMPONENT: Final = "execution-controller"
APPLIED_MESSAGE: Final = "Manifest has been successfully applied"
_DISPATCHING: Final = Condition(
    "Dispatching", "True", "Dispatching", "Work is being dispatched to member clusters."
)
_SUSPENDED: Final = Condition(
    "Dispatching", "False", "SuspendDispatching", "Work dispatching is in a suspended state."
)


class ExecutionController:
    """Reconciles all Works."""

    def __init__(
        self,
        hub: Hub,
        templates: Templates,
        members: Members,
        interpreters: Interpreters,
        tasks: asyncio.TaskGroup,
    ) -> None:
        self._hub = hub
        self._templates = templates
        self._members = members
        self._interpreters = interpreters
        self._queue = RetryQueue(self._reconcile, tasks, "execution", hub.options)

    def start(self) -> None:
        self._hub.works.listen(self._on_change)

    def _on_change(self, before: JsonObject | None, after: JsonObject | None) -> None:
        if after is not None and (before is None or generation_of(before) != generation_of(after)):
            self._queue.add(namespaced_name(after))

    async def _reconcile(self, key: NamespacedName) -> timedelta | None:
        work = self._hub.works.get(key.name, key.namespace)
        cluster_name = find_cluster(key.namespace)
        if work is None or not cluster_name:
            return None
        cluster = self._hub.clusters.get(cluster_name)
        if cluster is None:
            raise RequeueError(f"cluster {cluster_name!r} does not exist")
        if is_terminating(work):
            await self._remove(work, cluster)
            return None
        is_suspended = object_at(work, "spec").get("suspendDispatching") is True
        work = await self._dispatch(work, _SUSPENDED if is_suspended else _DISPATCHING)
        if is_suspended:
            return None
        self._check_ready(cluster)
        await self._apply(work, cluster_name)
        return None

    def _check_ready(self, cluster: JsonObject) -> None:
        if not self._hub.is_ready(cluster):
            raise RequeueError(f"cluster({name_of(cluster)}) not ready")

    async def _dispatch(self, work: JsonObject, condition: Condition) -> JsonObject:
        written = await self._hub.set_work_status(work, condition)
        if written is not work:
            event = EventText(COMPONENT, "Normal", "WorkDispatching", condition.message)
            self._hub.events.record(work, event)
        return written

    async def _remove(self, work: JsonObject, cluster: JsonObject) -> None:
        is_kept = object_at(work, "spec").get("preserveResourcesOnDeletion") is True
        # A member that is removed while unreachable keeps its copies.
        is_left = is_terminating(cluster) and not self._hub.is_ready(cluster)
        if not is_kept and not is_left:
            self._check_ready(cluster)
            await self._delete_copies(work, name_of(cluster))
        if WORK_FINALIZER in finalizers_of(work):
            await self._hub.client.update(WORKS, without_finalizer(work, WORK_FINALIZER))

    async def _delete_copies(self, work: JsonObject, cluster: str) -> None:
        member = self._members.get(cluster)
        for manifest in manifests_of(work):
            await delete_copy(member, self._kind_of(manifest), manifest)

    async def _apply(self, work: JsonObject, cluster: str) -> None:
        manifests = manifests_of(work)
        failures: list[str] = []
        for manifest in manifests:
            try:
                member = self._members.get(cluster)
                kind = self._kind_of(manifest)
                await ensure_copy(member, kind, manifest, self._interpreters)
            except (ApiError, OSError, ScriptError, RequeueError) as failure:
                failures.append(failure.message if isinstance(failure, ApiError) else str(failure))
            else:
                self._record_applied(manifest, cluster)
        if failures:
            await self._report_failure(work, cluster, failures, total=len(manifests))
        condition = Condition("Applied", "True", "AppliedSuccessful", APPLIED_MESSAGE)
        await self._hub.set_work_status(work, condition)
        shown = f"{namespace_of(work)}/{name_of(work)}"
        message = f"Sync work({shown}) to cluster({cluster}) successful."
        self._hub.events.record(work, EventText(COMPONENT, "Normal", "SyncSucceed", message))

    async def _report_failure(
        self, work: JsonObject, cluster: str, failures: list[str], *, total: int
    ) -> None:
        shown = failures[0] if len(failures) == 1 else f"[{', '.join(failures)}]"
        done = total - len(failures)
        summary = f"Failed to apply all manifests ({done}/{total}): {shown}"
        await self._hub.set_work_status(
            work, Condition("Applied", "False", "AppliedFailed", summary)
        )
        place = f"{namespace_of(work)}/{name_of(work)}"
        message = f"Failed to sync work({place}) to cluster({cluster}), err: {shown}"
        self._hub.events.record(work, EventText(COMPONENT, "Warning", "SyncFailed", message))
        raise RequeueError(shown)

    def _record_applied(self, manifest: JsonObject, cluster: str) -> None:
        place = f"{namespace_of(manifest)}/{name_of(manifest)}"
        message = f"Successfully applied resource({place}) to cluster {cluster}"
        self._hub.events.record(manifest, EventText(COMPONENT, "Normal", "SyncSucceed", message))

    def _kind_of(self, manifest: JsonObject) -> Resource:
        api_version, kind = string_at(manifest, "apiVersion"), string_at(manifest, "kind")
        resource = self._templates.find_kind(api_version, kind)
        if resource is None:
            raise RequeueError(f'no matches for kind "{kind}" in version "{api_version}"')
        return resource
