"""The scenario API: `World` gives planes, users, operators, links, external systems and time.

A scenario is a coroutine over a `World`. It runs unchanged on simulated planes in virtual time, on
real planes, and with the operators as pods; the differences are behind `e2e/world/port.py`:

    @pytest.mark.spec("E-01")
    @scenario()
    async def test_a_deployment_reaches_its_city(world: World) -> None:
        await world.project.create(a_bare_deployment("web"))
        await world.eventually(…)

A check is a coroutine function that asserts. `eventually` repeats it until it holds; on timeout it
fails with the last assertion and the objects of every plane. Scenarios import the API types and
this module only, so that they cannot depend on a backend.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Final, Protocol, TypeAlias, TypeVar

from compute_api_types.wire import JsonObject, JsonValue
from e2e.world.components import add_component, deliver_data
from e2e.world.documents import (
    IMAGE,
    a_bare_deployment,
    a_claim,
    a_hub_instance,
    a_namespace,
    a_placement,
    a_suspension,
    a_template,
    a_workload,
    an_instance,
)
from e2e.world.handles import Limit, Operator, Plane, RefusedError, merge_of, within
from e2e.world.kinds import (
    AUTOSCALER,
    BINDING,
    BUCKET,
    CLAIM,
    CLUSTER,
    CLUSTER_POLICY,
    CONFIG_MAP,
    DEFINITION,
    DEPLOYMENT,
    EVENT,
    INSTANCE,
    LEASE,
    LOCATION,
    NAMESPACE,
    NETWORK,
    NODE,
    POD,
    POLICY,
    PROJECT,
    RESOURCE_BINDING,
    RESOURCE_QUOTA,
    SECRET,
    SUBNET_CLAIM,
    SUSPENSION,
    WORK,
    WORKLOAD,
    Kind,
)
from e2e.world.objects import (
    ConditionView,
    annotations_of,
    condition_of,
    counters_of,
    finalizers_of,
    gates_of,
    generation_of,
    is_deleting,
    labels_of,
    name_of,
    number_at,
    object_at,
    objects_at,
    owners_of,
    text_at,
    texts_at,
    uid_of,
    value_at,
    version_of,
    without_generations,
)
from e2e.world.port import (
    ADMIN,
    DFW,
    DIAGNOSER,
    HOME,
    HUB,
    MANAGEMENT,
    ORD,
    ROOT,
    SINGLE,
    TENANT,
    AuditedRequest,
    Backend,
    Cell,
    CommandResult,
    HasAutoscalers,
    HasPods,
    Needs,
    NetworkOptions,
    ObjectVersion,
    name_provider,
)
from e2e.world.recorded.loading import RecordingLoader, RecordingTargets
from e2e.world.recorded.reading import DELETING, PROJECT_PLANE, RUNNING, read_recording
from e2e.world.recorded.renaming import Renaming

# Everything that scenarios may import.
__all__ = [
    "ADMIN",
    "AUTOSCALER",
    "BINDING",
    "BUCKET",
    "CLAIM",
    "CLUSTER",
    "CLUSTER_POLICY",
    "CONFIG_MAP",
    "DEFINITION",
    "DELETING",
    "DEPLOYMENT",
    "DFW",
    "DIAGNOSER",
    "EVENT",
    "HOME",
    "HUB",
    "IMAGE",
    "INSTANCE",
    "LEASE",
    "LOCATION",
    "MANAGEMENT",
    "NAMESPACE",
    "NETWORK",
    "NODE",
    "ORD",
    "POD",
    "POLICY",
    "PROJECT",
    "RESOURCE_BINDING",
    "RESOURCE_QUOTA",
    "ROOT",
    "RUNNING",
    "SECRET",
    "SINGLE",
    "SUBNET_CLAIM",
    "TENANT",
    "WORK",
    "WORKLOAD",
    "AuditedRequest",
    "Cell",
    "CommandResult",
    "ConditionView",
    "JsonObject",
    "JsonValue",
    "Kind",
    "Limit",
    "Needs",
    "NetworkOptions",
    "ObjectVersion",
    "Operator",
    "Plane",
    "RefusedError",
    "World",
    "a_bare_deployment",
    "a_claim",
    "a_hub_instance",
    "a_namespace",
    "a_placement",
    "a_template",
    "a_workload",
    "add_component",
    "an_instance",
    "annotations_of",
    "condition_of",
    "counters_of",
    "deliver_data",
    "finalizers_of",
    "gates_of",
    "generation_of",
    "is_deleting",
    "labels_of",
    "merge_of",
    "name_of",
    "name_provider",
    "number_at",
    "object_at",
    "objects_at",
    "owners_of",
    "scenario",
    "text_at",
    "texts_at",
    "uid_of",
    "value_at",
    "version_of",
    "within",
    "without_generations",
]

# operations.md 9: "without one it is 30 s (60 s on R for what crosses Karmada)".
USUAL: Final = within(30, real=60)
# Real planes are polled less often, because polling takes CPU time from the operators.
POLL: Final = within(0.1, real=0.4)
CALM: Final = timedelta(seconds=5)
LONGEST_IN_PODS: Final = timedelta(seconds=30)
# Kinds listed in the message of a failure.
SHOWN: Final = (NAMESPACE, WORKLOAD, DEPLOYMENT, INSTANCE, POLICY, CLAIM, BINDING)

_T = TypeVar("_T")
Check: TypeAlias = Callable[[], Awaitable[_T]]


class World:
    """A scenario's access to its backend."""

    def __init__(self, backend: Backend, needs: Needs) -> None:
        self.backend = backend
        self.needs = needs
        self.projects: tuple[Plane, ...] = tuple(
            Plane(backend, place.project, TENANT, place.namespace)
            for place in backend.project_namespaces
        )
        self.root = Plane(backend, ROOT)
        self.home = Plane(backend, HOME)
        self.hub = Plane(backend, HUB)
        self.management = Operator(backend, MANAGEMENT)

    @property
    def pods(self) -> HasPods:
        """Disruptions of pods and nodes, on backends that run operators as pods."""
        if not isinstance(self.backend, HasPods):
            raise LookupError(f"operators are no pods on {self.backend.name!r}")
        return self.backend

    @property
    def autoscalers(self) -> HasAutoscalers:
        """Load and metrics of Pods, on backends where a controller of autoscalers reads them."""
        if not isinstance(self.backend, HasAutoscalers):
            raise LookupError(f"no load can be set on {self.backend.name!r}")
        return self.backend

    @property
    def project(self) -> Plane:
        """The first project plane as its tenant reaches it, in the scenario's namespace."""
        return self.projects[0]

    def cell(self, cell: Cell) -> Plane:
        return Plane(self.backend, cell.name)

    def operator_of(self, cell: Cell) -> Operator:
        return Operator(self.backend, cell.name)

    async def hub_of(self, project: Plane) -> Plane:
        """The hub, in the namespace `ns-<uid>` of a project namespace; it need not exist yet."""
        return self.hub.in_namespace(await self.hub_namespace(project))

    async def cell_of(self, cell: Cell, project: Plane) -> Plane:
        """A cell, in the namespace `ns-<uid>` of a project namespace."""
        return self.cell(cell).in_namespace(await self.hub_namespace(project))

    async def hub_namespace(self, project: Plane) -> str:
        return f"ns-{uid_of(await project.get(NAMESPACE, project.namespace))}"

    async def add_project(self, name: str) -> Plane:
        """Adds a project, waits until it is Ready, and creates the scenario's namespace in it."""
        place = await self.backend.add_project(name)
        return Plane(self.backend, place.project, TENANT, place.namespace)

    # --- time ------------------------------------------------------------------------------------

    async def sleep(
        self, seconds: float, *, real: float | None = None, pods: float | None = None
    ) -> None:
        """Lets time pass; with pods at most `LONGEST_IN_PODS` unless `pods` is given, because the
        long waits are covered by the other backends.
        """
        length = within(seconds, real=real).on(self.backend.name)
        if self.backend.name not in {"sim", "real"}:
            length = min(length, LONGEST_IN_PODS if pods is None else timedelta(seconds=pods))
        await self.backend.sleep(length)

    async def eventually(self, check: Check[_T], limit: Limit = USUAL) -> _T:
        """Repeats the check until it holds and returns its value; raises its last failure on
        timeout.
        """
        allowed = limit.on(self.backend.name)
        end = self.backend.now() + allowed
        while True:
            try:
                return await check()
            except AssertionError as failure:
                last = failure
            if self.backend.now() >= end:
                described = await self.describe()
                raise AssertionError(f"not so after {allowed}: {last}\n{described}") from last
            await self.backend.sleep(POLL.on(self.backend.name))

    async def stays(self, check: Check[object], limit: Limit) -> None:
        """Asserts that the check holds during the whole time."""
        allowed = limit.on(self.backend.name)
        begun = self.backend.now()
        while self.backend.now() <= begun + allowed:
            try:
                await check()
            except AssertionError as failure:
                after = self.backend.now() - begun
                described = await self.describe()
                message = f"no longer so after {after}: {failure}\n{described}"
                raise AssertionError(message) from failure
            await self.backend.sleep(POLL.on(self.backend.name))

    async def settle(self, limit: Limit | None = None) -> None:
        """Waits until no operator has written for five seconds."""
        allowed = limit or within(120, real=240)
        begun = self.backend.now()

        def left() -> timedelta:
            last = max((begun, *(one.at for one in self.writes())))
            return last + CALM - self.backend.now()

        async def is_quiet() -> None:
            await self.backend.sleep(max(left(), timedelta()))
            if left() > timedelta():
                raise AssertionError(f"operators still write: {self.writes()[-3:]}")

        await self.eventually(is_quiet, allowed)

    # --- requests --------------------------------------------------------------------------------

    def requests(
        self, *, by: str = "", plane: str = "", resource: str = "", verb: str = ""
    ) -> list[AuditedRequest]:
        """Requests so far, without Lease renewals."""
        return [
            one
            for one in self.backend.audit()
            if one.resource != "leases"
            and by in {"", one.user}
            and plane in {"", one.plane}
            and resource in {"", one.resource}
            and verb in {"", one.verb}
        ]

    def writes(self, *, by: str = "", plane: str = "", resource: str = "") -> list[AuditedRequest]:
        """Mutating requests so far: of all operators, or of the user or operator `by`."""
        operators = {MANAGEMENT, *(cell.name for cell in self.needs.cells)}
        return [
            one
            for one in self.requests(by=by, plane=plane, resource=resource)
            if one.is_write and (by or one.user in operators)
        ]

    # --- external systems ------------------------------------------------------------------------

    async def cut_off(self, cell: Cell) -> None:
        """Cuts a cell off from hub and projects, and Karmada from the cell."""
        operator = self.operator_of(cell)
        await operator.cut(HUB, *(project.name for project in self.projects))
        await self.backend.cut_member(cell.name)

    async def reconnect(self, cell: Cell) -> None:
        operator = self.operator_of(cell)
        await operator.heal(HUB, *(project.name for project in self.projects))
        await self.backend.heal_member(cell.name)

    async def lose(self, cell: Cell) -> None:
        """Loses a cell permanently: its operator is killed and Karmada is cut off from it."""
        await self.operator_of(cell).kill()
        await self.backend.cut_member(cell.name)
        self.backend.write_off(cell.name)

    async def load_recorded(self, name: str, cell: Cell) -> None:
        """Stops our operators and loads a recorded installation of the Go operators in their place.

        Workloads are created while the management operator still answers admission reviews but is
        cut off from the project, so that it does not reconcile them.
        """
        project = self.project.as_user(ADMIN)
        recording = read_recording(name)
        renaming = Renaming(project.name, project.namespace, cell.city)
        (recorded,) = recording.of(PROJECT_PLANE, NAMESPACE)
        renaming.learn(recorded, await project.get(NAMESPACE, project.namespace))
        places = RecordingTargets(
            project, await self.hub_of(project), await self.cell_of(cell, project)
        )
        loader = RecordingLoader(recording, places, renaming, self.eventually)
        await self.operator_of(cell).stop()
        await self.management.cut(project.name)
        await loader.load_workloads()
        await self.management.stop()
        await self.management.heal(project.name)
        await loader.load()

    async def grant(self, instances: int, *, project: Plane | None = None) -> None:
        """Sets a project's quota to `instances` Instances of the fixture's size."""
        await self.backend.set_grant((project or self.project).name, instances)

    async def suspend(self, project: Plane | None = None) -> None:
        """The platform suspends a project; from then on its plane refuses creates and updates."""
        name = (project or self.project).name
        await self.root.create(a_suspension(name))
        await self.eventually(lambda: self._expect_suspended(name, "True"))

    async def resume(self, project: Plane | None = None) -> None:
        name = (project or self.project).name
        await self.root.delete(SUSPENSION, name)
        await self.eventually(lambda: self._expect_suspended(name, "False"))

    async def _expect_suspended(self, project: str, status: str) -> None:
        shown = condition_of(await self.root.get(PROJECT, project), "Suspended")
        if shown.status != status:
            raise AssertionError(f"Project {project}: Suspended is {shown.status!r}")

    # --- kubectl compute -------------------------------------------------------------------------

    async def compute(
        self, *words: str, contexts: Sequence[str] | None = None, user: str = DIAGNOSER
    ) -> CommandResult:
        """Runs `kubectl compute` in the scenario's namespace of the first project; by default with
        contexts for all planes.
        """
        others = (HUB, *(cell.name for cell in self.needs.cells)) if contexts is None else contexts
        given = (*words, "-n", self.project.namespace)
        return await self.backend.diagnose(given, (self.project.name, *others), user)

    # --- failure messages ------------------------------------------------------------------------

    async def describe(self) -> str:
        """The objects on every plane, for the message of a failure."""
        planes = [cell.name for cell in self.needs.cells]
        if not self.needs.is_single:
            planes = [ROOT, *(one.name for one in self.projects), HUB, *planes]
        own = await self._own_namespaces()

        def is_shown(kind: Kind, document: JsonObject) -> bool:
            is_own = {text_at(document, "metadata", "namespace"), name_of(document)} & own
            return bool(is_own) if not self.needs.is_alone else not _is_usual(kind, document)

        lines: list[str] = []
        for name in planes:
            plane = Plane(self.backend, name)
            for kind in SHOWN:
                listed = await plane.list(kind, everywhere=True)
                lines += [f"  {name}: {_shown(kind, one)}" for one in listed if is_shown(kind, one)]
        return "\n".join(("the planes hold", *lines))

    async def _own_namespaces(self) -> set[str]:
        """Namespaces of this scenario; other scenarios may share the planes."""
        own = {project.namespace for project in self.projects}
        for project in self.projects:
            with suppress(AssertionError):  # the namespace is gone, perhaps with its project
                own.add(await self.hub_namespace(project))
        return own


