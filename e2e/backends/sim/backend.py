"""The `Backend` protocol on simulated planes in this process and virtual time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

import orjson

from compute_api_types.wire import JsonObject
from compute_operator_kit.testing.fakes import FakeMetrics
from compute_sim_planes.api_server.http.transport import read_body
from compute_sim_planes.api_server.manifests import apply_manifests
from compute_sim_planes.api_server.plane import Plane
from compute_sim_planes.faults.injection import Injector
from compute_sim_planes.faults.links import Link
from compute_sim_planes.faults.plans import Fault
from compute_sim_planes.history import Commit, History, Request
from compute_sim_planes.karmada.policies.admission import karmada_amendments
from compute_sim_planes.reconcile_trace import ReconcileTrace
from compute_sim_planes.time.clock import VirtualClock
from e2e.backends.sim import blueprints, rights
from e2e.backends.sim.decommissioning import run_decommission
from e2e.backends.sim.diagnosing import run_diagnosis
from e2e.backends.sim.external import SimExternalControllers
from e2e.backends.sim.planes import SimPlanes
from e2e.backends.sim.processes import Process, ProcessContext
from e2e.backends.sim.replicas import SimReplicas
from e2e.backends.sim.webhook import answer_review
from e2e.harness.deploy.shipped import cell_bindings, definitions, external_definitions, manifests
from e2e.oracles.leaks import a_canary_secret
from e2e.world.documents import NETWORK_NAME, a_grant, a_location, a_namespace, a_network
from e2e.world.kinds import Kind
from e2e.world.objects import name_of
from e2e.world.port import (
    HOME,
    HUB,
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

NAMESPACE: Final = "shop"
PROJECTS: Final = ("acme", "beta", "gamma")
WARM_UP: Final = timedelta(seconds=60)
ENGAGED: Final = "compute_projects_engaged"


class SimBackend:
    """See `e2e/world/port.py`."""

    name = "sim"

    def __init__(
        self,
        clock: VirtualClock,
        needs: Needs,
        faults: tuple[Fault, ...] = (),
        *,
        make_measures: Callable[[str], FakeMetrics] = lambda _: FakeMetrics(),
        make_spans: Callable[[History], ReconcileTrace] = ReconcileTrace,
        make_injector: Callable[[tuple[Fault, ...], VirtualClock, History], Injector] = Injector,
    ) -> None:
        self.needs = needs
        self.clock = clock
        self.history = History(clock)
        self.injector = make_injector(faults, clock, self.history)
        self.planes = SimPlanes(clock, self.history)
        self.external = SimExternalControllers(self.planes, clock)
        self._context = ProcessContext(
            self.planes,
            self.injector,
            dict[tuple[str, str], Link](),
            rights.user_of,
            make_measures,
            make_spans,
        )
        operators = (MANAGEMENT, *(cell.name for cell in needs.cells))
        self.replicas = {name: SimReplicas(self._context, needs.replicas) for name in operators}
        self.acts = [clock.now()]
        self.by_hand: set[str] = set()
        self.lost: set[str] = set()
        self._cut_members: set[str] = set()
        projects = (SINGLE.name,) if needs.is_single else PROJECTS[: needs.projects]
        self._places = tuple(ProjectNamespace(project, NAMESPACE) for project in projects)

    @property
    def project_namespaces(self) -> Sequence[ProjectNamespace]:
        return self._places

    # opening and closing -------------------------------------------------------------------------

    async def open(self) -> None:
        """Opens planes with the shipped manifests, projects, external systems and both
        operators.
        """
        if self.needs.is_single:
            await self._open_single()
        else:
            await self._open_federation()
        for cell in self.needs.cells:
            self.external.start_cell(cell, has_networking=self.needs.has_networking)
        await self.start(MANAGEMENT)
        if self.needs.runs_cells:
            for cell in self.needs.cells:
                await self.start(cell.name)
        await self._await_engaged()

    async def _open_single(self) -> None:
        """Opens one plane with everything of `deploy/single-cluster`, and no external systems."""
        plane = await self.planes.add(SINGLE.name, [])
        shipped = manifests("single-cluster")
        # CRDs first: the other manifests are filtered by the kinds that the plane serves.
        kinds = [one for one in shipped if one["kind"] == "CustomResourceDefinition"]
        await self._install(plane, kinds)
        await self._install(plane, [one for one in shipped if one not in kinds])
        for place in self._places:
            await self._create_namespace(place)

    async def _open_federation(self) -> None:
        await self._open_planes()
        for name in (ROOT, *self.planes.planes):
            await self._install(self.planes.at(name), [a_canary_secret("default", name)])
        for place in self._places:
            await self.add_project(place.project)
        self.external.karmada.start()
        for cell in self.needs.cells:
            await self.external.join(cell)

    async def _await_engaged(self) -> None:
        """Waits until management has engaged every project; admission refuses writes before
        that.
        """
        end = self.now() + WARM_UP
        while self.metric(MANAGEMENT, ENGAGED, {}) < len(self._places) * self.needs.replicas:
            if self.now() >= end:
                raise AssertionError(f"management does not engage its projects in {WARM_UP}")
            await self.sleep(timedelta(seconds=1))

    async def _open_planes(self) -> None:
        await self.planes.milo.start()
        root = self.planes.milo.planes.root
        await self._install(root, definitions("networking"))
        await self._install(root, manifests("milo"))
        home = await self.planes.add(HOME, [])
        await self._install(home, manifests("management"))
        amendments = karmada_amendments(self.clock.identities)
        hub = await self.planes.add(HUB, definitions("karmada"), amendments)
        await self._install(hub, manifests("hub"))
        for cell in self.needs.cells:
            await self._install(root, cell_bindings("milo", cell.name, cell.city))
            await self._install(hub, cell_bindings("hub", cell.name, cell.city))
            external = ("networking",) if self.needs.has_networking else ()
            plane = await self.planes.add(cell.name, definitions(*external))
            await self._install(plane, manifests("cell"))
            await self._install(plane, [a_location(cell.city)])

    async def _install(self, plane: Plane, documents: Sequence[JsonObject]) -> None:
        """Applies the documents of kinds that a plain API server serves; Deployments need a
        cluster.
        """
        served = [one for one in documents if self._is_served(plane, one)]
        await apply_manifests(plane.connect(), served)

    def _is_served(self, plane: Plane, document: JsonObject) -> bool:
        kind = str(document["kind"])
        return plane.state.catalog.find_kind(str(document["apiVersion"]), kind) is not None

    async def _create_namespace(self, place: ProjectNamespace) -> None:
        """Creates the scenario's namespace with the fixture's network and the Locations."""
        documents = [
            a_namespace(place.namespace),
            a_network(NETWORK_NAME, place.namespace),
            a_canary_secret(place.namespace, place.project),
        ]
        documents += [a_location(city) for city in sorted({one.city for one in self.needs.cells})]
        await self._install(self.planes.at(place.project), documents)

    async def close(self) -> None:
        for replicas in self.replicas.values():
            await replicas.stop()
        await self.external.close()
        await self.planes.close()

    # time ----------------------------------------------------------------------------------------

    def now(self) -> datetime:
        return self.clock.now()

    async def sleep(self, delay: timedelta) -> None:
        await self.clock.sleep(delay)

    # planes --------------------------------------------------------------------------------------

    async def add_project(self, name: str) -> ProjectNamespace:
        place = ProjectNamespace(name, NAMESPACE)
        await self.planes.add_project(name)
        await self._create_namespace(place)
        return place

    async def send(self, plane: str, user: str, call: PlaneRequest) -> PlaneResponse:
        transport = self.planes.reach(plane, rights.user_named(user))
        if (
            call.method != "GET"
        ):  # reads of a scenario have no effect, so they are no cause of a change
            transport = self.planes.record(transport, plane, user)
        headers = {"Content-Type": call.media, "User-Agent": user}
        body = None if call.body is None else orjson.dumps(call.body)
        answer = await transport.request(call.method, call.target, headers, body)
        raw = await read_body(answer)
        parsed: JsonObject = orjson.loads(raw) if raw.startswith(b"{") else {}
        pause = answer.headers.get("Retry-After")
        return PlaneResponse(
            answer.status,
            parsed,
            timedelta(seconds=float(pause)) if pause else None,
        )

    def audit(self) -> Sequence[AuditedRequest]:
        return [
            AuditedRequest(
                at=one.at,
                user=one.caller.identity,
                agent=one.caller.user_agent,
                plane=one.address.plane,
                verb=one.address.verb,
                group=one.address.group,
                resource=one.address.resource,
                subresource=one.address.subresource,
                namespace=one.address.namespace,
                name=one.address.name,
                status=one.status,
            )
            for one in self.history.of(Request)
        ]

    def leave(self, plane: str, kind: Kind, key: str) -> None:
        self.by_hand.add(f"{plane} {kind.name} {key}")

    def write_off(self, cell: str) -> None:
        self.lost.add(cell)

    def versions(self, plane: str, kind: Kind, namespace: str) -> Sequence[ObjectVersion]:
        return [
            ObjectVersion(one.at, not one.after, orjson.loads(one.after or one.before))
            for one in self.history.of(Commit)
            if (one.plane, one.kind) == (plane, kind.name)
            and (not namespace or not kind.is_namespaced or one.key.startswith(f"{namespace}/"))
        ]

    # operators -----------------------------------------------------------------------------------

    async def start(self, operator: str, settings: JsonObject | None = None) -> None:
        self._act()
        if operator == MANAGEMENT:
            self.replicas[operator].start(blueprints.management(self.needs, settings))
            await self.set_webhook(is_up=True)
        else:
            which = next(cell for cell in self.needs.cells if cell.name == operator)
            self.replicas[operator].start(blueprints.cell(which, self.needs, settings))

    async def stop(self, operator: str) -> None:
        self._act()
        await self.replicas[operator].stop()

    async def kill(self, operator: str) -> None:
        self._act()
        await self.replicas[operator].kill()

    async def freeze_leader(self, operator: str) -> None:
        self._act()
        leader = self.replicas[operator].leader
        if leader is None:
            raise AssertionError(f"no replica of {operator} leads")
        leader.gate.freeze()

    async def thaw(self, operator: str) -> None:
        self._act()
        for process in self.replicas[operator].alive:
            process.gate.thaw()

    def metric(self, operator: str, name: str, labels: Mapping[str, str]) -> float:
        return self.replicas[operator].total(name, labels)

    def calm(self) -> None:
        """Makes a run at rest cheaper: Leases are renewed and members are probed less often."""
        for process in self.processes():
            process.calm()
        self.external.calm()

    def _act(self) -> None:
        """Records the time of a scenario's action that is not a request."""
        self.acts.append(self.now())

    def processes(self) -> Iterator[Process]:
        """Every process since the start of the run."""
        for replicas in self.replicas.values():
            yield from replicas

    # links ---------------------------------------------------------------------------------------

    async def cut(self, operator: str, plane: str) -> None:
        self._act()
        self._context.link(operator, plane).cut()

    async def slow(self, operator: str, plane: str, delay: timedelta) -> None:
        self._act()
        self._context.link(operator, plane).slow(delay)

    async def heal(self, operator: str, plane: str) -> None:
        self._act()
        self._context.link(operator, plane).heal()

    async def cut_member(self, cell: str) -> None:
        self._act()
        self._cut_members.add(cell)
        self.external.karmada.cut(cell)

    async def heal_member(self, cell: str) -> None:
        self._act()
        self._cut_members.discard(cell)
        self.external.karmada.heal(cell)

    # external systems ----------------------------------------------------------------------------

    async def pause_quota(self) -> None:
        self._act()
        self.planes.milo.options.pause()

    async def resume_quota(self) -> None:
        self._act()
        self.planes.milo.options.resume()

    async def set_grant(self, project: str, instances: int) -> None:
        """Replaces the default grant of new projects, so that the limit is exactly `instances`."""
        self._act()
        wanted = a_grant(project, instances)
        await apply_manifests(self.planes.at(project).connect(), [wanted])

    def running(self, cell: str) -> frozenset[str]:
        return frozenset(self.external.providers[cell].pods)

    async def start_autoscalers(self, cell: str) -> None:
        self._act()
        self.external.start_autoscalers(cell)

    def set_load(self, cell: str, deployment: str, replicas: int) -> None:
        self._act()
        self.external.autoscalers[cell].loads[deployment] = replicas

    def set_pod_metrics(self, cell: str, *, is_up: bool) -> None:
        self._act()
        self.external.autoscalers[cell].has_metrics = is_up

    def set_dependencies(self, *, is_on: bool) -> None:
        """The hub gate `PropagateDeps`."""
        self._act()
        self.external.karmada.options.propagates_dependencies = is_on

    async def set_networking(self, cell: str, options: NetworkOptions) -> None:
        self._act()
        self.external.set_networking(cell, options)

    async def install_networking(self, plane: str) -> None:
        self._act()
        at = self.planes.at(plane)
        await apply_manifests(at.connect(), external_definitions("networking"))
        for cell in self.needs.cells:
            if cell.name == plane and plane not in self.external.networks:
                await apply_manifests(at.connect(), [a_location(cell.city)])
                self.external.start_networking(plane)

    async def uninstall_networking(self, plane: str) -> None:
        for crd in external_definitions("networking"):
            await self.remove_definition(plane, name_of(crd))

    async def remove_definition(self, plane: str, name: str) -> None:
        self._act()
        path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"
        answer = await self.planes.at(plane).connect().request("DELETE", path, {}, None)
        await answer.close()

    async def set_webhook(self, *, is_up: bool) -> None:
        self._act()
        address = rights.describe_webhook()
        if is_up:
            replicas = self.replicas[MANAGEMENT]
            self.planes.webhooks.webhooks[address] = lambda review: answer_review(replicas, review)
        else:
            self.planes.webhooks.webhooks.pop(address, None)

    async def decommission(self, *arguments: str) -> CommandResult:
        self._act()
        return await run_decommission(self.planes, *arguments)

    async def diagnose(
        self, words: Sequence[str], contexts: Sequence[str], user: str
    ) -> CommandResult:
        cut = frozenset(self._cut_members)
        return await run_diagnosis(self.planes, words, contexts, user=user, cut_members=cut)
