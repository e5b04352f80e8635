"""A topology of real planes that runs as long as a block of code.

`async with RealPlanes(FULL) as planes:` starts etcd, the API servers, Karmada and the members, and
ends every process with the block. It does not depend on an event loop: it may be started in one
loop and used from others. All files are in its run folder, which is removed at a clean end; after a
failure the logs stay, and the error names them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from compute_sim_planes.json_types import JsonObject
from e2e.harness.access.certificates import write_private
from e2e.harness.access.kubeconfig import Context, render_kubeconfig
from e2e.harness.access.waiting import NOT_YET, side_by_side
from e2e.harness.errors import PlanesError, ProcessDiedError
from e2e.harness.node.nodes import Nodes
from e2e.harness.planes import flags, plane_manifests
from e2e.harness.planes.identities import ADMIN, Identity, Tokens, identities_of
from e2e.harness.planes.node_slot import NodeSlot
from e2e.harness.planes.pki import write_pki
from e2e.harness.planes.plane import RealPlane, install_crds, prepare_plane, trust_issuer
from e2e.harness.planes.stack_runtime import StackRuntime
from e2e.harness.planes.topology import FULL, PlaneSpec, Rates, Role, Topology
from e2e.harness.processes import probes
from e2e.harness.processes.links import Link
from e2e.harness.processes.ports import LOOPBACK, Ports
from e2e.harness.processes.process import ManagedProcess
from e2e.harness.processes.run_folder import RunFolder
from e2e.harness.programs.binaries import NODES, PLANES
from e2e.harness.programs.build import Programs, find_programs
from e2e.harness.programs.store import Store
from e2e.harness.stack.clusters import ClusterProvider
from e2e.harness.stack.control_server import ControlServer
from e2e.harness.stack.hub import HubKarmada, join, prepare_karmada
from e2e.harness.stack.kubectl import Kubectl
from e2e.harness.stack.milo import Milo, a_project_named, prepare_milo
from e2e.harness.stack.project_servers import ProjectServers

WATCH: Final = timedelta(milliseconds=200)
MILO_SYSTEM: Final = "milo-system"


@dataclass(frozen=True, slots=True)
class Options:
    """How a stack is run; the defaults are those of the tests."""

    rates: Rates = Rates.QUICK
    address: str = LOOPBACK
    # Planes that run pods; all planes then listen where pods reach them (in-cluster.md 1).
    nodes: Nodes | None = None
    # Provider of external clusters, which also determines the address of all planes.
    clusters: ClusterProvider | None = None
    # The plane with the ServiceAccounts that hub and Milo trust.
    issuer: str = ""
    # In addition to those of the topology.
    identities: tuple[Identity, ...] = ()
    # On every plane before any controller starts: Karmada and the garbage collector discover later
    # kinds only after up to 30 s.
    crds: tuple[JsonObject, ...] = ()
    # The API servers' audit policy; empty for metadata of all requests.
    audit_policy: str = ""
    folder: Path | None = None
    keep_folder: bool = False


@dataclass(frozen=True, slots=True)
class _Prepared:
    """Everything that is known before the first process starts."""

    runtime: StackRuntime
    etcd: ManagedProcess
    planes: dict[str, RealPlane]
    karmada: HubKarmada | None
    milo: Milo | None
    control_server: ControlServer | None


class RealPlanes:
    """A running topology."""

    def __init__(
        self,
        topology: Topology = FULL,
        options: Options | None = None,
        store: Store | None = None,
    ) -> None:
        self.topology = topology
        self.took = timedelta()
        self._options = options or Options()
        self._store = store or Store.of_user()
        self._prepared: _Prepared | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop(failure=error)

    # --- life cycle

    async def start(self) -> None:
        began = time.monotonic()
        # Before any folder exists, so that a missing program leaves nothing behind.
        wanted = (*PLANES, *(NODES if self._options.nodes else ()))
        programs = find_programs(wanted, self._store)
        run = RunFolder.create(self._options.folder, is_for_nodes=self._options.nodes is not None)
        ports = Ports(self._reserve_address(run))
        try:
            await self._start(run, ports, programs)
        except BaseException as failure:
            # A cancelled start must not leave processes.
            await self._take_down(run, ports, failure)
            raise
        self.took = timedelta(seconds=time.monotonic() - began)

    def _reserve_address(self, run: RunFolder) -> str:
        """The address of the stack, determined by nodes or clusters if there are any."""
        room = self._options.nodes or self._options.clusters
        if room is None:
            return self._options.address
        try:
            return room.reserve(run)
        except BaseException:
            run.remove(keep_logs=False)
            raise

    async def _start(self, run: RunFolder, ports: Ports, programs: Programs) -> None:
        nodes = self._options.nodes
        slots = nodes.slots if nodes else dict[str, NodeSlot]()
        try:
            if self._options.audit_policy:
                run.audit_policy.write_text(self._options.audit_policy, "utf-8")
            settings = flags.StackSettings(run, ports.address, ports.reserve())
            tokens = Tokens(self.topology.names, self._identities())
            services = [slot.api_address for slot in slots.values()]
            pki = write_pki(run, ports.address, datetime.now(UTC), services=services)
            runtime = StackRuntime(
                settings, programs, ports, pki, tokens, slots=slots, issuer=self._options.issuer
            )
            self._prepared = self._prepare(runtime)
            self._write_contexts()
            await self._bring_up(self._prepared)
        except NOT_YET as cause:
            # A full disk or a plane that fails: the error of an exited process explains more.
            if self._prepared:
                self._prepared.runtime.check()
            raise PlanesError(
                f"bringing planes up: {cause}", remedy="look into the logs of the run folder"
            ) from cause

    async def stop(self, *, failure: BaseException | None = None) -> None:
        if self._prepared:
            runtime = self._prepared.runtime
            await self._take_down(runtime.settings.run, runtime.ports, failure)

    def _identities(self) -> tuple[Identity, ...]:
        nodes = self._options.nodes.identities if self._options.nodes else ()
        return (*identities_of(self.topology), *self._options.identities, *nodes)

    def _prepare(self, runtime: StackRuntime) -> _Prepared:
        etcd = runtime.add(
            "etcd",
            "etcd",
            flags.etcd(runtime.settings, runtime.ports.reserve()),
            probes.http_answers(f"{runtime.settings.etcd_url}/readyz"),
        )
        root_port = runtime.ports.reserve() if self.topology.root else None
        planes = {
            spec.name: self._prepare_plane(spec, runtime, root_port)
            for spec in self.topology.planes
        }
        hub = self.topology.hub
        karmada = None
        if self._options.nodes:
            for plane in planes.values():
                self._options.nodes.prepare(plane)
        if hub and runtime.issuer:
            trust_issuer(planes[hub.name], planes[runtime.issuer])
        if hub:
            karmada = self._prepare_karmada(planes[hub.name])
        milo, control_server = None, None
        if self.topology.root:
            root = planes[self.topology.root.name]
            servers = ProjectServers(root, planes, self._write_contexts)
            control_server = ControlServer(
                runtime.settings.address, runtime.ports.reserve(), servers.carry_out
            )
            milo = prepare_milo(root, planes, control_server)
        return _Prepared(runtime, etcd, planes, karmada, milo, control_server)

    def _prepare_plane(
        self, spec: PlaneSpec, runtime: StackRuntime, root_port: int | None
    ) -> RealPlane:
        clusters = self._options.clusters
        made = clusters.prepare(spec, runtime) if clusters else None
        return made or prepare_plane(spec, runtime, root_port)

    def _prepare_karmada(self, hub: RealPlane) -> HubKarmada:
        rates = self._options.rates
        if self._options.clusters:
            return self._options.clusters.prepare_karmada(hub, rates)
        return prepare_karmada(hub, plane_manifests.find_karmada_manifests(self._store), rates)

    def _contexts(self, prepared: _Prepared) -> list[Context]:
        contexts = [plane.context() for plane in tuple(prepared.planes.values())]
        return contexts + (prepared.milo.contexts() if prepared.milo else [])

    def _write_contexts(self) -> None:
        """Rewrites the kubeconfig atomically, since it may be read meanwhile."""
        if prepared := self._prepared:
            run = prepared.runtime.settings.run
            beside = run.path / "kubeconfig.new"
            write_private(beside, render_kubeconfig(self._contexts(prepared)).encode())
            beside.replace(run.kubeconfig)

    async def _bring_up(self, prepared: _Prepared) -> None:
        await prepared.etcd.up()
        await side_by_side(
            self._bring_up_plane(plane, prepared.karmada) for plane in prepared.planes.values()
        )
        await side_by_side((self._bring_up_milo(prepared), self.join_cells()))

    async def _bring_up_milo(self, prepared: _Prepared) -> None:
        milo = prepared.milo
        if milo is None or prepared.control_server is None:
            return
        prepared.control_server.start()
        async with milo.root.client() as root:
            for plane in milo.projects:
                await root.apply(a_project_named(plane.name))
        await side_by_side((milo.gateway.up(), milo.controllers.up()))

    async def _bring_up_plane(self, plane: RealPlane, karmada: HubKarmada | None) -> None:
        await plane.api_server.up()
        async with plane.client() as client:
            crds = plane_manifests.select_crds(plane_manifests.read_crds(), plane.spec.role)
            await install_crds(client, (*crds, *self._options.crds), plane.runtime)
            if plane.spec.role is Role.ROOT:
                await client.apply(plane_manifests.a_namespace(MILO_SYSTEM))
            if karmada and plane is karmada.hub:
                await karmada.bring_up(client)
        await plane.controller_manager.up()
        if self._options.nodes:
            await self._options.nodes.up(plane)

    async def _take_down(self, run: RunFolder, ports: Ports, failure: BaseException | None) -> None:
        prepared, self._prepared = self._prepared, None
        if prepared and prepared.control_server:
            # First, so that no plane is started any more.
            prepared.control_server.stop()
        processes = list(prepared.runtime.processes) if prepared else []
        # Killed: nothing that they would save outlives the run folder.
        await asyncio.gather(*(process.crash() for process in processes))
        ports.close()
        if self._options.nodes:
            await self._options.nodes.release()
        if self._options.clusters:
            await self._options.clusters.release()
        if not self._options.keep_folder:
            run.remove(keep_logs=failure is not None)
        if failure is not None and run.path.exists():
            failure.add_note(f"the logs of all processes are in {run.path}")

    # --- use

    @property
    def _running(self) -> _Prepared:
        if self._prepared is None:
            raise PlanesError("using real planes: they are not up", remedy="use `async with`")
        return self._prepared

    def plane(self, name: str) -> RealPlane:
        return self._running.planes[name]

    @property
    def planes(self) -> tuple[RealPlane, ...]:
        return tuple(self._running.planes.values())

    @property
    def karmada(self) -> HubKarmada:
        if self._running.karmada is None:
            raise PlanesError("using Karmada: this topology has no hub", remedy="choose another")
        return self._running.karmada

    @property
    def milo(self) -> Milo:
        if self._running.milo is None:
            raise PlanesError("using Milo: this topology has no root", remedy="choose another")
        return self._running.milo

    @property
    def etcd(self) -> ManagedProcess:
        return self._running.etcd

    @property
    def processes(self) -> list[ManagedProcess]:
        return list(self._running.runtime.processes)

    @property
    def run_folder(self) -> RunFolder:
        return self._running.runtime.settings.run

    @property
    def contexts(self) -> tuple[str, ...]:
        """The contexts of the kubeconfig: every plane, and Milo's planes through the gateway."""
        return tuple(context.name for context in self._contexts(self._running))

    @property
    def kubeconfig(self) -> Path:
        """All contexts, as administrator."""
        return self.run_folder.kubeconfig

    def write_kubeconfig(
        self, plane: str, *, user: str = ADMIN.user, through: Link | None = None
    ) -> Path:
        """A kubeconfig for one user on one plane, optionally through a fault link."""
        server_plane = self.plane(plane)
        runtime = server_plane.runtime
        server = f"https://{through.address}:{through.port}" if through else server_plane.server
        context = Context(plane, server, runtime.pki.authority, runtime.tokens.of(plane, user))
        name = f"{user.replace(':', '.')}{f'.{through.port}' if through else ''}.kubeconfig"
        return self.run_folder.write_for_plane(plane, name, render_kubeconfig([context]))

    async def join_cells(self) -> None:
        """Makes every cell a Ready member with its city, also after it was removed."""
        karmada = self._running.karmada
        if karmada is None:
            return
        cells = [plane for plane in self.planes if plane.spec.role is Role.CELL]
        async with karmada.hub.client() as client:
            await side_by_side(join(cell, karmada, client) for cell in cells)

    async def kubectl(self, *arguments: str, stdin: str = "") -> str:
        """The output of kubectl with the stack's kubeconfig; raises if it fails."""
        kubectl = Kubectl(
            self._running.runtime.programs["kubectl"], self.kubeconfig, self.run_folder
        )
        return await kubectl.run(*arguments, stdin=stdin)

    def link(self, plane: str) -> Link:
        """A fault link to the plane's API server; a context manager."""
        server_plane = self.plane(plane)
        address = server_plane.runtime.settings.address
        return Link(
            address, server_plane.port, address=address, restart=server_plane.api_server.restart
        )

    def check(self) -> None:
        """Raises with the name of a process that ended unexpectedly."""
        self._running.runtime.check()

    @asynccontextmanager
    async def guard(self) -> AsyncGenerator[None]:
        """Cancels the block and raises if a process ends, so that no test waits for a dead
        plane.
        """
        body = asyncio.current_task()
        deaths: list[ProcessDiedError] = []

        async def watch() -> None:
            while not deaths:
                try:
                    self.check()
                except ProcessDiedError as death:
                    deaths.append(death)
                    if body:
                        body.cancel()
                await asyncio.sleep(WATCH.total_seconds())

        watcher = asyncio.create_task(watch())
        try:
            yield
            self.check()
        except asyncio.CancelledError:
            # Our own cancellation is cleared, unless the block was also cancelled from outside.
            if not deaths or (body and body.uncancel() > 0):
                raise
            raise deaths[0] from None
        finally:
            watcher.cancel()
            await asyncio.wait([watcher])

    def rss(self) -> int:
        """Resident bytes of all processes."""
        return sum(process.rss() for process in self.processes)