def _is_usual(kind: Kind, document: JsonObject) -> bool:
    """Whether it is a namespace that every plane has."""
    usual = ("kube-", "default", "karmada-", "milo-", "compute-system")
    return kind is NAMESPACE and name_of(document).startswith(usual)


def _shown(kind: Kind, document: JsonObject) -> str:
    conditions = ", ".join(
        f"{text_at(one, 'type')}={text_at(one, 'status')}/{text_at(one, 'reason')}"
        for one in objects_at(document, "status", "conditions")
    )
    where = text_at(document, "metadata", "namespace")
    gates = f" gates={gates_of(document)}" if kind is INSTANCE else ""
    going = " (deleting)" if is_deleting(document) else ""
    return f"{kind.name} {where}/{name_of(document)}{going}{gates} {conditions}"


# --- scenarios ------------------------------------------------------------------------------------

Body: TypeAlias = Callable[[World], Coroutine[object, object, None]]


class ScenarioScheduler(Protocol):
    """Runs scenarios; a fixture provides the one chosen by `--planes`."""

    def run(
        self, name: str, needs: Needs, body: Callable[[Backend], Coroutine[object, object, None]]
    ) -> None: ...


def scenario(needs: Needs | None = None) -> Callable[[Body], Callable[[ScenarioScheduler], None]]:
    """Decorator that makes a pytest test of a scenario with these requirements."""
    wanted = needs or Needs()

    def decorate(body: Body) -> Callable[[ScenarioScheduler], None]:
        def test(scheduler: ScenarioScheduler) -> None:
            scheduler.run(body.__name__, wanted, lambda backend: body(World(backend, wanted)))

        # Not `functools.wraps`: pytest would follow it and require a fixture `world`.
        test.__name__, test.__doc__ = body.__name__, body.__doc__
        test.__qualname__, test.__module__ = body.__qualname__, body.__module__
        return test

    return decorate
