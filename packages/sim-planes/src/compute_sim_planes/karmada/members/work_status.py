"""The work status controller: undoes drift of copies, recreates them, and collects their status."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from compute_sim_planes.client.errors import ApiError
from compute_sim_planes.client.informer import Informer
from compute_sim_planes.client.rest import Resource
from compute_sim_planes.client.workqueue import NamespacedName, namespaced_name
from compute_sim_planes.conditions import Condition, is_condition_true
from compute_sim_planes.json_types import JsonObject, JsonValue, object_at, string_at
from compute_sim_planes.karmada.bindings.works import manifests_of
from compute_sim_planes.karmada.event_recorder import EventText
from compute_sim_planes.karmada.hub import Hub
from compute_sim_planes.karmada.interpreter.lua_sandbox import ScriptError
from compute_sim_planes.karmada.interpreter.registry import Interpreters
from compute_sim_planes.karmada.kinds import WORK_NAME, WORK_NAMESPACE
from compute_sim_planes.karmada.members.connections import Member, Members
from compute_sim_planes.karmada.members.copies import create_copy, needs_update, update_copy
from compute_sim_planes.karmada.members.execution import APPLIED_MESSAGE
from compute_sim_planes.karmada.metadata import (
    annotations_of,
    is_terminating,
    name_of,
    namespace_of,
)
from compute_sim_planes.karmada.names import (
    derive_execution_space,
    derive_work_name,
    find_cluster,
)
from compute_sim_planes.karmada.retry_queue import RequeueError, RetryQueue
from compute_sim_planes.karmada.templates import Templates

COMPONENT: Final = "work-status-controller"


@dataclass(frozen=True, slots=True)
class CopyKey:
    """One copy in one member."""

    cluster: str
    resource: Resource
    key: NamespacedName


class WorkStatusController:
    """Reconciles all Works, and the copies in all members."""

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
        self._works = RetryQueue(self._reconcile_work, tasks, "work status", hub.options)
        self._copies = RetryQueue(self._reconcile_copy, tasks, "copies", hub.options)

    def start(self) -> None:
        self._hub.works.listen(self._on_work)

    def _on_work(self, _: JsonObject | None, after: JsonObject | None) -> None:
        if after is not None and not is_terminating(after) and is_condition_true(after, "Applied"):
            self._works.add(namespaced_name(after))

    async def _reconcile_work(self, key: NamespacedName) -> timedelta | None:
        """Start informers for the kinds that a Work has applied to a member."""
        work = self._hub.works.get(key.name, key.namespace)
        cluster = self._hub.clusters.get(find_cluster(key.namespace))
        if work is None or is_terminating(work) or cluster is None:
            return None
        if not self._hub.is_ready(cluster):
            raise RequeueError(f"cluster({name_of(cluster)}) not ready")
        member = self._members.get(name_of(cluster))
        for manifest in manifests_of(work):
            resource = self._templates.find_kind(
                string_at(manifest, "apiVersion"), string_at(manifest, "kind")
            )
            informer = member.start_informer(resource) if resource is not None else None
            if informer is not None:
                self._listen(member, informer)
        return None

    def _listen(self, member: Member, informer: Informer) -> None:
        def on_change(before: JsonObject | None, after: JsonObject | None) -> None:
            changed = after or before
            if changed is None or before == after:
                return
            if find_cluster(annotations_of(changed).get(WORK_NAMESPACE, "")) == member.name:
                self._copies.add(CopyKey(member.name, informer.resource, namespaced_name(changed)))

        informer.listen(on_change)

    async def _reconcile_copy(self, copy: CopyKey) -> timedelta | None:
        if self._hub.clusters.get(copy.cluster) is None:
            return None
        member = self._members.get(copy.cluster)
        existing = member.cached(copy.resource, copy.key)
        if existing is None:
            await self._recreate(member, copy)
            return None
        marks = annotations_of(existing)
        work = self._hub.works.get(marks.get(WORK_NAME, ""), marks.get(WORK_NAMESPACE, ""))
        if work is None or is_terminating(work):
            return None
        manifest = _manifest_of(work, copy)
        if manifest is None:
            raise RequeueError("no such manifest exist")
        if not _is_suspended(work) and needs_update(member, copy.resource, manifest, existing):
            await update_copy(member, copy.resource, manifest, existing, self._interpreters)
        await self._reflect(work, existing)
        return None

    async def _recreate(self, member: Member, copy: CopyKey) -> None:
        place = derive_execution_space(copy.cluster)
        name = derive_work_name(copy.resource.kind, copy.key.namespace, copy.key.name)
        work = self._hub.works.get(name, place)
        if work is None or is_terminating(work) or _is_suspended(work):
            return  # the copy was deleted on purpose
        manifest = _manifest_of(work, copy)
        if manifest is None:
            return
        try:
            await create_copy(member, copy.resource, manifest)
        except (ApiError, OSError) as failure:
            condition = Condition("Applied", "False", "ReCreateFailed", str(failure))
            await self._hub.set_work_status(await self._hub.read_work(work), condition)
            raise
        shown = f"{copy.key.namespace}/{copy.key.name}"
        message = f"Successfully applied resource({shown}) to cluster {copy.cluster}"
        self._hub.events.record(manifest, EventText(COMPONENT, "Normal", "SyncSucceed", message))
        condition = Condition("Applied", "True", "ReCreateSuccessful", APPLIED_MESSAGE)
        await self._hub.set_work_status(await self._hub.read_work(work), condition)

    async def _reflect(self, work: JsonObject, existing: JsonObject) -> None:
        kind = string_at(existing, "kind")
        shown = f"{kind}/{namespace_of(existing)}/{name_of(existing)}"
        try:
            status = self._interpreters.reflect(existing)
        except ScriptError as failure:
            message = f"Reflect status for object({shown}) failed, err: {failure}."
            self._hub.events.record(
                work, EventText(COMPONENT, "Warning", "ReflectStatusFailed", message)
            )
            raise
        message = f"Reflect status for object({shown}) succeed."
        self._hub.events.record(
            work, EventText(COMPONENT, "Normal", "ReflectStatusSucceed", message)
        )
        entry: JsonObject = {
            "identifier": _identify(existing),
            "health": self._assess_health(existing),
        }
        if status is not None:
            entry["status"] = status
        entries: list[JsonValue] = [entry]
        await self._hub.set_work_status(work, manifestStatuses=entries)

    def _assess_health(self, existing: JsonObject) -> str:
        try:
            return "Healthy" if self._interpreters.is_healthy(existing) else "Unhealthy"
        except ScriptError:
            return "Unknown"


def _is_suspended(work: JsonObject) -> bool:
    return object_at(work, "spec").get("suspendDispatching") is True


def _manifest_of(work: JsonObject, copy: CopyKey) -> JsonObject | None:
    for manifest in manifests_of(work):
        is_kind = string_at(manifest, "kind") == copy.resource.kind
        if is_kind and namespaced_name(manifest) == copy.key:
            return manifest
    return None


def _identify(existing: JsonObject) -> JsonObject:
    group, _, version = string_at(existing, "apiVersion").rpartition("/")
    identifier: JsonObject = {
        "ordinal": 0,
        "version": version,
        "kind": string_at(existing, "kind"),
        "resource": "",
        "name": name_of(existing),
    }
    if group:
        identifier["group"] = group
    if namespace := namespace_of(existing):
        identifier["namespace"] = namespace
    return identifier
