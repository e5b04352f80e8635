"""The project controller: finalizer, namespaces, default grants and Ready; on deletion the purge.

It uses a client of the root, and `plane_of` for clients of projects, so it works with any API
servers. One task per Project UID reconciles it after every change.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from compute_sim_planes.client.errors import AlreadyExistsError, ApiError, NotFoundError
from compute_sim_planes.client.reflector import list_and_watch
from compute_sim_planes.client.rest import Client
from compute_sim_planes.conditions import Condition, derive_conditions
from compute_sim_planes.json_types import (
    JsonObject,
    JsonValue,
    integer_at,
    object_at,
    string_at,
    strings_at,
)
from compute_sim_planes.milo.kinds import (
    FINALIZER,
    GRANT_POLICIES,
    NAMESPACES,
    PROJECT_NAMESPACES,
    PROJECTS,
)
from compute_sim_planes.milo.options import MiloOptions
from compute_sim_planes.milo.projects.default_grants import DefaultGrants
from compute_sim_planes.milo.projects.purge import delete_all
from compute_sim_planes.time.sources import Clock

RETRY: Final = timedelta(seconds=1)
# The period of checks during a purge: short at first, longer after a minute.
POLL: Final = timedelta(seconds=5)
SLOW_POLL: Final = timedelta(seconds=30)
SLOW_AFTER: Final = timedelta(minutes=1)
AWAITING: Final = "Waiting for project resources to be removed"
_log: Final = logging.getLogger(__name__)

# Runs in a project from Ready until its deletion; gets the project's name.
ProjectRunnable = Callable[[str], Coroutine[object, object, None]]


@dataclass(slots=True)
class ProjectWorker:
    """The task state of one Project."""

    name: str
    uid: str
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    service: asyncio.Task[None] | None = None


class ProjectController:
    """Milo's project controller."""

    def __init__(
        self,
        root: Client,
        plane_of: Callable[[str], Client],
        clock: Clock,
        *,
        options: MiloOptions,
        serve: ProjectRunnable,
    ) -> None:
        self._root = root
        self._plane_of = plane_of
        self._clock = clock
        self._options = options
        self._serve = serve
        self._grants = DefaultGrants(root, plane_of, clock)
        self._workers: dict[str, ProjectWorker] = {}

    async def run(self) -> None:
        """Run until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._watch_policies(), name="milo grant policies")
            async with aclosing(list_and_watch(self._root, PROJECTS)) as changes:
                async for seen in changes:
                    self._enqueue(seen.object, tasks)

    async def _watch_policies(self) -> None:
        async with aclosing(list_and_watch(self._root, GRANT_POLICIES)) as changes:
            async for seen in changes:
                if not seen.is_deleted:
                    await self._report(seen.object)
                    for worker in self._workers.values():
                        worker.changed.set()

    async def _report(self, policy: JsonObject) -> None:
        try:
            await self._grants.report(policy)
        except (ApiError, OSError) as cause:
            # Only the condition failed; the policy is read again when it is used.
            _log.warning("Reporting GrantCreationPolicy", extra={"cause": str(cause)})

    def _enqueue(self, project: JsonObject, tasks: asyncio.TaskGroup) -> None:
        uid = string_at(project, "metadata", "uid")
        worker = self._workers.get(uid)
        if worker is None:
            name = string_at(project, "metadata", "name")
            worker = self._workers[uid] = ProjectWorker(name, uid)
            tasks.create_task(self._run_worker(worker, tasks), name=f"milo project {name}")
        worker.changed.set()

    async def _run_worker(self, worker: ProjectWorker, tasks: asyncio.TaskGroup) -> None:
        try:
            while True:
                await worker.changed.wait()
                worker.changed.clear()
                try:
                    if await self._reconcile(worker, tasks):
                        return
                except (ApiError, OSError) as cause:
                    extra = {"Project": worker.name, "cause": str(cause)}
                    _log.debug("Looking after Project", extra=extra)
                    await asyncio.sleep(RETRY.total_seconds())
                    worker.changed.set()
        finally:
            self._workers.pop(worker.uid, None)
            if worker.service is not None:
                worker.service.cancel()

    async def _reconcile(self, worker: ProjectWorker, tasks: asyncio.TaskGroup) -> bool:
        """Reconcile a Project; returns whether it is gone."""
        project = await self._root.get(PROJECTS, worker.name)
        if project is None or string_at(project, "metadata", "uid") != worker.uid:
            return True
        if string_at(project, "metadata", "deletionTimestamp"):
            await self._purge(project)
            return True
        await self._provision(project)
        if worker.service is None:
            worker.service = tasks.create_task(
                self._serve(worker.name), name=f"milo in {worker.name}"
            )
        return False

    async def _provision(self, project: JsonObject) -> None:
        name = string_at(project, "metadata", "name")
        if FINALIZER not in strings_at(project, "metadata", "finalizers"):
            await self._set_finalizers(
                project, [*strings_at(project, "metadata", "finalizers"), FINALIZER]
            )
            await asyncio.sleep(self._options.ready_delay.total_seconds())
        plane = self._plane_of(name)
        for namespace, label in PROJECT_NAMESPACES.items():
            await _ensure_namespace(plane, namespace, label)
        await self._grants.ensure_for(project)
        generation = integer_at(project, "metadata", "generation")
        await self._set_condition(
            name, Condition("Ready", "True", "Ready", "Project is ready", generation)
        )

    async def _purge(self, project: JsonObject) -> None:
        name = string_at(project, "metadata", "name")
        generation = integer_at(project, "metadata", "generation")

        async def report(status: str, reason: str, message: str) -> None:
            await self._set_condition(
                name, Condition("ResourceCleanup", status, reason, message, generation)
            )

        began = self._clock.now()
        await report("True", "CleanupStarted", "Issuing delete commands for project resources")
        await delete_all(self._root, self._plane_of(name))
        await report("True", "CleanupAwaitingCompletion", AWAITING)
        while left := await delete_all(self._root, self._plane_of(name)):
            await report("True", "CleanupAwaitingCompletion", f"{AWAITING}: {left[0]}")
            await asyncio.sleep(derive_poll(began, self._clock.now()).total_seconds())
        await report("False", "CleanupComplete", "Project resources have been deleted")
        current = await self._root.get(PROJECTS, name)
        if current is not None:
            others = strings_at(current, "metadata", "finalizers")
            await self._set_finalizers(current, [one for one in others if one != FINALIZER])

    async def _set_condition(self, name: str, condition: Condition) -> None:
        current = await self._root.get(PROJECTS, name)
        if current is None:
            return
        conditions = derive_conditions(current, condition, self._clock.now())
        if conditions != object_at(current, "status").get("conditions"):
            status: JsonObject = {"conditions": conditions}
            await self._root.patch(PROJECTS, name, {"status": status}, subresource="status")

    async def _set_finalizers(self, project: JsonObject, finalizers: list[str]) -> None:
        metadata: JsonObject = {
            "finalizers": list[JsonValue](finalizers),
            "resourceVersion": string_at(project, "metadata", "resourceVersion"),
        }
        with suppress(NotFoundError):
            await self._root.patch(
                PROJECTS, string_at(project, "metadata", "name"), {"metadata": metadata}
            )


def derive_poll(began: datetime, now: datetime) -> timedelta:
    """The delay until the next check of a purge."""
    return POLL if now - began < SLOW_AFTER else SLOW_POLL


async def _ensure_namespace(plane: Client, name: str, label: str) -> None:
    if await plane.get(NAMESPACES, name) is not None:
        return
    desired: JsonObject = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": {label: "true"}},
    }
    with suppress(AlreadyExistsError):
        await plane.create(NAMESPACES, desired)
