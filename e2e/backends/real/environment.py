"""The stack of a session: planes, installed manifests, external controllers, both operators.

It is started once and shared by all scenarios. `arrange` restarts the operators when a scenario
needs other replicas or settings. Everything runs on the background loop, except the methods that
are marked as called from another thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from compute_api_types.wire import JsonObject
from compute_sim_planes.pod_life import ProviderOptions
from e2e.backends.real import installing, programs
from e2e.backends.real.auditing import AuditLogs, render_policy
from e2e.backends.real.background_loop import BackgroundLoop
from e2e.backends.real.external import (
    IDENTITIES,
    NETWORK_RETRY,
    RECORDER,
    Clients,
    RealExternalControllers,
)
from e2e.backends.real.installing import SCRAPER
from e2e.backends.real.links import Links
from e2e.backends.real.recording import ON_CELL, ON_HUB, ON_PROJECT, ON_SINGLE, Recorder
from e2e.backends.real.replicas import ProcessReplicas, ReplicaConfig
from e2e.backends.replicas import OperatorReplicas
from e2e.harness.access.client import has_condition
from e2e.harness.access.waiting import side_by_side, until
from e2e.harness.deploy.shipped import merge_over, shipped_configuration
from e2e.harness.planes.identities import MANAGEMENT as MANAGEMENT_IDENTITY
from e2e.harness.planes.identities import Identity, a_cell_operator
from e2e.harness.planes.topology import CITY_LABEL, FULL, PlaneSpec, Rates, Role, Topology
from e2e.harness.processes.ports import LOOPBACK
from e2e.harness.stack.hub import cluster_of
from e2e.harness.stack.milo import a_project_named
from e2e.harness.stack.stack import Options, RealPlanes
from e2e.world.documents import a_grant, a_location
from e2e.world.kinds import CLUSTER, PROJECT
from e2e.world.objects import object_at, text_at
from e2e.world.port import DFW, DIAGNOSER, HOME, HUB, MANAGEMENT, ORD, ROOT, SINGLE, Cell, Needs

CELLS: Final = (DFW, ORD)
# The management operator has its own cluster, so that its home rights differ from those in Milo.
# The single cluster has no connection to the federation.
SINGLE_MANAGEMENT: Final = f"{SINGLE.name}-{MANAGEMENT}"
TOPOLOGY: Final = Topology(
    (*FULL.planes, PlaneSpec(HOME, Role.SINGLE), PlaneSpec(SINGLE.name, Role.SINGLE))
)
SHARED_PROJECTS: Final = tuple(plane.name for plane in FULL.of_role(Role.PROJECT))
AMPLE: Final = 1000
DECOMMISSIONER: Final = Identity("person:decommissioning")


@dataclass(frozen=True, slots=True)
class EnvironmentOptions:
    """How the stack is built."""

    has_wheels: bool = False
    is_audited_whole: bool = True
    has_links: bool = True  # else operators and Karmada connect to planes directly
    rates: Rates = Rates.QUICK
    provider: ProviderOptions = field(default_factory=ProviderOptions)
    folder: Path | None = None


@dataclass(frozen=True, slots=True)
class UsageReport:
    """Which of the shipped manifests a session used."""

    lines: tuple[str, ...] = ()
    # Objects and rights that a complete run must use and did not.
    faults: tuple[str, ...] = ()


class RealEnvironment:
    """The stack of one session."""

    # NSO's retry interval for a binding that had no ready context.
    network_retry = NETWORK_RETRY

    def __init__(self, options: EnvironmentOptions | None = None) -> None:
        self._environment_options = options or EnvironmentOptions()
        self.background_loop = BackgroundLoop()
        self.planes = RealPlanes(TOPOLOGY, self._options())
        self.links = Links(self.planes, tuple(cell.name for cell in CELLS))
        self.recorder = Recorder()
        self.replicas: dict[str, OperatorReplicas] = {}
        self._stack = AsyncExitStack()
        self.failure: BaseException | None = None

    def _options(self) -> Options:
        names = [cell.name for cell in CELLS]
        return Options(
            rates=self._environment_options.rates,
            identities=(*IDENTITIES, SCRAPER, DECOMMISSIONER, Identity(DIAGNOSER)),
            audit_policy=render_policy(names) if self._environment_options.is_audited_whole else "",
            folder=self._environment_options.folder,
        )

    # --- life cycle, called from a thread without a loop -----------------------------------------

    def open(self) -> None:
        self.background_loop.start()
        try:
            self.background_loop.run(self._open())
        except BaseException as failure:
            self.failure = failure
            self.close()
            raise

    def close(self) -> None:
        self.background_loop.run(self._close())
        self.background_loop.stop()

    async def _open(self) -> None:
        await self.planes.start()
        run = self.planes.run_folder
        is_built = self._environment_options.has_wheels
        self.programs = (
            await asyncio.to_thread(programs.of_wheels, run.path)
            if is_built
            else programs.of_this_environment()
        )
        self.audits = AuditLogs(run.path / "audit", frozenset(cell.name for cell in CELLS))
        self.clients = Clients(self.planes)
        self._stack.push_async_callback(self.clients.close)
        self.external = RealExternalControllers(
            self.clients, self._environment_options.provider, self.network_retry
        )
        self._stack.push_async_callback(self.external.close)
        self._stack.push_async_callback(self.recorder.close)
        webhooks = await self._reserve_webhooks()
        await self.links.open(webhooks)
        self._stack.push_async_callback(self.links.close)
        await self._install()
        self.replicas = await self._configure(webhooks)
        if self._environment_options.has_links:
            await self._repoint_members()
        self._begin_work()
        for project in SHARED_PROJECTS:
            await self.prepare_project(project)

    async def _close(self) -> None:
        await side_by_side(operator_replicas.stop() for operator_replicas in self.replicas.values())
        await self._stack.aclose()
        await self.planes.stop(failure=self.failure)

    # --- start -----------------------------------------------------------------------------------

    async def _reserve_webhooks(self) -> dict[str, tuple[str, int]]:
        """Address of the admission webhook, by the plane that calls it."""
        ports = self.planes.plane(HOME).runtime.ports
        return {plane: (LOOPBACK, ports.reserve()) for plane in (ROOT, SINGLE.name)}

    async def _install(self) -> None:
        """Applies `deploy/` to every plane."""
        await installing.install(self.planes, CELLS, self.links.webhook(ROOT))
        await installing.install_single(self.planes, self.links.webhook(SINGLE.name))

    async def _configure(
        self, webhooks: Mapping[str, tuple[str, int]]
    ) -> dict[str, OperatorReplicas]:
        """The operators with their configuration."""
        own = self.planes.run_folder.path / "operators"
        own.mkdir()
        certificates = own / "certificates"
        certificates.mkdir()
        self.planes.plane(HOME).runtime.pki.server.write(certificates, "tls")
        management = await self._configure_management(own, certificates, webhooks[ROOT][1])
        configs = [
            management,
            *[await self._configure_cell(cell, own, certificates) for cell in CELLS],
        ]
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
            configs.append(
                ReplicaConfig(
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
        return {one.operator: ProcessReplicas(one) for one in configs}

    async def _configure_management(
        self, own: Path, certificates: Path, webhook: int
    ) -> ReplicaConfig:
        user = MANAGEMENT_IDENTITY.user
        milo = self._kubeconfig(own / "management.milo", self.planes.milo.server(), ROOT, user)
        hub = self._kubeconfig(own / "management.hub", self._server(MANAGEMENT, HUB), HUB, user)
        overrides: JsonObject = {
            "discovery": {"discoveryKubeconfigPath": str(milo)},
            "federation": {"kubeconfigPath": str(hub)},
        }
        shipped = shipped_configuration("management", "compute-management-config")
        return ReplicaConfig(
            operator=MANAGEMENT,
            program=self.programs[programs.MANAGEMENT],
            home=self.planes.plane(HOME),
            home_kubeconfig=await self._home(own, MANAGEMENT, HOME, programs.MANAGEMENT),
            lease=programs.MANAGEMENT,
            configuration=merge_over(shipped, overrides),
            certificates=certificates,
            webhook=webhook,
        )

    async def _configure_cell(self, cell: Cell, own: Path, certificates: Path) -> ReplicaConfig:
        user = a_cell_operator(cell.name).user
        hub = self._kubeconfig(own / f"{cell.name}.hub", self._server(cell.name, HUB), HUB, user)
        quota = self._kubeconfig(own / f"{cell.name}.milo", self.planes.milo.server(), ROOT, user)
        overrides: JsonObject = {
            "cell": {"name": cell.name, "cityCode": cell.city},
            "federation": {"kubeconfigPath": str(hub)},
            "quota": {"kubeconfigPath": str(quota)},
        }
        plane = self.planes.plane(cell.name)
        return ReplicaConfig(
            operator=cell.name,
            program=self.programs[programs.CELL],
            home=plane,
            home_kubeconfig=await self._home(own, cell.name, cell.name, programs.CELL),
            lease=programs.CELL,
            configuration=merge_over(
                shipped_configuration("cell", "compute-cell-config"), overrides
            ),
            certificates=certificates,
            webhook=plane.runtime.ports.reserve(),
        )

    def _server(self, operator: str, plane: str) -> str:
        if not self._environment_options.has_links:
            return self.planes.plane(plane).server
        link = self.links.to(operator, plane)
        return f"https://{link.address}:{link.port}"

    def _kubeconfig(self, path: Path, server: str, plane: str, user: str) -> Path:
        token = self.planes.plane(plane).runtime.tokens.of(plane, user)
        return installing.write_kubeconfig(path, self.planes, server, token)

    async def _home(self, own: Path, operator: str, plane: str, account: str) -> Path:
        token = await installing.issue_token(self.planes, plane, account)
        server = self._server(operator, plane)
        return installing.write_kubeconfig(own / f"{operator}.home", self.planes, server, token)

    async def _repoint_members(self) -> None:
        """Makes Karmada reach members through links. It reads their addresses only when it
        starts.
        """
        async with self.planes.plane(HUB).client() as hub:
            for cell in CELLS:
                await hub.apply(self._cluster_of(cell))
        await self.planes.karmada.controller_manager.restart()

    def _begin_work(self) -> None:
        self.recorder.watch(HUB, self.clients.of(HUB, RECORDER), ON_HUB)
        for cell in CELLS:
            self.recorder.watch(cell.name, self.clients.of(cell.name, RECORDER), ON_CELL)
            self._start_provider(cell.name)
            self.external.start_networking(cell.name)
        self.recorder.watch(SINGLE.name, self.clients.of(SINGLE.name, RECORDER), ON_SINGLE)
        self._start_provider(SINGLE.name)

    def _start_provider(self, cell: str) -> None:
        """Starts the simulated provider, where no other runs Instances."""
        self.external.start_provider(cell)

    # --- projects --------------------------------------------------------------------------------

    async def prepare_project(self, project: str) -> None:
        """Prepares a Ready project: Locations, an ample grant, and a recorder."""
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
        await self.prepare_project(name)

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
        """Restores the Clusters that scenarios relabelled or deleted and waits until they are
        Ready.
        """
        async with self.planes.plane(HUB).client() as hub:
            for cell in CELLS:
                path = CLUSTER.path(name=cell.name)
                member = await hub.find(path)
                label = text_at(member, "metadata", "labels", CITY_LABEL) if member else ""
                if label != cell.city:
                    await hub.apply(self._cluster_of(cell))

                async def ready(path: str = path) -> bool:
                    return has_condition(await hub.get(path), "Ready")

                await until(f"cluster {cell.name} to be Ready", ready, check=self.planes.check)

    def _cluster_of(self, cell: Cell) -> JsonObject:
        link, wanted = self.links.member(cell.name), cluster_of(self.planes.plane(cell.name))
        spec = object_at(wanted, "spec")
        return {**wanted, "spec": {**spec, "apiEndpoint": f"https://{link.address}:{link.port}"}}

    def describe_use(self) -> UsageReport:
        """The report at the end of a session; empty for operators as processes."""
        return UsageReport()

    def location_of(self, cell: Cell) -> JsonObject:
        return a_location(cell.city)

    # --- operators -------------------------------------------------------------------------------

    async def arrange(self, needs: Needs) -> None:
        """Restarts the operators that do not run as the scenario needs them."""
        wanted = derive_arrangement(needs)
        # One after another, so that they do not slow each other's start.
        for name, operator_replicas in self.replicas.items():
            replicas, overrides = wanted.get(name) or self._arrange_other(name, needs)
            if operator_replicas.arrangement == (replicas, overrides):
                continue
            if replicas:
                await operator_replicas.start(replicas, overrides)
            else:
                await operator_replicas.stop()

    def _arrange_other(self, name: str, needs: Needs) -> tuple[int, JsonObject]:
        """Replicas and overrides of an operator that only some backends have."""
        raise LookupError(f"{name} has no arrangement for {needs}")


def derive_arrangement(needs: Needs) -> dict[str, tuple[int, JsonObject]]:
    """Replicas and setting overrides of each operator for a scenario."""
    nothing: JsonObject = {}
    of_management: JsonObject = dict(needs.settings.get(MANAGEMENT, {}))
    # Settings are for the management operator that the scenario is about.
    wanted = {
        SINGLE_MANAGEMENT: (int(needs.is_single), of_management if needs.is_single else nothing),
        SINGLE.name: (int(needs.is_single), nothing),
        MANAGEMENT: (needs.replicas, nothing if needs.is_single else of_management),
    }
    named = {cell.name: cell for cell in needs.cells}
    for cell in CELLS:
        overrides: JsonObject = dict(needs.settings.get(cell.name, {}))
        if cell.name in named and not named[cell.name].has_city_setting:
            overrides = merge_over(overrides, {"cell": {"cityCode": ""}})
        wanted[cell.name] = (needs.replicas if needs.runs_cells else 0, overrides)
    return wanted


def name_arrangement(needs: Needs) -> str:
    """An equal text for scenarios that need equal operators."""
    return str(derive_arrangement(needs))


def can_share(needs: Needs) -> bool:
    """Whether a scenario can run beside others that need equal operators."""
    return not needs.is_alone and not needs.is_single and needs.has_networking
