"""A topology of real planes, up for as long as a block of code runs.

`async with RealPlanes(FULL) as planes:` starts etcd, the API servers, Karmada and the members, and
ends every process when the block ends. Nothing in it belongs to an event loop: it may be started in
one loop and used from others. All it writes lies in its run folder, which is removed at a clean
end; after a failure the logs stay, and the error names them.
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
from e2e.planes import flags, manifests, probes
from e2e.planes.binaries import NODES, PLANES
from e2e.planes.build import Programs, find_programs
from e2e.planes.certificates import write_private
from e2e.planes.clusters import Clusters
from e2e.planes.ear import Ear
from e2e.planes.errors import PlanesError, ProcessDiedError
from e2e.planes.hub import OnHub, join, prepare_karmada
from e2e.planes.identities import ADMIN, Identity, Tokens, identities_of
from e2e.planes.kubeconfig import Context, render_kubeconfig
from e2e.planes.kubectl import Kubectl
from e2e.planes.links import Link
from e2e.planes.milo import Milo, a_project_named, prepare_milo
from e2e.planes.node.nodes import Nodes
from e2e.planes.node.slot import Slot
from e2e.planes.pki import write_pki
from e2e.planes.plane import Plane, install_crds, let_believe, prepare_plane
from e2e.planes.ports import LOOPBACK, Ports
from e2e.planes.process import ManagedProcess
from e2e.planes.projects import ProjectServers
from e2e.planes.run_folder import RunFolder
from e2e.planes.site import Site
from e2e.planes.store import Store
from e2e.planes.topology import FULL, PlaneSpec, Rates, Role, Topology
from e2e.planes.waiting import NOT_YET, side_by_side

WATCH: Final = timedelta(milliseconds=200)
MILO_SYSTEM: Final = "milo-system"


@dataclass(frozen=True, slots=True)
class Options:
    """How a stack is run; the defaults are those of the tests."""

    rates: Rates = Rates.QUICK
    address: str = LOOPBACK
    # Planes that run pods; all then listen where pods reach them (in-cluster.md 1).
    nodes: Nodes | None = None
    # Planes that are made by others; they say then where all planes listen.
    clusters: Clusters | None = None
    # The plane whose ServiceAccounts hub and Milo believe.
    issuer: str = ""
    # Beside those of the topology.
    identities: tuple[Identity, ...] = ()
    # On every plane and before any controller starts: a kind that comes later is noticed by
    # Karmada and by the garbage collector only after up to 30 s.
    crds: tuple[JsonObject, ...] = ()
    # What API servers write down of requests; metadata of all of them where this is empty.
    audit_policy: str = ""
    folder: Path | None = None
    keep_folder: bool = False


@dataclass(frozen=True, slots=True)
class _Prepared:
    """Everything that is known before the first process starts."""

    site: Site
    etcd: ManagedProcess
    planes: dict[str, Plane]
    karmada: OnHub | None
    milo: Milo | None
    ear: Ear | None


class RealPlanes:
    """A running topology; see the module."""

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

    # --- life

    async def start(self) -> None:
        began = time.monotonic()
        # Before any folder exists: what is missing now leaves nothing behind.
        wanted = (*PLANES, *(NODES if self._options.nodes else ()))
        programs = find_programs(wanted, self._store)
        run = RunFolder.create(self._options.folder, is_for_nodes=self._options.nodes is not None)
        ports = Ports(self._take_room(run))
        try:
            await self._start(run, ports, programs)
        except BaseException as failure:
            # A cancelled start is an ended one: processes must not outlive it.
            await self._take_down(run, ports, failure)
            raise
        self.took = timedelta(seconds=time.monotonic() - began)

    def _take_room(self, run: RunFolder) -> str:
        """The address of the stack, which is for nodes or clusters to say where there are some."""
        room = self._options.nodes or self._options.clusters
        if room is None:
            return self._options.address
        try:
            return room.take_room(run)
        except BaseException:
            run.remove(keep_logs=False)
            raise

    async def _start(self, run: RunFolder, ports: Ports, programs: Programs) -> None:
        nodes = self._options.nodes
        slots = nodes.slots if nodes else dict[str, Slot]()
        try:
            if self._options.audit_policy:
                run.audit_policy.write_text(self._options.audit_policy, "utf-8")
            ground = flags.Ground(run, ports.address, ports.reserve())
            tokens = Tokens(self.topology.names, self._identities())
            services = [slot.api_address for slot in slots.values()]
            pki = write_pki(run, ports.address, datetime.now(UTC), services=services)
            site = Site(
                ground, programs, ports, pki, tokens, slots=slots, issuer=self._options.issuer
            )
            self._prepared = self._prepare(site)
            self._write_contexts()
            await self._bring_up(self._prepared)
        except NOT_YET as cause:
            # A full disk, or a plane that refuses or is gone: a dead process says more than that.
            if self._prepared:
                self._prepared.site.check()
            raise PlanesError(
                f"bringing planes up: {cause}", remedy="look into the logs of the run folder"
            ) from cause

    async def stop(self, *, failure: BaseException | None = None) -> None:
        if self._prepared:
            site = self._prepared.site
            await self._take_down(site.ground.run, site.ports, failure)

    def _identities(self) -> tuple[Identity, ...]:
        nodes = self._options.nodes.identities if self._options.nodes else ()
        return (*identities_of(self.topology), *self._options.identities, *nodes)

    def _prepare(self, site: Site) -> _Prepared:
        etcd = site.add(
            "etcd",
            "etcd",
            flags.etcd(site.ground, site.ports.reserve()),
            probes.http_answers(f"{site.ground.etcd_url}/readyz"),
        )
        root_port = site.ports.reserve() if self.topology.root else None
        planes = {
            spec.name: self._prepare_plane(spec, site, root_port) for spec in self.topology.planes
        }
        hub = self.topology.hub
        karmada = None
        if self._options.nodes:
            for plane in planes.values():
                self._options.nodes.prepare(plane)
        if hub and site.issuer:
            let_believe(planes[hub.name], planes[site.issuer])
        if hub:
            karmada = self._prepare_karmada(planes[hub.name])
        milo, ear = None, None
        if self.topology.root:
            root = planes[self.topology.root.name]
            servers = ProjectServers(root, planes, self._write_contexts)
            ear = Ear(site.ground.address, site.ports.reserve(), servers.carry_out)
            milo = prepare_milo(root, planes, ear)
        return _Prepared(site, etcd, planes, karmada, milo, ear)

    def _prepare_plane(self, spec: PlaneSpec, site: Site, root_port: int | None) -> Plane:
        clusters = self._options.clusters
        made = clusters.prepare(spec, site) if clusters else None
        return made or prepare_plane(spec, site, root_port)

    def _prepare_karmada(self, hub: Plane) -> OnHub:
        rates = self._options.rates
        if self._options.clusters:
            return self._options.clusters.prepare_karmada(hub, rates)
        return prepare_karmada(hub, manifests.find_karmada_manifests(self._store), rates)

    def _contexts(self, prepared: _Prepared) -> list[Context]:
        contexts = [plane.context() for plane in tuple(prepared.planes.values())]
        return contexts + (prepared.milo.contexts() if prepared.milo else [])

    def _write_contexts(self) -> None:
        """Writes the kubeconfig anew, as a whole: somebody may be reading it."""
        if prepared := self._prepared:
            run = prepared.site.ground.run
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
        if milo is None or prepared.ear is None:
            return
        prepared.ear.start()
        async with milo.root.client() as root:
            for plane in milo.projects:
                await root.apply(a_project_named(plane.name))
        await side_by_side((milo.gateway.up(), milo.controllers.up()))

    async def _bring_up_plane(self, plane: Plane, karmada: OnHub | None) -> None:
        await plane.api_server.up()
        async with plane.client() as client:
            crds = manifests.select_crds(manifests.read_crds(), plane.spec.role)
            await install_crds(client, (*crds, *self._options.crds), plane.site)
            if plane.spec.role is Role.ROOT:
                await client.apply(manifests.a_namespace(MILO_SYSTEM))
            if karmada and plane is karmada.hub:
                await karmada.bring_up(client)
        await plane.controller_manager.up()
        if self._options.nodes:
            await self._options.nodes.up(plane)

    async def _take_down(self, run: RunFolder, ports: Ports, failure: BaseException | None) -> None:
        prepared, self._prepared = self._prepared, None
        if prepared and prepared.ear:
            # First: nothing begins any more.
            prepared.ear.stop()
        processes = list(prepared.site.processes) if prepared else []
        # Killed, not asked: nothing of what they would save outlives the run folder.
        await asyncio.gather(*(process.crash() for process in processes))
        ports.close()
        if self._options.nodes:
            await self._options.nodes.give_room_back()
        if self._options.clusters:
            await self._options.clusters.give_room_back()
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

    def plane(self, name: str) -> Plane:
        return self._running.planes[name]

    @property
    def planes(self) -> tuple[Plane, ...]:
        return tuple(self._running.planes.values())

    @property
    def karmada(self) -> OnHub:
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
        return list(self._running.site.processes)

    @property
    def run_folder(self) -> RunFolder:
        return self._running.site.ground.run

    @property
    def contexts(self) -> tuple[str, ...]:
        """What the kubeconfig offers: every plane, and Milo's planes through the gateway."""
        return tuple(context.name for context in self._contexts(self._running))

    @property
    def kubeconfig(self) -> Path:
        """All contexts, as administrator."""
        return self.run_folder.kubeconfig

    def write_kubeconfig(
        self, plane: str, *, user: str = ADMIN.user, through: Link | None = None
    ) -> Path:
        """A kubeconfig for one user on one plane, on request through a fault link."""
        found = self.plane(plane)
        site = found.site
        server = f"https://{through.address}:{through.port}" if through else found.server
        context = Context(plane, server, site.pki.authority, site.tokens.of(plane, user))
        name = f"{user.replace(':', '.')}{f'.{through.port}' if through else ''}.kubeconfig"
        return self.run_folder.write_for_plane(plane, name, render_kubeconfig([context]))

    async def join_cells(self) -> None:
        """Makes every cell a Ready member with its city, also where it is none any more."""
        karmada = self._running.karmada
        if karmada is None:
            return
        cells = [plane for plane in self.planes if plane.spec.role is Role.CELL]
        async with karmada.hub.client() as client:
            await side_by_side(join(cell, karmada, client) for cell in cells)

    async def kubectl(self, *arguments: str, stdin: str = "") -> str:
        """What kubectl says, run with the printed kubeconfig; raises when it fails."""
        kubectl = Kubectl(self._running.site.programs["kubectl"], self.kubeconfig, self.run_folder)
        return await kubectl.run(*arguments, stdin=stdin)

    def link(self, plane: str) -> Link:
        """A link to the plane's API server that a test can spoil; it is a context manager."""
        found = self.plane(plane)
        address = found.site.ground.address
        return Link(address, found.port, address=address, restart=found.api_server.restart)

    def check(self) -> None:
        """Raises when a process died that nobody ended, and names it."""
        self._running.site.check()

    @asynccontextmanager
    async def guard(self) -> AsyncGenerator[None]:
        """Ends the block, naming the process, when one dies: no test waits for a dead plane."""
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
            # Ours, unless somebody else cancelled the block too: then it stays cancelled.
            if not deaths or (body and body.uncancel() > 0):
                raise
            raise deaths[0] from None
        finally:
            watcher.cancel()
            await asyncio.wait([watcher])

    def rss(self) -> int:
        """Resident bytes of all processes together."""
        return sum(process.rss() for process in self.processes)
