"""The lives of Projects: finalizer, namespaces, default grants, Ready; at the end purge and gone.

Over the neighbours' client port: the root is one client, and `plane_of` gives that of a project, so
it plays Milo's part for planes of any sort. One task per Project, by UID, woken by every change.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from compute_sim_planes.api_server.sources import Clock
from compute_sim_planes.client import Client
from compute_sim_planes.client_errors import AlreadyExistsError, ApiError, NotFoundError
from compute_sim_planes.following import follow
from compute_sim_planes.json_types import (
    JsonObject,
    JsonValue,
    integer_at,
    object_at,
    string_at,
    strings_at,
)
from compute_sim_planes.milo.conditions import Finding, derive_conditions
from compute_sim_planes.milo.default_grants import DefaultGrants
from compute_sim_planes.milo.kinds import (
    FINALIZER,
    GRANT_POLICIES,
    NAMESPACES,
    PROJECT_NAMESPACES,
    PROJECTS,
)
from compute_sim_planes.milo.knobs import Knobs
from compute_sim_planes.milo.purge import delete_all

RETRY: Final = timedelta(seconds=1)
# How often a purge looks whether the plane is empty: quickly at first, after a minute more rarely.
POLL: Final = timedelta(seconds=5)
SLOW_POLL: Final = timedelta(seconds=30)
SLOW_AFTER: Final = timedelta(minutes=1)
AWAITING: Final = "Waiting for project resources to be removed"
_log: Final = logging.getLogger(__name__)

# What runs in a project from Ready until it is gone, by the project's name.
Service = Callable[[str], Coroutine[object, object, None]]


@dataclass(slots=True)
class Life:
    """One Project that is looked after."""

    name: str
    uid: str
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    service: asyncio.Task[None] | None = None


class ProjectController:
    """Milo's project controller."""

    def __init__(
        self,
        root: Client,
        plane_of: Callable[[str], Client],
        clock: Clock,
        *,
        knobs: Knobs,
        serve: Service,
    ) -> None:
        self._root = root
        self._plane_of = plane_of
        self._clock = clock
        self._knobs = knobs
        self._serve = serve
        self._grants = DefaultGrants(root, plane_of, clock)
        self._lives: dict[str, Life] = {}

    async def run(self) -> None:
        """Works until it is cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow_policies(), name="milo grant policies")
            async with aclosing(follow(self._root, PROJECTS)) as changes:
                async for seen in changes:
                    self._wake(seen.object, tasks)

    async def _follow_policies(self) -> None:
        async with aclosing(follow(self._root, GRANT_POLICIES)) as changes:
            async for seen in changes:
                if not seen.is_gone:
                    await self._report(seen.object)
                    for life in self._lives.values():
                        life.wake.set()

    async def _report(self, policy: JsonObject) -> None:
        try:
            await self._grants.report(policy)
        except (ApiError, OSError) as cause:
            # Only its condition; the policy is read again wherever it counts.
            _log.warning("Reporting GrantCreationPolicy", extra={"cause": str(cause)})

    def _wake(self, project: JsonObject, tasks: asyncio.TaskGroup) -> None:
        uid = string_at(project, "metadata", "uid")
        life = self._lives.get(uid)
        if life is None:
            name = string_at(project, "metadata", "name")
            life = self._lives[uid] = Life(name, uid)
            tasks.create_task(self._live(life, tasks), name=f"milo project {name}")
        life.wake.set()

    async def _live(self, life: Life, tasks: asyncio.TaskGroup) -> None:
        try:
            while True:
                await life.wake.wait()
                life.wake.clear()
                try:
                    if await self._is_over(life, tasks):
                        return
                except (ApiError, OSError) as cause:
                    extra = {"Project": life.name, "cause": str(cause)}
                    _log.debug("Looking after Project", extra=extra)
                    await asyncio.sleep(RETRY.total_seconds())
                    life.wake.set()
        finally:
            self._lives.pop(life.uid, None)
            if life.service is not None:
                life.service.cancel()

    async def _is_over(self, life: Life, tasks: asyncio.TaskGroup) -> bool:
        """One look at a Project; whether it was the last."""
        project = await self._root.get(PROJECTS, life.name)
        if project is None or string_at(project, "metadata", "uid") != life.uid:
            return True
        if string_at(project, "metadata", "deletionTimestamp"):
            await self._purge(project)
            return True
        await self._provision(project)
        if life.service is None:
            life.service = tasks.create_task(self._serve(life.name), name=f"milo in {life.name}")
        return False

    async def _provision(self, project: JsonObject) -> None:
        name = string_at(project, "metadata", "name")
        if FINALIZER not in strings_at(project, "metadata", "finalizers"):
            await self._set_finalizers(
                project, [*strings_at(project, "metadata", "finalizers"), FINALIZER]
            )
            await asyncio.sleep(self._knobs.ready_delay.total_seconds())
        plane = self._plane_of(name)
        for namespace, label in PROJECT_NAMESPACES.items():
            await _ensure_namespace(plane, namespace, label)
        await self._grants.ensure_for(project)
        generation = integer_at(project, "metadata", "generation")
        await self._tell(name, Finding("Ready", "True", "Ready", "Project is ready", generation))

    async def _purge(self, project: JsonObject) -> None:
        name = string_at(project, "metadata", "name")
        generation = integer_at(project, "metadata", "generation")

        async def tell(status: str, reason: str, message: str) -> None:
            await self._tell(name, Finding("ResourceCleanup", status, reason, message, generation))

        began = self._clock.now()
        await tell("True", "CleanupStarted", "Issuing delete commands for project resources")
        await delete_all(self._root, self._plane_of(name))
        await tell("True", "CleanupAwaitingCompletion", AWAITING)
        while left := await delete_all(self._root, self._plane_of(name)):
            await tell("True", "CleanupAwaitingCompletion", f"{AWAITING}: {left[0]}")
            await asyncio.sleep(derive_poll(began, self._clock.now()).total_seconds())
        await tell("False", "CleanupComplete", "Project resources have been deleted")
        current = await self._root.get(PROJECTS, name)
        if current is not None:
            others = strings_at(current, "metadata", "finalizers")
            await self._set_finalizers(current, [one for one in others if one != FINALIZER])

    async def _tell(self, name: str, finding: Finding) -> None:
        current = await self._root.get(PROJECTS, name)
        if current is None:
            return
        conditions = derive_conditions(current, finding, self._clock.now())
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
    """How long a purge waits for its next look."""
    return POLL if now - began < SLOW_AFTER else SLOW_POLL


async def _ensure_namespace(plane: Client, name: str, label: str) -> None:
    if await plane.get(NAMESPACES, name) is not None:
        return
    wanted: JsonObject = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": {label: "true"}},
    }
    with suppress(AlreadyExistsError):
        await plane.create(NAMESPACES, wanted)
