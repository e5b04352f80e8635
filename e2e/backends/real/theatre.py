"""The stack of a session: planes, what is installed on them, who works beside us, both operators.

Brought up once and shared by all scenarios; a scenario that needs operators of another make has
them rearranged before it, and the next that does not, back. Everything in it lives backstage; what
is called from a scenario's own loop is said where it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from compute_api_types.wire import JsonObject
from compute_sim_planes.provider import ProviderKnobs
from e2e.backends.crew import OperatorCrew
from e2e.backends.port import DFW, HOME, HUB, MANAGEMENT, ORD, ROOT, SINGLE, Cell, Needs
from e2e.backends.real import installing, programs
from e2e.backends.real.auditing import AuditLogs, render_policy
from e2e.backends.real.backstage import Backstage
from e2e.backends.real.installing import SCRAPER
from e2e.backends.real.links import Links
from e2e.backends.real.neighbours import (
    IDENTITIES,
    NETWORK_RETRY,
    RECORDER,
    Clients,
    Neighbours,
)
from e2e.backends.real.operators import Crew, Fitting
from e2e.backends.real.recording import ON_CELL, ON_HUB, ON_PROJECT, ON_SINGLE, Recorder
from e2e.backends.shipped import lay_over, shipped_configuration
from e2e.documents import a_grant, a_location
from e2e.kinds import CLUSTER, PROJECT
from e2e.objects import object_at, text_at
from e2e.planes.client import has_condition
from e2e.planes.hub import cluster_of
from e2e.planes.identities import MANAGEMENT as MANAGEMENT_IDENTITY
from e2e.planes.identities import Identity, a_cell_operator
from e2e.planes.milo import a_project_named
from e2e.planes.ports import LOOPBACK
from e2e.planes.stack import Options, RealPlanes
from e2e.planes.topology import CITY_LABEL, FULL, PlaneSpec, Rates, Role, Topology
from e2e.planes.waiting import side_by_side, until

CELLS: Final = (DFW, ORD)
# The management operator has a cluster of its own, so that its rights at home are not Milo's.
# A single cluster stands beside the federation; nothing of either is on the other.
SINGLE_MANAGEMENT: Final = f"{SINGLE.name}-{MANAGEMENT}"
TOPOLOGY: Final = Topology(
    (*FULL.planes, PlaneSpec(HOME, Role.SINGLE), PlaneSpec(SINGLE.name, Role.SINGLE))
)
SHARED_PROJECTS: Final = tuple(plane.name for plane in FULL.of_role(Role.PROJECT))
AMPLE: Final = 1000
DECOMMISSIONER: Final = Identity("person:decommissioning")


@dataclass(frozen=True, slots=True)
class Making:
    """How a stack is made."""

    has_wheels: bool = False
    is_audited_whole: bool = True
    has_links: bool = True  # else operators and Karmada reach planes directly
    rates: Rates = Rates.QUICK
    provider: ProviderKnobs = field(default_factory=ProviderKnobs)
    folder: Path | None = None


@dataclass(frozen=True, slots=True)
class ToldUse:
    """What a session used of what ships."""

    lines: tuple[str, ...] = ()
    # What a run of everything must not leave unused.
    faults: tuple[str, ...] = ()


class Theatre:
    """See the module's text."""

    # How soon NSO looks again at a binding whose context was not ready.
    network_retry = NETWORK_RETRY

    def __init__(self, making: Making | None = None) -> None:
        self._making = making or Making()
        self.backstage = Backstage()
        self.planes = RealPlanes(TOPOLOGY, self._options())
        self.links = Links(self.planes, tuple(cell.name for cell in CELLS))
        self.recorder = Recorder()
        self.crews: dict[str, OperatorCrew] = {}
        self._stack = AsyncExitStack()
        self.failure: BaseException | None = None

    def _options(self) -> Options:
        names = [cell.name for cell in CELLS]
        return Options(
            rates=self._making.rates,
            identities=(*IDENTITIES, SCRAPER, DECOMMISSIONER),
            audit_policy=render_policy(names) if self._making.is_audited_whole else "",
            folder=self._making.folder,
        )

    # --- life, from a thread without a loop ------------------------------------------------------

    def open(self) -> None:
        self.backstage.start()
        try:
            self.backstage.run(self._open())
        except BaseException as failure:
            self.failure = failure
            self.close()
            raise

    def close(self) -> None:
        self.backstage.run(self._close())
        self.backstage.stop()

    async def _open(self) -> None:
        await self.planes.start()
        run = self.planes.run_folder
        is_built = self._making.has_wheels
        self.programs = (
            await asyncio.to_thread(programs.of_wheels, run.path)
            if is_built
            else programs.of_this_environment()
        )
        self.audits = AuditLogs(run.path / "audit", frozenset(cell.name for cell in CELLS))
        self.clients = Clients(self.planes)
        self._stack.push_async_callback(self.clients.close)
        self.neighbours = Neighbours(self.clients, self._making.provider, self.network_retry)
        self._stack.push_async_callback(self.neighbours.close)
        self._stack.push_async_callback(self.recorder.close)
        webhooks = await self._place_webhooks()
        await self.links.open(webhooks)
        self._stack.push_async_callback(self.links.close)
        await self._install()
        self.crews = await self._fit(webhooks)
        if self._making.has_links:
            await self._repoint_members()
        self._begin_work()
        for project in SHARED_PROJECTS:
            await self.furnish(project)

    async def _close(self) -> None:
        await side_by_side(crew.stop() for crew in self.crews.values())
        await self._stack.aclose()
        await self.planes.stop(failure=self.failure)

    # --- bringing up -----------------------------------------------------------------------------

    async def _place_webhooks(self) -> dict[str, tuple[str, int]]:
        """Where reviews are answered, by the plane that asks."""
        ports = self.planes.plane(HOME).site.ports
        return {plane: (LOOPBACK, ports.reserve()) for plane in (ROOT, SINGLE.name)}

    async def _install(self) -> None:
        """`deploy/` on every plane."""
        await installing.install(self.planes, CELLS, self.links.webhook(ROOT))
        await installing.install_single(self.planes, self.links.webhook(SINGLE.name))

    async def _fit(self, webhooks: Mapping[str, tuple[str, int]]) -> dict[str, OperatorCrew]:
        """The operators, with everything they are started with."""
        own = self.planes.run_folder.path / "operators"
        own.mkdir()
        certificates = own / "certificates"
        certificates.mkdir()
        self.planes.plane(HOME).site.pki.server.write(certificates, "tls")
        management = await self._fit_management(own, certificates, webhooks[ROOT][1])
        fittings = [management, *[await self._fit_cell(cell, own, certificates) for cell in CELLS]]
        for name, program, config in (
            (SINGLE_MANAGEMENT, programs.MANAGEMENT, "compute-management-config"),
            (SINGLE.name, programs.CELL, "compute-cell-config"),
        ):
            home = installing.write_kubeconfig(
                own / f"{name}.home",
                self.planes,
                self.planes.plane(SINGLE.name).server,
                await installing.issue_token(self.planes, SINGLE.name, program),
            )
            fittings.append(
                Fitting(
                    operator=name,
                    program=self.programs[program],
                    home=self.planes.plane(SINGLE.name),
                    home_kubeconfig=home,
                    lease=program,
                    configuration=shipped_configuration("single-cluster", config),
                    certificates=certificates,
                    webhook=webhooks[SINGLE.name][1],
                )
            )
        return {fitting.operator: Crew(fitting) for fitting in fittings}

    async def _fit_management(self, own: Path, certificates: Path, webhook: int) -> Fitting:
        user = MANAGEMENT_IDENTITY.user
        milo = self._kubeconfig(own / "management.milo", self.planes.milo.server(), ROOT, user)
        hub = self._kubeconfig(own / "management.hub", self._server(MANAGEMENT, HUB), HUB, user)
        laid: JsonObject = {
            "discovery": {"discoveryKubeconfigPath": str(milo)},
            "federation": {"kubeconfigPath": str(hub)},
        }
        shipped = shipped_configuration("management", "compute-management-config")
        return Fitting(
            operator=MANAGEMENT,
            program=self.programs[programs.MANAGEMENT],
            home=self.planes.plane(HOME),
            home_kubeconfig=await self._home(own, MANAGEMENT, HOME, programs.MANAGEMENT),
            lease=programs.MANAGEMENT,
            configuration=lay_over(shipped, laid),
            certificates=certificates,
            webhook=webhook,
        )

    async def _fit_cell(self, cell: Cell, own: Path, certificates: Path) -> Fitting:
        user = a_cell_operator(cell.name).user
        hub = self._kubeconfig(own / f"{cell.name}.hub", self._server(cell.name, HUB), HUB, user)
        quota = self._kubeconfig(own / f"{cell.name}.milo", self.planes.milo.server(), ROOT, user)
        laid: JsonObject = {
            "cell": {"name": cell.name, "cityCode": cell.city},
            "federation": {"kubeconfigPath": str(hub)},
            "quota": {"kubeconfigPath": str(quota)},
        }
        plane = self.planes.plane(cell.name)
        return Fitting(
            operator=cell.name,
            program=self.programs[programs.CELL],
            home=plane,
            home_kubeconfig=await self._home(own, cell.name, cell.name, programs.CELL),
            lease=programs.CELL,
            configuration=lay_over(shipped_configuration("cell", "compute-cell-config"), laid),
            certificates=certificates,
            webhook=plane.site.ports.reserve(),
        )

    def _server(self, operator: str, plane: str) -> str:
        if not self._making.has_links:
            return self.planes.plane(plane).server
        link = self.links.to(operator, plane)
        return f"https://{link.address}:{link.port}"

    def _kubeconfig(self, path: Path, server: str, plane: str, user: str) -> Path:
        token = self.planes.plane(plane).site.tokens.of(plane, user)
        return installing.write_kubeconfig(path, self.planes, server, token)

    async def _home(self, own: Path, operator: str, plane: str, account: str) -> Path:
        token = await installing.issue_token(self.planes, plane, account)
        server = self._server(operator, plane)
        return installing.write_kubeconfig(own / f"{operator}.home", self.planes, server, token)

    async def _repoint_members(self) -> None:
        """Karmada reaches members through links too. It takes a new address only at its start."""
        async with self.planes.plane(HUB).client() as hub:
            for cell in CELLS:
                await hub.apply(self._cluster_of(cell))
        await self.planes.karmada.controller_manager.restart()

    def _begin_work(self) -> None:
        self.recorder.watch(HUB, self.clients.of(HUB, RECORDER), ON_HUB)
        for cell in CELLS:
            self.recorder.watch(cell.name, self.clients.of(cell.name, RECORDER), ON_CELL)
            self.neighbours.start_provider(cell.name)
            self.neighbours.start_networking(cell.name)
        self.recorder.watch(SINGLE.name, self.clients.of(SINGLE.name, RECORDER), ON_SINGLE)
        self.neighbours.start_provider(SINGLE.name)

    # --- projects --------------------------------------------------------------------------------

    async def furnish(self, project: str) -> None:
        """A project that is Ready: its cities, an ample grant, and its record."""
        async with self.planes.plane(project).client() as client:
            for cell in CELLS:
                await client.apply(a_location(cell.city))
            await client.apply(a_grant(project, AMPLE))
        self.recorder.watch(project, self.clients.of(project, RECORDER), ON_PROJECT)

    async def add_project(self, name: str) -> None:
        async with self.planes.milo.client() as root:
            await root.create(a_project_named(name))

            async def ready() -> bool:
                return has_condition(await root.get(PROJECT.path(name=name)), "Ready")

            await until(f"project {name} to be Ready", ready, check=self.planes.check)
        await self.furnish(name)

    async def remove_project(self, name: str) -> None:
        await self.recorder.forget(name)
        async with self.planes.milo.client() as root:
            if await root.find(PROJECT.path(name=name)) is None:
                return
            await root.delete(PROJECT.path(name=name))

            async def gone() -> bool:
                return await root.find(PROJECT.path(name=name)) is None

            await until(f"project {name} to be gone", gone, check=self.planes.check)

    async def rejoin_members(self) -> None:
        """Clusters as they were at the start, and Ready: scenarios relabel and delete them."""
        async with self.planes.plane(HUB).client() as hub:
            for cell in CELLS:
                path = CLUSTER.path(name=cell.name)
                found = await hub.find(path)
                label = text_at(found, "metadata", "labels", CITY_LABEL) if found else ""
                if label != cell.city:
                    await hub.apply(self._cluster_of(cell))

                async def ready(path: str = path) -> bool:
                    return has_condition(await hub.get(path), "Ready")

                await until(f"cluster {cell.name} to be Ready", ready, check=self.planes.check)

    def _cluster_of(self, cell: Cell) -> JsonObject:
        link, wanted = self.links.member(cell.name), cluster_of(self.planes.plane(cell.name))
        spec = object_at(wanted, "spec")
        return {**wanted, "spec": {**spec, "apiEndpoint": f"https://{link.address}:{link.port}"}}

    def describe_use(self) -> ToldUse:
        """What a session's end tells beside outcomes; of processes, nothing."""
        return ToldUse()

    def location_of(self, cell: Cell) -> JsonObject:
        return a_location(cell.city)

    # --- operators -------------------------------------------------------------------------------

    async def arrange(self, needs: Needs) -> None:
        """Operators as a scenario needs them; those that are so already are left alone."""
        wanted = derive_arrangement(needs)
        # One after another: how soon each is ready is its own.
        for name, crew in self.crews.items():
            if crew.arrangement == wanted[name]:
                continue
            replicas, laid = wanted[name]
            if replicas:
                await crew.start(replicas, laid)
            else:
                await crew.stop()


def derive_arrangement(needs: Needs) -> dict[str, tuple[int, JsonObject]]:
    """How many replicas of each operator run for a scenario, and what it says to them."""
    nothing: JsonObject = {}
    alone = (int(needs.is_single), nothing)
    wanted = {SINGLE_MANAGEMENT: alone, SINGLE.name: alone}
    wanted[MANAGEMENT] = (needs.replicas, dict(needs.settings.get(MANAGEMENT, {})))
    told = {cell.name: cell for cell in needs.cells}
    for cell in CELLS:
        laid: JsonObject = dict(needs.settings.get(cell.name, {}))
        if cell.name in told and not told[cell.name].says_city:
            laid = lay_over(laid, {"cell": {"cityCode": ""}})
        wanted[cell.name] = (needs.replicas if needs.runs_cells else 0, laid)
    return wanted


def name_arrangement(needs: Needs) -> str:
    """The same text for scenarios that need the operators in the same make."""
    return str(derive_arrangement(needs))


def can_share(needs: Needs) -> bool:
    """Whether a scenario can be played beside others that need the operators as it does."""
    return not needs.is_alone and not needs.is_single and needs.has_networking
