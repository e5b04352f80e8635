"""From Works to members: every manifest is applied, and deleted with its Work without waiting.

A member that is not Ready is waited for, with waits that double; nothing but time or a change of
the Work ends such a wait.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Final

from compute_sim_planes.client import Resource
from compute_sim_planes.client_errors import ApiError
from compute_sim_planes.json_types import JsonObject, object_at, string_at
from compute_sim_planes.karmada.events import Said
from compute_sim_planes.karmada.hub import Hub
from compute_sim_planes.karmada.interpreters import Interpreters
from compute_sim_planes.karmada.kinds import WORK_FINALIZER, WORKS
from compute_sim_planes.karmada.lua_sandbox import ScriptError
from compute_sim_planes.karmada.member_copies import delete_copy, ensure_copy
from compute_sim_planes.karmada.members import Members
from compute_sim_planes.karmada.metadata import (
    finalizers_of,
    generation_of,
    is_going,
    name_of,
    namespace_of,
    without_finalizer,
)
from compute_sim_planes.karmada.names import find_cluster
from compute_sim_planes.karmada.retrying import NotYetError, Retrying
from compute_sim_planes.karmada.templates import Templates
from compute_sim_planes.karmada.works import manifests_of
from compute_sim_planes.keyed_work import Key, key_of
from compute_sim_planes.milo.conditions import Finding

COMPONENT: Final = "execution-controller"
APPLIED_MESSAGE: Final = "Manifest has been successfully applied"
_DISPATCHING: Final = Finding(
    "Dispatching", "True", "Dispatching", "Work is being dispatched to member clusters."
)
_SUSPENDED: Final = Finding(
    "Dispatching", "False", "SuspendDispatching", "Work dispatching is in a suspended state."
)


class ExecutionController:
    """Over all Works."""

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
        self._queue = Retrying(self._look, tasks, "execution", hub.knobs)

    def start(self) -> None:
        self._hub.works.listen(self._on_change)

    def _on_change(self, before: JsonObject | None, after: JsonObject | None) -> None:
        if after is not None and (before is None or generation_of(before) != generation_of(after)):
            self._queue.add(key_of(after))

    async def _look(self, key: Key) -> timedelta | None:
        work = self._hub.works.get(key.name, key.namespace)
        cluster_name = find_cluster(key.namespace)
        if work is None or not cluster_name:
            return None
        cluster = self._hub.clusters.get(cluster_name)
        if cluster is None:
            raise NotYetError(f"cluster {cluster_name!r} does not exist")
        if is_going(work):
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
            raise NotYetError(f"cluster({name_of(cluster)}) not ready")

    async def _dispatch(self, work: JsonObject, finding: Finding) -> JsonObject:
        written = await self._hub.set_work_status(work, finding)
        if written is not work:
            said = Said(COMPONENT, "Normal", "WorkDispatching", finding.message)
            self._hub.events.say(work, said)
        return written

    async def _remove(self, work: JsonObject, cluster: JsonObject) -> None:
        is_kept = object_at(work, "spec").get("preserveResourcesOnDeletion") is True
        # A member that leaves while it is away keeps what it has.
        is_left = is_going(cluster) and not self._hub.is_ready(cluster)
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
            except (ApiError, OSError, ScriptError, NotYetError) as failure:
                failures.append(failure.message if isinstance(failure, ApiError) else str(failure))
            else:
                self._say_applied(manifest, cluster)
        if failures:
            await self._tell_failure(work, cluster, failures, total=len(manifests))
        finding = Finding("Applied", "True", "AppliedSuccessful", APPLIED_MESSAGE)
        await self._hub.set_work_status(work, finding)
        shown = f"{namespace_of(work)}/{name_of(work)}"
        message = f"Sync work({shown}) to cluster({cluster}) successful."
        self._hub.events.say(work, Said(COMPONENT, "Normal", "SyncSucceed", message))

    async def _tell_failure(
        self, work: JsonObject, cluster: str, failures: list[str], *, total: int
    ) -> None:
        shown = failures[0] if len(failures) == 1 else f"[{', '.join(failures)}]"
        done = total - len(failures)
        message = f"Failed to apply all manifests ({done}/{total}): {shown}"
        await self._hub.set_work_status(work, Finding("Applied", "False", "AppliedFailed", message))
        place = f"{namespace_of(work)}/{name_of(work)}"
        said = f"Failed to sync work({place}) to cluster({cluster}), err: {shown}"
        self._hub.events.say(work, Said(COMPONENT, "Warning", "SyncFailed", said))
        raise NotYetError(shown)

    def _say_applied(self, manifest: JsonObject, cluster: str) -> None:
        place = f"{namespace_of(manifest)}/{name_of(manifest)}"
        message = f"Successfully applied resource({place}) to cluster {cluster}"
        self._hub.events.say(manifest, Said(COMPONENT, "Normal", "SyncSucceed", message))

    def _kind_of(self, manifest: JsonObject) -> Resource:
        api_version, kind = string_at(manifest, "apiVersion"), string_at(manifest, "kind")
        resource = self._templates.find_kind(api_version, kind)
        if resource is None:
            raise NotYetError(f'no matches for kind "{kind}" in version "{api_version}"')
        return resource
