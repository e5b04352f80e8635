"""The `Backend` protocol for one scenario on the real stack of a session.

A scenario has its own namespace in each project. One that runs alone sees all requests; one that
shares the stack sees those about its own namespaces, so that scenarios do not disturb each other.
Users go through the gateway to projects and directly to hub and cells (`users.py`).
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Final

import orjson

from compute_api_types.wire import JsonObject
from e2e.backends.pod_metrics.definition import a_definition
from e2e.backends.real.auditing import AuditEntry
from e2e.backends.real.decommissioning import run_decommission
from e2e.backends.real.diagnosing import run_diagnosis
from e2e.backends.real.environment import (
    AMPLE,
    CELLS,
    SHARED_PROJECTS,
    SINGLE_MANAGEMENT,
    RealEnvironment,
    can_share,
)
from e2e.backends.real.recording import ON_PROJECT, RecordedVersion
from e2e.backends.real.users import UserClients
from e2e.backends.replicas import OperatorReplicas
from e2e.harness.access.client import PlaneClient
from e2e.harness.access.waiting import until
from e2e.harness.deploy.shipped import external_definitions
from e2e.harness.planes.plane import install_crds
from e2e.world.documents import NETWORK_NAME, a_grant, a_namespace, a_network
from e2e.world.kinds import KINDS, NAMESPACE, Kind
from e2e.world.objects import uid_of
from e2e.world.port import (
    MANAGEMENT,
    ROOT,
    SINGLE,
    AuditedRequest,
    CommandResult,
    Needs,
    NetworkOptions,
    ObjectVersion,
    PlaneRequest,
    PlaneResponse,
    ProjectNamespace,
)

ENGAGED: Final = "compute_projects_engaged"
WARM_UP: Final = timedelta(seconds=120)
CLEARED: Final = timedelta(minutes=3)


class RealBackend:
    """See `e2e/world/port.py`."""

    name = "real"

    def __init__(self, environment: RealEnvironment, scenario: str, needs: Needs) -> None:
        self.environment = environment
        self.scenario = scenario
        self.needs = needs
        self.is_shared = can_share(needs)
        self.begun = self.now()
        self.last_act = self.begun
        self.by_hand: set[str] = set()
        self.lost: set[str] = set()
        self._namespace = f"shop-{secrets.token_hex(3)}"
        # A scenario with several projects changes them too: they are created and deleted with it.
        own = [f"{self._namespace}-p{number}" for number in range(1, needs.projects + 1)]
        is_about_projects = needs.has_own_projects or needs.projects > 1
        self._added: list[str] = own if is_about_projects else []
        usual = (SINGLE.name,) if needs.is_single else SHARED_PROJECTS[:1]
        projects = self._added or usual
        self._places = tuple(ProjectNamespace(project, self._namespace) for project in projects)
        self.namespace_uids: dict[str, str] = {}
        # Number of violations that each provider had reported before this scenario.
        self.complaints: dict[str, int] = {}
        self.users = UserClients(environment)

    @property
    def project_namespaces(self) -> Sequence[ProjectNamespace]:
        return self._places

    # opening and closing -------------------------------------------------------------------------

    async def open(self) -> None:
        """Creates the scenario's projects and namespaces and starts operators as it needs them."""
        await self.users.open()
        environment = self.environment
        begun = [
            environment.background_loop.do(environment.add_project(project))
            for project in self._added
        ]
        await asyncio.gather(*begun)
        for place in self._places:
            await self._create_namespace(place)
        if not self.is_shared:
            if not self.needs.has_networking and not self.needs.is_single:
                for cell in self.needs.cells:
                    await self.uninstall_networking(cell.name)
            await self.environment.background_loop.do(self.environment.arrange(self.needs))
        await self._await_engaged()
        providers = self.environment.external.providers
        self.complaints = {cell: len(one.violations) for cell, one in providers.items()}
        self.begun = self.last_act = self.now()

    async def _create_namespace(self, place: ProjectNamespace) -> None:
        async with self.environment.planes.plane(place.project).client() as client:
            made = await client.create(a_namespace(place.namespace))
            if not self.needs.is_single:
                await client.apply(a_network(NETWORK_NAME, place.namespace))
        self.namespace_uids[uid_of(made)] = place.project

    async def _await_engaged(self) -> None:
        """Waits until management has engaged every project; admission refuses writes before
        that.
        """
        replicas = self._replicas_of(MANAGEMENT)
        is_single = self.needs.is_single
        projects = 1 if is_single else len(self.environment.planes.milo.projects)
        wanted = projects * self.needs.replicas

        async def engaged() -> bool:
            with suppress(AssertionError):  # its metrics are not served yet
                return replicas.metric(ENGAGED, {}) >= wanted
            return False

        await until(
            "management to engage its projects", engaged, check=lambda: None, patience=WARM_UP
        )

    async def close(self) -> None:
        """Deletes what the scenario created and heals the links it cut."""
        try:
            if not self.is_shared:
                await self._restore()
            await self.clear()
            await self.await_cleared()
            environment = self.environment
            leaving = [
                environment.background_loop.do(environment.remove_project(one))
                for one in self._added
            ]
            await asyncio.gather(*leaving)
        finally:
            await self.users.close()

    async def _restore(self) -> None:
        environment = self.environment
        await environment.background_loop.do(environment.links.heal_all())
        await environment.background_loop.do(environment.external.stop_pod_metrics())
        await self.resume_quota()
        for replicas in environment.replicas.values():
            replicas.thaw()
        for cell in CELLS:
            if cell.name not in environment.external.networks:
                await self.install_networking(cell.name)
            await self.set_networking(cell.name, NetworkOptions())
        await environment.background_loop.do(environment.rejoin_members())
        # Operators that were stopped or killed must run to remove their copies.
        await environment.background_loop.do(environment.arrange(self.needs))
        for place in self._places:
            if place.project in SHARED_PROJECTS:
                await self.set_grant(place.project, AMPLE)

    async def clear(self) -> None:
        """Deletes the namespaces, which removes their copies on other planes (E-16), and manually
        created objects.
        """
        for left in self.by_hand:
            plane, kind_name, key = left.split(" ")
            kind = next(one for one in KINDS if one.name == kind_name)
            await self._delete(plane, kind.path(*key.rpartition("/")[::2]))
        # No operator removes objects of a lost cell; administrators would clear the site as well.
        for cell in self.lost:
            for uid in self.namespace_uids:
                await self._delete(cell, NAMESPACE.path(name=f"ns-{uid}"))
        for place in self._places:
            if place.project in self._present():
                await self._delete(place.project, NAMESPACE.path(name=place.namespace))
                await self._empty(place)

    async def _empty(self, place: ProjectNamespace) -> None:
        """Deletes the objects of a terminating namespace at once.

        The namespace controller waits five seconds, for a cluster with several API servers; a plane
        here has one.
        """
        recorder = self.environment.recorder
        async with self.environment.planes.plane(place.project).client() as client:
            for kind in ON_PROJECT:
                if kind.is_namespaced and recorder.is_watched(place.project, kind):
                    await client.delete(kind.path(place.namespace))

    def _present(self) -> set[str]:
        return {plane.name for plane in self.environment.planes.planes}

    async def _delete(self, plane: str, path: str) -> None:
        async with self.environment.planes.plane(plane).client() as client:
            if await client.find(path) is not None:
                await client.delete(path)

    async def await_cleared(self) -> None:
        """The second half of O4: without root objects, only hub namespaces may be left."""
        own = {self._namespace, *(f"ns-{uid}" for uid in self.namespace_uids)}
        end = self.now() + CLEARED
        # A deleted project has no watch that would report the end of its objects.
        while left := self.environment.recorder.held_in(self._present(), own):
            if self.now() > end:
                raise AssertionError(f"O4: left {CLEARED} after its project namespace went: {left}")
            await asyncio.sleep(0.2)

    # time ----------------------------------------------------------------------------------------

    def now(self) -> datetime:
        return datetime.now(UTC)

    async def sleep(self, delay: timedelta) -> None:
        await asyncio.sleep(delay.total_seconds())

    # planes --------------------------------------------------------------------------------------

    async def add_project(self, name: str) -> ProjectNamespace:
        place = ProjectNamespace(name, self._namespace)
        self._added.append(name)
        self._places = (*self._places, place)
        await self.environment.background_loop.do(self.environment.add_project(name))
        await self._create_namespace(place)
        self.last_act = self.now()
        return place

    async def send(self, plane: str, user: str, call: PlaneRequest) -> PlaneResponse:
        if call.method != "GET":
            self.last_act = self.now()
        return await self.users.send(plane, user, call)

    def audit(self) -> Sequence[AuditedRequest]:
        return [entry.audited for entry in self.entries()]

    def entries(self) -> list[AuditEntry]:
        """Requests since the scenario began; if it shares the stack, those about its namespaces."""
        since = [one for one in self.environment.audits.read() if one.audited.at >= self.begun]
        if not self.is_shared:
            return since
        return [entry for entry in since if self._is_own(entry.audited)]

    def _is_own(self, one: AuditedRequest) -> bool:
        about = one.namespace or (one.name if one.resource == "namespaces" else "")
        if about.startswith("ns-"):
            return about.removeprefix("ns-") in self.namespace_uids
        return about == self._namespace

    def is_own_record(self, one: RecordedVersion) -> bool:
        about = one.namespace or (one.key if one.kind is NAMESPACE else "")
        if about.startswith("ns-"):
            return about.removeprefix("ns-") in self.namespace_uids
        return about == self._namespace

    def leave(self, plane: str, kind: Kind, key: str) -> None:
        self.by_hand.add(f"{plane} {kind.name} {key}")

    def write_off(self, cell: str) -> None:
        self.lost.add(cell)

    def versions(self, plane: str, kind: Kind, namespace: str) -> Sequence[ObjectVersion]:
        recorder = self.environment.recorder
        if not recorder.is_watched(plane, kind):
            raise LookupError(f"{kind.name} of {plane} is not recorded")
        return [
            ObjectVersion(one.at, not one.after, orjson.loads(one.after or one.before))
            for one in recorder.versions(plane, kind, namespace, since=self.begun)
        ]

    # operators -----------------------------------------------------------------------------------

    async def start(self, operator: str, settings: JsonObject | None = None) -> None:
        self._act()
        replicas = self._replicas_of(operator)
        overrides = settings or self.needs.settings.get(operator, {})
        await self.environment.background_loop.do(
            replicas.start(self.needs.replicas, dict(overrides))
        )

    async def stop(self, operator: str) -> None:
        self._act()
        await self.environment.background_loop.do(self._replicas_of(operator).stop())

    async def kill(self, operator: str) -> None:
        self._act()
        await self.environment.background_loop.do(self._replicas_of(operator).kill())

    async def freeze_leader(self, operator: str) -> None:
        self._act()
        await self.environment.background_loop.do(self._replicas_of(operator).freeze_leader())

    async def thaw(self, operator: str) -> None:
        self._act()
        self._replicas_of(operator).thaw()

    def metric(self, operator: str, name: str, labels: Mapping[str, str]) -> float:
        return self._replicas_of(operator).metric(name, labels)

    def _replicas_of(self, operator: str) -> OperatorReplicas:
        is_single = self.needs.is_single and operator == MANAGEMENT
        return self.environment.replicas[SINGLE_MANAGEMENT if is_single else operator]

    def _act(self) -> None:
        """Records an action that is not a request; only scenarios that run alone may take it."""
        if self.is_shared:
            raise AssertionError(f"{self.scenario} must say that it runs alone")
        self.last_act = self.now()

    def _act_on(self, plane: str) -> None:
        """The same for an action on one project, which its own scenario may take too."""
        if plane not in self._added:
            self._act()
        self.last_act = self.now()

    # links ---------------------------------------------------------------------------------------

    async def cut(self, operator: str, plane: str) -> None:
        self._act_on(plane)
        await self.environment.background_loop.do(self.environment.links.cut(operator, plane))

    async def slow(self, operator: str, plane: str, delay: timedelta) -> None:
        self._act_on(plane)
        await self.environment.background_loop.do(
            self.environment.links.slow(operator, plane, delay)
        )

    async def heal(self, operator: str, plane: str) -> None:
        self._act_on(plane)
        await self.environment.background_loop.do(self.environment.links.heal(operator, plane))

    async def cut_member(self, cell: str) -> None:
        self._act()
        await self.environment.background_loop.do(self.environment.links.member(cell).cut())

    async def heal_member(self, cell: str) -> None:
        self._act()
        await self.environment.background_loop.do(self.environment.links.member(cell).heal())

    # external systems ----------------------------------------------------------------------------

    async def pause_quota(self) -> None:
        self._act()
        self.environment.planes.milo.controllers.freeze()

    async def resume_quota(self) -> None:
        self._act()
        self.environment.planes.milo.controllers.thaw()

    async def set_grant(self, project: str, instances: int) -> None:
        self._act_on(project)
        async with self.environment.planes.plane(project).client() as client:
            await client.apply(a_grant(project, instances))

    def running(self, cell: str) -> frozenset[str]:
        return frozenset(self.environment.external.providers[cell].pods)

    async def start_autoscalers(self, cell: str) -> None:
        """The controller itself runs in every cell; without metrics it moves no number."""
        self._act()
        await self.install_pod_metrics(cell)
        await self.environment.background_loop.do(self._start_pod_metrics(cell))

    async def install_pod_metrics(self, cell: str) -> None:
        server = self.environment.planes.plane(cell)
        async with server.client() as client:
            await install_crds(client, [a_definition()], server.runtime)

    async def _start_pod_metrics(self, cell: str) -> None:
        self.environment.external.start_pod_metrics(cell)

    def set_load(self, cell: str, deployment: str, replicas: int) -> None:
        self._act()
        self.environment.external.pod_metrics[cell].loads[deployment] = replicas

    def set_pod_metrics(self, cell: str, *, is_up: bool) -> None:
        self._act()
        self.environment.external.pod_metrics[cell].has_metrics = is_up

    async def set_networking(self, cell: str, options: NetworkOptions) -> None:
        self._act()
        self.environment.external.set_networking(cell, options)

    async def install_networking(self, plane: str) -> None:
        self._act()
        server = self.environment.planes.plane(plane)
        crds = external_definitions("networking")
        async with server.client() as client:
            await install_crds(client, crds, server.runtime)
            cell = next(one for one in CELLS if one.name == plane)
            await client.apply(self.environment.location_of(cell))
        if plane not in self.environment.external.networks:
            await self.environment.background_loop.do(self._start_networking(plane))

    async def _start_networking(self, cell: str) -> None:
        self.environment.external.start_networking(cell)

    async def uninstall_networking(self, plane: str) -> None:
        self._act()
        await self.environment.background_loop.do(self.environment.external.stop_networking(plane))
        async with self.environment.planes.plane(plane).client() as client:
            for crd in external_definitions("networking"):
                path = await client.path_of(crd)
                if await client.find(path) is not None:
                    await client.delete(path)
                    await self._await_gone(client, path)

    async def _await_gone(self, client: PlaneClient, path: str) -> None:
        async def gone() -> bool:
            return await client.find(path) is None

        await until(f"{path} to be gone", gone, check=self.environment.planes.check)

    async def set_webhook(self, *, is_up: bool) -> None:
        self._act()
        link = self.environment.links.webhook(SINGLE.name if self.needs.is_single else ROOT)
        await self.environment.background_loop.do(link.heal() if is_up else link.cut())

    async def decommission(self, *arguments: str) -> CommandResult:
        self._act()
        return await run_decommission(self.environment, arguments)

    async def diagnose(
        self, words: Sequence[str], contexts: Sequence[str], user: str
    ) -> CommandResult:
        return await run_diagnosis(self.environment, words, contexts, user)
