"""Scenarios of the fault sweep: short stories with a goal per step, in two sizes.

A step begins only when the goal of the former is reached, however long a fault delays it:
otherwise two runs of one story would differ by timing, and the end state would show nothing. The
requests of users are repeated while they are refused, as a user does while admission restarts.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeAlias

from compute_api_types import labels
from compute_api_types.wire import JsonObject
from e2e.world.components import add_component, deliver_data, restart
from e2e.world.documents import (
    a_bare_deployment,
    a_config_map,
    a_placement,
    a_secret,
    a_suspension,
    a_template,
    a_workload,
)
from e2e.world.handles import Limit, Plane, within
from e2e.world.kinds import (
    AUTOSCALER,
    CLAIM,
    CLUSTER,
    DEPLOYMENT,
    INSTANCE,
    NAMESPACE,
    PROJECT,
    SUSPENSION,
    WORKLOAD,
)
from e2e.world.objects import (
    condition_of,
    gates_of,
    labels_of,
    name_of,
    object_at,
    objects_at,
    uid_of,
)
from e2e.world.port import DFW, ORD, Backend, Cell, Needs
from e2e.world.recorded.reading import RUNNING
from e2e.world.scenario import World

GOAL: Final = within(600)  # beyond every back-off; a goal that is reached later is never reached
PLACEMENT: Final = "default"
DATA_NAME: Final = "settings"  # of the ConfigMap and the Secret
CPU: Final[JsonObject] = {"name": "cpu", "target": {"averageUtilization": 60}}
RECORDED_INSTANCES: Final = 11  # of the recorded installation, which uses all of its quota
DENIED_CLAIM: Final = "instance-extra-p-dfw-1"  # the twelfth of them
CELLS: Final[Mapping[str, Cell]] = {cell.city: cell for cell in (DFW, ORD)}


@dataclass(frozen=True, slots=True)
class Size:
    """Workloads (each in a project of its own), cities and replicas of a scenario."""

    workloads: int
    cities: tuple[str, ...]
    replicas: int

    @property
    def title(self) -> str:
        return f"{self.workloads}x{len(self.cities)}x{self.replicas}"


SMALL: Final = Size(1, ("DFW",), 1)
LARGE: Final = Size(2, ("DFW", "ORD"), 3)


@dataclass(frozen=True, slots=True)
class Desired:
    """What a Workload is to come to."""

    cities: tuple[str, ...]
    replicas: int
    tag: str = "1.0"


class SweptWorld:
    """A world with the Workloads of a scenario, one per project."""

    def __init__(
        self, world: World, size: Size, on_change: Callable[[], None] = lambda: None
    ) -> None:
        self.world = world
        self.size = size
        self.projects = world.projects[: size.workloads]
        self._on_change = on_change

    def begin_change(self) -> None:
        """What came before is the scenario `create`, and is swept there."""
        self._on_change()

    @property
    def desired(self) -> Desired:
        return Desired(self.size.cities, self.size.replicas)

    @property
    def first_names(self) -> list[str]:
        """The first Instance of each city: the next one waits until it is ready."""
        return sorted(names_of(Desired(self.size.cities, 1)))

    async def until(self, goal: Callable[[], Awaitable[object]], limit: Limit = GOAL) -> None:
        await self.world.eventually(goal, limit)

    async def create(self) -> None:
        for project in self.projects:
            placed = a_placement(PLACEMENT, *self.size.cities, replicas=self.size.replicas)
            wanted = a_workload("web", placed)
            await self.until(partial(project.create, wanted))

    async def change(self, change: JsonObject) -> None:
        for project in self.projects:
            await self.until(partial(project.patch, WORKLOAD, "web", change))

    async def runs(self, desired: Desired) -> None:
        """Waits until every Workload runs exactly what is desired, on every plane."""
        for project in self.projects:
            await self.until(partial(self._is_running, project, desired))

    async def _is_running(self, project: Plane, desired: Desired) -> None:
        names = sorted(names_of(desired))
        assert await project.names(INSTANCE) == names, await project.names(INSTANCE)
        assert await project.names(CLAIM) == [f"instance-{name}" for name in names]
        hub = await self.world.hub_of(project)
        assert await hub.names(INSTANCE) == names
        for plane in (project, hub):
            for one in await plane.list(INSTANCE):
                _check_instance(one, desired.tag)
        for city, cell in CELLS.items():
            if cell not in self.world.needs.cells:
                continue
            here = [name for name in names if name.startswith(f"web-{PLACEMENT}-{city.lower()}-")]
            at = await self.world.cell_of(cell, project)
            assert await at.names(INSTANCE) == here, cell.name
            for one in await at.list(INSTANCE):
                _check_instance(one, desired.tag)

    async def gone(self) -> None:
        for project in self.projects:
            await self.until(partial(self._is_gone, project))

    async def _is_gone(self, project: Plane) -> None:
        for kind in (WORKLOAD, DEPLOYMENT, INSTANCE, CLAIM):
            assert await project.names(kind) == [], kind.name
        planes = [await self.world.hub_of(project)]
        planes += [await self.world.cell_of(cell, project) for cell in self.world.needs.cells]
        for plane in planes:
            for kind in (DEPLOYMENT, INSTANCE):
                assert await plane.names(kind) == [], f"{kind.name} on {plane.name}"


def names_of(desired: Desired) -> Iterator[str]:
    for city in desired.cities:
        for ordinal in range(desired.replicas):
            yield f"web-{PLACEMENT}-{city.lower()}-{ordinal}"


def _check_instance(instance: JsonObject, tag: str) -> None:
    name = name_of(instance)
    assert gates_of(instance) == [], name
    assert condition_of(instance, "Ready").status == "True", name
    assert f":{tag}'" in str(instance), name


# --- the stories ----------------------------------------------------------------------------------


async def create(story: SweptWorld) -> None:
    await story.create()
    await story.runs(story.desired)


async def scale(story: SweptWorld) -> None:
    await create(story)
    story.begin_change()
    for replicas in (story.size.replicas + 1, story.size.replicas):
        await story.change(_placed(story.size.cities, replicas))
        await story.runs(Desired(story.size.cities, replicas))


async def roll(story: SweptWorld) -> None:
    await create(story)
    story.begin_change()
    await story.change({"spec": {"template": a_template("2.0")}})
    await story.runs(Desired(story.size.cities, story.size.replicas, "2.0"))


async def edit(story: SweptWorld) -> None:
    """A second edit while the first still rolls out. How many Instances the first one replaces
    depends on what delays the second, so O2 does not apply (`UNPACED`).
    """
    await create(story)
    story.begin_change()
    await story.change({"spec": {"template": a_template("2.0")}})
    placed = [a_placement(PLACEMENT, *story.size.cities, replicas=story.size.replicas + 1)]
    await story.change({"spec": {"template": a_template("3.0"), "placements": [*placed]}})
    await story.runs(Desired(story.size.cities, story.size.replicas + 1, "3.0"))


async def move_city(story: SweptWorld) -> None:
    await create(story)
    story.begin_change()
    await story.change(_placed(("ORD",), story.size.replicas))
    await story.runs(Desired(("ORD",), story.size.replicas))
    await story.until(lambda: _has_no_namespace_leftovers(story))


async def delete(story: SweptWorld) -> None:
    await create(story)
    story.begin_change()
    for project in story.projects:
        await story.until(partial(project.delete, WORKLOAD, "web"))
    await story.gone()


async def quota_deny_grant(story: SweptWorld) -> None:
    total = story.size.replicas * len(story.size.cities)
    for project in story.projects:
        await story.world.grant(0, project=project)
    await story.create()
    for project in story.projects:
        await story.until(partial(_is_denied, project, story.first_names))
    for project in story.projects:
        await story.world.grant(total, project=project)
    await story.runs(story.desired)
    # A fault may have cost an attempt, and a denied claim is requested again after minutes: rest
    # begins with the last act.
    for project in story.projects:
        await story.world.grant(total + 1, project=project)


async def project_delete(story: SweptWorld) -> None:
    """The first project goes; where there is another one, it stays as it is."""
    await create(story)
    story.begin_change()
    leaving = story.projects[0]
    hub = await story.world.hub_of(leaving)
    cells = [await story.world.cell_of(cell, leaving) for cell in story.world.needs.cells]
    root = story.world.root
    await story.until(lambda: root.delete(PROJECT, leaving.name))
    await story.until(lambda: root.expect_gone(PROJECT, leaving.name))
    for plane in (hub, *cells):
        await story.until(partial(plane.expect_gone, NAMESPACE, plane.namespace))
    story.projects = story.projects[1:]
    await story.runs(story.desired)


async def suspend(story: SweptWorld) -> None:
    """Every project is suspended and resumes; what ran before runs again."""
    await create(story)
    story.begin_change()
    root = story.world.root
    for project in story.projects:
        await story.until(partial(root.create, a_suspension(project.name)))
    for project in story.projects:
        await story.until(partial(_is_suspended, story, project))
    for project in story.projects:
        await story.until(partial(root.delete, SUSPENSION, project.name))
    await story.runs(story.desired)


async def _is_suspended(story: SweptWorld, project: Plane) -> None:
    for cell in story.world.needs.cells:
        at = await story.world.cell_of(cell, project)
        for kind in (DEPLOYMENT, INSTANCE):
            for one in await at.list(kind):
                assert object_at(one, "status").get("suspended") is True, name_of(one)
        uids = {uid_of(one) for one in await at.list(INSTANCE)}
        assert not uids & story.world.backend.running(cell.name), cell.name


async def referenced_data(story: SweptWorld) -> None:
    """Instances wait for the ConfigMap and the Secret of their template, which come afterwards."""
    await deliver_data(story.world)
    for project in story.projects:
        placed = a_placement(PLACEMENT, *story.size.cities, replicas=story.size.replicas)
        wanted = a_workload("web", placed, template=_naming_template())
        await story.until(partial(project.create, wanted))
    for project in story.projects:
        await story.until(partial(_waits_for_data, project, story.first_names))
    story.begin_change()
    for project in story.projects:
        for source in (a_config_map(DATA_NAME), a_secret(DATA_NAME)):
            await story.until(partial(project.create, source))
    await story.runs(story.desired)


async def _waits_for_data(project: Plane, names: list[str]) -> None:
    instances = await project.list(INSTANCE)
    assert [name_of(one) for one in instances] == names
    for one in instances:
        assert condition_of(one, "Ready").reason == "SourceNotFound", name_of(one)


def _naming_template() -> JsonObject:
    template = a_template()
    container = objects_at(template, "spec", "runtime", "sandbox", "containers")[0]
    container["envFrom"] = [
        {"configMapRef": {"name": DATA_NAME}},
        {"secretRef": {"name": DATA_NAME}},
    ]
    return template


async def autoscaled(story: SweptWorld) -> None:
    """The number of Instances follows what autoscaling asks for in each city, up and down."""
    for cell in story.world.needs.cells:
        await add_component(story.world.cell(cell), "autoscaling/cell")
        await restart(story.world.operator_of(cell), {"autoscaling": {"mode": "on"}})
    least = story.size.replicas
    for project in story.projects:
        placed = a_placement(PLACEMENT, *story.size.cities, replicas=least)
        settings = object_at(placed, "scaleSettings")
        settings |= {"maxReplicas": least + 2, "metrics": [{"resource": {**CPU}}]}
        await story.until(partial(project.create, a_workload("web", placed)))
    await story.runs(story.desired)
    story.begin_change()
    for replicas in (least + 1, least):
        for project in story.projects:
            for city in story.size.cities:
                at = await story.world.cell_of(CELLS[city], project)
                await story.until(partial(_load, at, city, replicas))
        await story.runs(Desired(story.size.cities, replicas))


async def _load(cell: Plane, city: str, replicas: int) -> None:
    """What the controller of autoscalers writes, once there is something to scale."""
    name = f"web-{PLACEMENT}-{city.lower()}"
    await cell.get(AUTOSCALER, name)
    await cell.patch(DEPLOYMENT, name, {"spec": {"replicas": replicas}}, subresource="scale")


async def cell_join_leave(story: SweptWorld) -> None:
    """The cell of the first city gets its label after the Workload, loses and regains it."""
    hub, first = story.world.hub, CELLS[story.size.cities[0]]
    await _label(hub, first, "")
    await story.create()
    await story.until(lambda: _has_copies(story))
    story.begin_change()
    await _label(hub, first, first.city)
    await story.runs(story.desired)
    await _label(hub, first, "")
    await story.world.sleep(120)
    await _label(hub, first, first.city)
    await story.runs(story.desired)


async def reroute(story: SweptWorld) -> None:
    """The city of bare deployments is edited in place."""
    names = [f"bare-{number}" for number in range(len(story.size.cities))]
    for project in story.projects:
        for name in names:
            wanted = a_bare_deployment(name, replicas=story.size.replicas)
            await story.until(partial(project.create, wanted))
    await story.until(lambda: _bare_run(story, names, DFW))
    story.begin_change()
    for project in story.projects:
        for name in names:
            moved: JsonObject = {"spec": {"cityCode": ORD.city}}
            await story.until(partial(project.patch, DEPLOYMENT, name, moved))
    await story.until(lambda: _bare_run(story, names, ORD))


async def takeover(story: SweptWorld) -> None:
    """Our operators start on the objects of an installation of the Go operators."""
    world = story.world
    await world.grant(RECORDED_INSTANCES)
    await world.load_recorded(RUNNING, DFW)
    story.begin_change()
    await world.management.start()
    await world.operator_of(DFW).start()
    await world.sleep(60)
    await world.grant(RECORDED_INSTANCES + 1)
    # A denied claim is requested again a quarter of an hour after a takeover.
    await story.until(lambda: _is_granted(world.project, DENIED_CLAIM), within(1200))
    await world.grant(RECORDED_INSTANCES + 2)  # the last act: from now on the run is at rest


async def _is_granted(project: Plane, claim: str) -> None:
    assert condition_of(await project.get(CLAIM, claim), "Granted").status == "True"


async def _has_copies(story: SweptWorld) -> None:
    for project in story.projects:
        hub = await story.world.hub_of(project)
        assert len(await hub.names(DEPLOYMENT)) == len(story.size.cities)


async def _has_no_namespace_leftovers(story: SweptWorld) -> None:
    for project in story.projects:
        left = await story.world.cell_of(DFW, project)
        for kind in (DEPLOYMENT, INSTANCE):
            assert await left.names(kind) == [], kind.name


async def _bare_run(story: SweptWorld, names: list[str], cell: Cell) -> None:
    """Every bare deployment runs in this cell, and nowhere else."""
    wanted = sorted(f"{name}-{slot}" for name in names for slot in range(story.size.replicas))
    for project in story.projects:
        for other in story.world.needs.cells:
            at = await story.world.cell_of(other, project)
            assert await at.names(INSTANCE) == (wanted if other == cell else []), other.name
        assert await project.names(INSTANCE) == wanted
        assert await project.names(CLAIM) == [f"instance-{name}" for name in wanted]
        for one in await project.list(INSTANCE):
            _check_instance(one, "1.0")
            assert labels_of(one)[labels.CELL] == cell.name


async def _is_denied(project: Plane, names: list[str]) -> None:
    instances = await project.list(INSTANCE)
    assert [name_of(one) for one in instances] == names
    for one in instances:
        assert condition_of(one, "QuotaGranted").reason == "QuotaExceeded", name_of(one)


async def _label(hub: Plane, cell: Cell, city: str) -> None:
    change: JsonObject = {"metadata": {"labels": {labels.TOPOLOGY_CITY_CODE: city}}}
    await hub.patch(CLUSTER, cell.name, change)


def _placed(cities: tuple[str, ...], replicas: int) -> JsonObject:
    return {"spec": {"placements": [a_placement(PLACEMENT, *cities, replicas=replicas)]}}


# --- the catalogue --------------------------------------------------------------------------------

# Plays a scenario; the second argument is called when its main change begins.
Body: TypeAlias = Callable[[Backend, Callable[[], None]], Coroutine[object, object, None]]
Telling: TypeAlias = Callable[[SweptWorld], Coroutine[object, object, None]]


@dataclass(frozen=True, slots=True)
class SweptScenario:
    """One scenario in one size, with what it needs."""

    name: str
    needs: Needs
    body: Body
    # Whether every run writes as often as the reference, so that O2 applies.
    is_paced: bool = True


STORIES: Final[Mapping[str, Telling]] = {
    "create": create,
    "scale": scale,
    "roll": roll,
    "edit": edit,
    "move-city": move_city,
    "reroute": reroute,
    "delete": delete,
    "quota-deny-grant": quota_deny_grant,
    "project-delete": project_delete,
    "suspend": suspend,
    "referenced-data": referenced_data,
    "autoscale": autoscaled,
    "cell-join-leave": cell_join_leave,
}
UNPACED: Final = frozenset({"edit"})
BOTH_CELLS: Final = frozenset({"move-city", "reroute"})
TAKEOVER_SETTINGS: Final[Mapping[str, JsonObject]] = {
    "management": {"networking": "off", "projection": {"requireCellLabel": False}},
    DFW.name: {"networking": "off"},
}


def catalogue() -> dict[str, SweptScenario]:
    """Every scenario by its name, such as `roll-1x1x1`."""
    scenarios: dict[str, SweptScenario] = {}
    for name, telling in STORIES.items():
        for size in (SMALL, LARGE):
            cities = ("DFW", "ORD") if name in BOTH_CELLS else size.cities
            needs = Needs(
                projects=size.workloads,
                cells=tuple(CELLS[city] for city in cities),
                has_quota=True,
                reads_data=telling is referenced_data,
            )
            swept = _swept(f"{name}-{size.title}", needs, telling, size)
            scenarios[swept.name] = replace(swept, is_paced=name not in UNPACED)
    needs = Needs(has_quota=True, settings=TAKEOVER_SETTINGS)
    scenarios["takeover"] = _swept("takeover", needs, takeover, SMALL)
    return scenarios


def _swept(name: str, needs: Needs, telling: Telling, size: Size) -> SweptScenario:
    async def body(backend: Backend, on_change: Callable[[], None]) -> None:
        await telling(SweptWorld(World(backend, needs), size, on_change))

    return SweptScenario(name, needs, body)
