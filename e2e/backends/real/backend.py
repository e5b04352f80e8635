"""The backend `real`: the port of the world for one scenario, on the stack of the session.

A scenario has a namespace of its own in every project it is given; one that runs alone sees
everything, one beside others only what is about its own namespaces. People speak through the
gateway as users of the platform do, and to hub and cells directly (`people.py`).
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
from e2e.backends.crew import OperatorCrew
from e2e.backends.port import (
    MANAGEMENT,
    ROOT,
    SINGLE,
    Audited,
    Call,
    Needs,
    NetworkKnobs,
    Place,
    Reply,
    Run,
    Version,
)
from e2e.backends.real.auditing import Entry
from e2e.backends.real.decommissioning import run_decommission
from e2e.backends.real.people import People
from e2e.backends.real.recording import ON_PROJECT, Recorded
from e2e.backends.real.theatre import (
    AMPLE,
    CELLS,
    SHARED_PROJECTS,
    SINGLE_MANAGEMENT,
    Theatre,
    can_share,
)
from e2e.backends.shipped import neighbour_definitions
from e2e.documents import NETWORK_NAME, a_grant, a_namespace, a_network
from e2e.kinds import KINDS, NAMESPACE, Kind
from e2e.objects import uid_of
from e2e.planes.client import PlaneClient
from e2e.planes.plane import install_crds
from e2e.planes.waiting import until

ENGAGED: Final = "compute_projects_engaged"
WARM_UP: Final = timedelta(seconds=120)
CLEARED: Final = timedelta(minutes=3)


class RealBackend:
    """See `e2e/backends/port.py`."""

    name = "real"

    def __init__(self, theatre: Theatre, scenario: str, needs: Needs) -> None:
        self.theatre = theatre
        self.scenario = scenario
        self.needs = needs
        self.is_shared = can_share(needs)
        self.begun = self.now()
        self.last_act = self.begun
        self.by_hand: set[str] = set()
        self.lost: set[str] = set()
        self._namespace = f"shop-{secrets.token_hex(3)}"
        # Whoever wants several is about projects, too: they are made for it, and go with it.
        own = [f"{self._namespace}-p{number}" for number in range(1, needs.projects + 1)]
        is_about_projects = needs.has_own_projects or needs.projects > 1
        self._added: list[str] = own if is_about_projects else []
        usual = (SINGLE.name,) if needs.is_single else SHARED_PROJECTS[:1]
        projects = self._added or usual
        self._places = tuple(Place(project, self._namespace) for project in projects)
        self.namespace_uids: dict[str, str] = {}
        # What providers had complained of before.
        self.complaints: dict[str, int] = {}
        self.people = People(theatre)

    @property
    def places(self) -> Sequence[Place]:
        return self._places

    # opening and closing -------------------------------------------------------------------------

    async def open(self) -> None:
        """The scenario's projects and namespaces, and operators as it needs them."""
        await self.people.open()
        theatre = self.theatre
        begun = [theatre.backstage.do(theatre.add_project(project)) for project in self._added]
        await asyncio.gather(*begun)
        for place in self._places:
            await self._furnish(place)
        if not self.is_shared:
            if not self.needs.has_networking and not self.needs.is_single:
                for cell in self.needs.cells:
                    await self.uninstall_networking(cell.name)
            await self.theatre.backstage.do(self.theatre.arrange(self.needs))
        await self._await_engaged()
        providers = self.theatre.neighbours.providers
        self.complaints = {cell: len(one.violations) for cell, one in providers.items()}
        self.begun = self.last_act = self.now()

    async def _furnish(self, place: Place) -> None:
        async with self.theatre.planes.plane(place.project).client() as client:
            made = await client.create(a_namespace(place.namespace))
            if not self.needs.is_single:
                await client.apply(a_network(NETWORK_NAME, place.namespace))
        self.namespace_uids[uid_of(made)] = place.project

    async def _await_engaged(self) -> None:
        """Until management serves every project: admission refuses what comes earlier."""
        crew = self._crew(MANAGEMENT)
        is_single = self.needs.is_single
        projects = 1 if is_single else len(self.theatre.planes.milo.projects)
        wanted = projects * self.needs.replicas

        async def engaged() -> bool:
            with suppress(AssertionError):  # it does not tell its metrics yet
                return crew.metric(ENGAGED, {}) >= wanted
            return False

        await until(
            "management to engage its projects", engaged, check=lambda: None, patience=WARM_UP
        )

    async def close(self) -> None:
        """Takes away what the scenario left, and heals what it spoilt."""
        try:
            if not self.is_shared:
                await self._restore()
            await self.clear()
            await self.await_cleared()
            theatre = self.theatre
            leaving = [theatre.backstage.do(theatre.remove_project(one)) for one in self._added]
            await asyncio.gather(*leaving)
        finally:
            await self.people.close()

    async def _restore(self) -> None:
        theatre = self.theatre
        await theatre.backstage.do(theatre.links.heal_all())
        await self.resume_quota()
        for crew in theatre.crews.values():
            crew.thaw()
        for cell in CELLS:
            if cell.name not in theatre.neighbours.networks:
                await self.install_networking(cell.name)
            await self.set_networking(cell.name, NetworkKnobs())
        await theatre.backstage.do(theatre.rejoin_members())
        # Whoever was stopped or killed takes part in clearing up.
        await theatre.backstage.do(theatre.arrange(self.needs))
        for place in self._places:
            if place.project in SHARED_PROJECTS:
                await self.set_grant(place.project, AMPLE)

    async def clear(self) -> None:
        """The namespaces go, and with them all that stands for them elsewhere (E-16); what a hand
        left is taken by a hand.
        """
        for left in self.by_hand:
            plane, kind_name, key = left.split(" ")
            kind = next(one for one in KINDS if one.name == kind_name)
            await self._delete(plane, kind.path(*key.rpartition("/")[::2]))
        # Nobody takes from a cell that was written off: its site would be cleared by people too.
        for cell in self.lost:
            for uid in self.namespace_uids:
                await self._delete(cell, NAMESPACE.path(name=f"ns-{uid}"))
        for place in self._places:
            if place.project in self._present():
                await self._delete(place.project, NAMESPACE.path(name=place.namespace))
                await self._empty(place)

    async def _empty(self, place: Place) -> None:
        """What the controller of namespaces does five seconds after a deletion, done at once: it
        gives every API server of a cluster time to hear of it, and a plane here has one.
        """
        recorder = self.theatre.recorder
        async with self.theatre.planes.plane(place.project).client() as client:
            for kind in ON_PROJECT:
                if kind.is_namespaced and recorder.is_watched(place.project, kind):
                    await client.delete(kind.path(place.namespace))

    def _present(self) -> set[str]:
        return {plane.name for plane in self.theatre.planes.planes}

    async def _delete(self, plane: str, path: str) -> None:
        async with self.theatre.planes.plane(plane).client() as client:
            if await client.find(path) is not None:
                await client.delete(path)

    async def await_cleared(self) -> None:
        """The second half of O4: the roots are gone, so nothing but hub namespaces may be left."""
        own = {self._namespace, *(f"ns-{uid}" for uid in self.namespace_uids)}
        end = self.now() + CLEARED
        # A project that was taken away tells nobody what became of its objects.
        while left := self.theatre.recorder.held_in(self._present(), own):
            if self.now() > end:
                raise AssertionError(f"O4: left {CLEARED} after its project namespace went: {left}")
            await asyncio.sleep(0.2)

    # time ----------------------------------------------------------------------------------------

    def now(self) -> datetime:
        return datetime.now(UTC)

    async def sleep(self, delay: timedelta) -> None:
        await asyncio.sleep(delay.total_seconds())

    # planes --------------------------------------------------------------------------------------

    async def add_project(self, name: str) -> Place:
        place = Place(name, self._namespace)
        self._added.append(name)
        self._places = (*self._places, place)
        await self.theatre.backstage.do(self.theatre.add_project(name))
        await self._furnish(place)
        self.last_act = self.now()
        return place

    async def send(self, plane: str, who: str, call: Call) -> Reply:
        if call.method != "GET":
            self.last_act = self.now()
        return await self.people.send(plane, who, call)

    def audit(self) -> Sequence[Audited]:
        return [entry.audited for entry in self.entries()]

    def entries(self) -> list[Entry]:
        """Requests since the scenario began; beside others, those about its own namespaces."""
        since = [one for one in self.theatre.audits.read() if one.audited.at >= self.begun]
        if not self.is_shared:
            return since
        return [entry for entry in since if self._is_own(entry.audited)]

    def _is_own(self, one: Audited) -> bool:
        about = one.namespace or (one.name if one.resource == "namespaces" else "")
        if about.startswith("ns-"):
            return about.removeprefix("ns-") in self.namespace_uids
        return about == self._namespace

    def is_own_record(self, one: Recorded) -> bool:
        about = one.namespace or (one.key if one.kind is NAMESPACE else "")
        if about.startswith("ns-"):
            return about.removeprefix("ns-") in self.namespace_uids
        return about == self._namespace

    def leave(self, plane: str, kind: Kind, key: str) -> None:
        self.by_hand.add(f"{plane} {kind.name} {key}")

    def write_off(self, cell: str) -> None:
        self.lost.add(cell)

    def versions(self, plane: str, kind: Kind, namespace: str) -> Sequence[Version]:
        recorder = self.theatre.recorder
        if not recorder.is_watched(plane, kind):
            raise LookupError(f"nobody records {kind.name} of {plane}")
        return [
            Version(one.at, not one.after, orjson.loads(one.after or one.before))
            for one in recorder.versions(plane, kind, namespace, since=self.begun)
        ]

    # operators -----------------------------------------------------------------------------------

    async def start(self, operator: str, settings: JsonObject | None = None) -> None:
        self._act()
        crew = self._crew(operator)
        laid = settings or self.needs.settings.get(operator, {})
        await self.theatre.backstage.do(crew.start(self.needs.replicas, dict(laid)))

    async def stop(self, operator: str) -> None:
        self._act()
        await self.theatre.backstage.do(self._crew(operator).stop())

    async def kill(self, operator: str) -> None:
        self._act()
        await self.theatre.backstage.do(self._crew(operator).kill())

    async def freeze_leader(self, operator: str) -> None:
        self._act()
        await self.theatre.backstage.do(self._crew(operator).freeze_leader())

    async def thaw(self, operator: str) -> None:
        self._act()
        self._crew(operator).thaw()

    def metric(self, operator: str, name: str, labels: Mapping[str, str]) -> float:
        return self._crew(operator).metric(name, labels)

    def _crew(self, operator: str) -> OperatorCrew:
        is_single = self.needs.is_single and operator == MANAGEMENT
        return self.theatre.crews[SINGLE_MANAGEMENT if is_single else operator]

    def _act(self) -> None:
        """A scenario did something that is no request, and that it may do only alone."""
        if self.is_shared:
            raise AssertionError(f"{self.scenario} must say that it runs alone")
        self.last_act = self.now()

    def _act_on(self, plane: str) -> None:
        """The same, but for what is done to a project that nobody else uses."""
        if plane not in self._added:
            self._act()
        self.last_act = self.now()

    # links ---------------------------------------------------------------------------------------

    async def cut(self, operator: str, plane: str) -> None:
        self._act_on(plane)
        await self.theatre.backstage.do(self.theatre.links.cut(operator, plane))

    async def slow(self, operator: str, plane: str, delay: timedelta) -> None:
        self._act_on(plane)
        await self.theatre.backstage.do(self.theatre.links.slow(operator, plane, delay))

    async def heal(self, operator: str, plane: str) -> None:
        self._act_on(plane)
        await self.theatre.backstage.do(self.theatre.links.heal(operator, plane))

    async def cut_member(self, cell: str) -> None:
        self._act()
        await self.theatre.backstage.do(self.theatre.links.member(cell).cut())

    async def heal_member(self, cell: str) -> None:
        self._act()
        await self.theatre.backstage.do(self.theatre.links.member(cell).heal())

    # neighbours ----------------------------------------------------------------------------------

    async def pause_quota(self) -> None:
        self._act()
        self.theatre.planes.milo.controllers.freeze()

    async def resume_quota(self) -> None:
        self._act()
        self.theatre.planes.milo.controllers.thaw()

    async def set_grant(self, project: str, instances: int) -> None:
        self._act_on(project)
        async with self.theatre.planes.plane(project).client() as client:
            await client.apply(a_grant(project, instances))

    async def set_networking(self, cell: str, knobs: NetworkKnobs) -> None:
        self._act()
        self.theatre.neighbours.set_networking(cell, knobs)

    async def install_networking(self, plane: str) -> None:
        self._act()
        found = self.theatre.planes.plane(plane)
        crds = neighbour_definitions("networking")
        async with found.client() as client:
            await install_crds(client, crds, found.site)
            cell = next(one for one in CELLS if one.name == plane)
            await client.apply(self.theatre.location_of(cell))
        if plane not in self.theatre.neighbours.networks:
            await self.theatre.backstage.do(self._start_networking(plane))

    async def _start_networking(self, cell: str) -> None:
        self.theatre.neighbours.start_networking(cell)

    async def uninstall_networking(self, plane: str) -> None:
        self._act()
        await self.theatre.backstage.do(self.theatre.neighbours.stop_networking(plane))
        async with self.theatre.planes.plane(plane).client() as client:
            for crd in neighbour_definitions("networking"):
                path = await client.path_of(crd)
                if await client.find(path) is not None:
                    await client.delete(path)
                    await self._await_gone(client, path)

    async def _await_gone(self, client: PlaneClient, path: str) -> None:
        async def gone() -> bool:
            return await client.find(path) is None

        await until(f"{path} to be gone", gone, check=self.theatre.planes.check)

    async def set_webhook(self, *, is_up: bool) -> None:
        self._act()
        link = self.theatre.links.webhook(SINGLE.name if self.needs.is_single else ROOT)
        await self.theatre.backstage.do(link.heal() if is_up else link.cut())

    async def decommission(self, *arguments: str) -> Run:
        self._act()
        return await run_decommission(self.theatre, arguments)
