"""From members to Works: drift is undone, a deleted copy made again, and status carried up."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from compute_sim_planes.client import Resource
from compute_sim_planes.client_errors import ApiError
from compute_sim_planes.json_types import JsonObject, JsonValue, object_at, string_at
from compute_sim_planes.karmada.events import Said
from compute_sim_planes.karmada.execution import APPLIED_MESSAGE
from compute_sim_planes.karmada.hub import Hub
from compute_sim_planes.karmada.informer import Informer
from compute_sim_planes.karmada.interpreters import Interpreters
from compute_sim_planes.karmada.kinds import WORK_NAME, WORK_NAMESPACE
from compute_sim_planes.karmada.lua_sandbox import ScriptError
from compute_sim_planes.karmada.member_copies import create_copy, needs_update, update_copy
from compute_sim_planes.karmada.members import Member, Members
from compute_sim_planes.karmada.metadata import annotations_of, is_going, name_of, namespace_of
from compute_sim_planes.karmada.names import (
    derive_execution_space,
    derive_work_name,
    find_cluster,
)
from compute_sim_planes.karmada.retrying import NotYetError, Retrying
from compute_sim_planes.karmada.templates import Templates
from compute_sim_planes.karmada.works import manifests_of
from compute_sim_planes.keyed_work import Key, key_of
from compute_sim_planes.milo.conditions import Finding, holds

COMPONENT: Final = "work-status-controller"


@dataclass(frozen=True, slots=True)
class CopyKey:
    """One copy in one member."""

    cluster: str
    resource: Resource
    key: Key


class WorkStatusController:
    """Over all Works, and over the copies of all members."""

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
        self._works = Retrying(self._look_at_work, tasks, "work status", hub.knobs)
        self._copies = Retrying(self._look_at_copy, tasks, "copies", hub.knobs)

    def start(self) -> None:
        self._hub.works.listen(self._on_work)

    def _on_work(self, _: JsonObject | None, after: JsonObject | None) -> None:
        if after is not None and not is_going(after) and holds(after, "Applied"):
            self._works.add(key_of(after))

    async def _look_at_work(self, key: Key) -> timedelta | None:
        """What a Work brought to a member is followed there from now on."""
        work = self._hub.works.get(key.name, key.namespace)
        cluster = self._hub.clusters.get(find_cluster(key.namespace))
        if work is None or is_going(work) or cluster is None:
            return None
        if not self._hub.is_ready(cluster):
            raise NotYetError(f"cluster({name_of(cluster)}) not ready")
        member = self._members.get(name_of(cluster))
        for manifest in manifests_of(work):
            resource = self._templates.find_kind(
                string_at(manifest, "apiVersion"), string_at(manifest, "kind")
            )
            informer = member.follow(resource) if resource is not None else None
            if informer is not None:
                self._listen(member, informer)
        return None

    def _listen(self, member: Member, informer: Informer) -> None:
        def on_change(before: JsonObject | None, after: JsonObject | None) -> None:
            found = after or before
            if found is None or before == after:
                return
            if find_cluster(annotations_of(found).get(WORK_NAMESPACE, "")) == member.name:
                self._copies.add(CopyKey(member.name, informer.resource, key_of(found)))

        informer.listen(on_change)

    async def _look_at_copy(self, copy: CopyKey) -> timedelta | None:
        if self._hub.clusters.get(copy.cluster) is None:
            return None
        member = self._members.get(copy.cluster)
        found = member.known(copy.resource, copy.key)
        if found is None:
            await self._make_again(member, copy)
            return None
        marks = annotations_of(found)
        work = self._hub.works.get(marks.get(WORK_NAME, ""), marks.get(WORK_NAMESPACE, ""))
        if work is None or is_going(work):
            return None
        manifest = _manifest_of(work, copy)
        if manifest is None:
            raise NotYetError("no such manifest exist")
        if not _is_suspended(work) and needs_update(member, copy.resource, manifest, found):
            await update_copy(member, copy.resource, manifest, found, self._interpreters)
        await self._reflect(work, found)
        return None

    async def _make_again(self, member: Member, copy: CopyKey) -> None:
        place = derive_execution_space(copy.cluster)
        name = derive_work_name(copy.resource.kind, copy.key.namespace, copy.key.name)
        work = self._hub.works.get(name, place)
        if work is None or is_going(work) or _is_suspended(work):
            return  # it was to go
        manifest = _manifest_of(work, copy)
        if manifest is None:
            return
        try:
            await create_copy(member, copy.resource, manifest)
        except (ApiError, OSError) as failure:
            finding = Finding("Applied", "False", "ReCreateFailed", str(failure))
            await self._hub.set_work_status(await self._hub.read_work(work), finding)
            raise
        shown = f"{copy.key.namespace}/{copy.key.name}"
        message = f"Successfully applied resource({shown}) to cluster {copy.cluster}"
        self._hub.events.say(manifest, Said(COMPONENT, "Normal", "SyncSucceed", message))
        finding = Finding("Applied", "True", "ReCreateSuccessful", APPLIED_MESSAGE)
        await self._hub.set_work_status(await self._hub.read_work(work), finding)

    async def _reflect(self, work: JsonObject, found: JsonObject) -> None:
        kind = string_at(found, "kind")
        shown = f"{kind}/{namespace_of(found)}/{name_of(found)}"
        try:
            status = self._interpreters.reflect(found)
        except ScriptError as failure:
            message = f"Reflect status for object({shown}) failed, err: {failure}."
            self._hub.events.say(work, Said(COMPONENT, "Warning", "ReflectStatusFailed", message))
            raise
        message = f"Reflect status for object({shown}) succeed."
        self._hub.events.say(work, Said(COMPONENT, "Normal", "ReflectStatusSucceed", message))
        entry: JsonObject = {"identifier": _identify(found), "health": self._judge(found)}
        if status is not None:
            entry["status"] = status
        entries: list[JsonValue] = [entry]
        await self._hub.set_work_status(work, manifestStatuses=entries)

    def _judge(self, found: JsonObject) -> str:
        try:
            return "Healthy" if self._interpreters.is_healthy(found) else "Unhealthy"
        except ScriptError:
            return "Unknown"


def _is_suspended(work: JsonObject) -> bool:
    return object_at(work, "spec").get("suspendDispatching") is True


def _manifest_of(work: JsonObject, copy: CopyKey) -> JsonObject | None:
    for manifest in manifests_of(work):
        is_kind = string_at(manifest, "kind") == copy.resource.kind
        if is_kind and key_of(manifest) == copy.key:
            return manifest
    return None


def _identify(found: JsonObject) -> JsonObject:
    group, _, version = string_at(found, "apiVersion").rpartition("/")
    identifier: JsonObject = {
        "ordinal": 0,
        "version": version,
        "kind": string_at(found, "kind"),
        "resource": "",
        "name": name_of(found),
    }
    if group:
        identifier["group"] = group
    if namespace := namespace_of(found):
        identifier["namespace"] = namespace
    return identifier
