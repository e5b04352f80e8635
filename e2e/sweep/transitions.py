"""Chains of declarations S0 → S1 → S2, an error and back, on simulated planes.

```
 consistency    after every step each Instance has what the Workload declares, no more and no less
 recovery       an image that never runs, then the last good declaration: as if nothing had been
 differential   S0 → S2 directly ends as S0 → S1 → S2 → error → S2
```

All oracles of a run hold in both runs. A chain is five transitions, and its seed repeats it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from compute_api_types.wire import JsonObject, JsonValue
from e2e.oracles.comparison import end_state
from e2e.sweep.declarations import Declarer
from e2e.sweep.plans import plan_of
from e2e.sweep.running import SweepRun, judge_history, play
from e2e.sweep.scenarios import SweptScenario
from e2e.world.documents import IMAGE, a_document
from e2e.world.handles import Plane, RefusedError, within
from e2e.world.kinds import BINDING, CLAIM, DEPLOYMENT, INSTANCE, POLICY, WORKLOAD
from e2e.world.objects import (
    condition_of,
    gates_of,
    name_of,
    number_at,
    object_at,
    objects_at,
    text_at,
    texts_at,
    value_at,
)
from e2e.world.port import DFW, ORD, Backend, Needs
from e2e.world.scenario import World

NEEDS: Final = Needs(cells=(DFW, ORD), has_quota=True)
GOAL: Final = within(600)
PER_CHAIN: Final = 5  # S0 → S1 → S2 → error → S2, and S0 → S2
NEVER_RUNS: Final = f"{IMAGE}:hang"
# What a way through S1 may leave elsewhere, such as the namespace in a former city, is no
# difference: O4 has the list of what may stay.
COMPARED: Final = frozenset(
    kind.name for kind in (WORKLOAD, DEPLOYMENT, INSTANCE, CLAIM, BINDING, POLICY)
)


@dataclass(frozen=True, slots=True)
class Chain:
    """Three specs; each differs in one part from the one before."""

    seed: int
    specs: tuple[JsonObject, JsonObject, JsonObject]

    @classmethod
    def of(cls, seed: int) -> Chain:
        declarer = Declarer(seed)
        first = declarer.first()
        second = declarer.next(first)
        return cls(seed, (first, second, declarer.next(second)))


@dataclass(frozen=True, slots=True)
class ChainResult:
    """A chain that was run; a refused declaration is no transition."""

    seed: int
    transitions: int
    refused: str
    violations: tuple[str, ...]


def run_chain(seed: int) -> ChainResult:
    """Both runs of a chain, judged."""
    chain = Chain.of(seed)
    first, second, third = chain.specs
    try:
        long_way = _play((first, second, third, failing(third), third))
        short_way = _play((first, third))
    except RefusedError as refused:
        return ChainResult(seed, 0, str(refused).partition("\n")[0], ())
    violations = [*judge_history(long_way), *judge_history(short_way)]
    if not violations:
        violations = find_differences(long_way, short_way)
    return ChainResult(seed, PER_CHAIN, "", tuple(violations))


def find_differences(long_way: SweepRun, short_way: SweepRun) -> list[str]:
    """Differences of our own objects between the ends of two runs."""
    differences = end_state(long_way.backend.history, short_way.backend.history)
    return [
        f"differential: {one.message}"
        for one in differences
        if one.message.split(" ")[1] in COMPARED
    ]


def failing(spec: JsonObject) -> JsonObject:
    """The same spec with an image that never runs."""
    return _with_images(spec, NEVER_RUNS)


def _with_images(spec: JsonObject, image: str) -> JsonObject:
    template = object_at(spec, "template")
    inner = object_at(template, "spec")
    runtime = object_at(inner, "runtime")
    containers: list[JsonValue] = [
        {**one, "image": image} for one in objects_at(runtime, "sandbox", "containers")
    ]
    sandbox: JsonObject = {**object_at(runtime, "sandbox"), "containers": containers}
    changed: JsonObject = {**inner, "runtime": {**runtime, "sandbox": sandbox}}
    return {**spec, "template": {**template, "spec": changed}}


def _play(specs: Sequence[JsonObject]) -> SweepRun:
    refused: list[RefusedError] = []

    async def body(backend: Backend, on_change: Callable[[], None]) -> None:
        del on_change
        world = World(backend, NEEDS)
        try:
            for spec in specs:
                await _declare(world.project, spec)
                check = _is_hanging if spec == failing(spec) else _is_as_declared
                await world.eventually(partial(check, world, spec), GOAL)
        except RefusedError as error:
            refused.append(error)

    done = play(SweptScenario("declarations", NEEDS, body), plan_of("declarations"))
    if refused:
        raise refused[0]
    return done


async def _declare(project: Plane, spec: JsonObject) -> None:
    """A whole new spec, as `kubectl replace` sends it: what is not declared is gone."""
    if await project.find(WORKLOAD, "web") is None:
        await project.create(a_document(WORKLOAD, "web", spec=spec))
        return

    def replace_spec(document: JsonObject) -> None:
        document["spec"] = spec

    await project.edit(WORKLOAD, "web", replace_spec)


# --- consistency ----------------------------------------------------------------------------------


async def _is_as_declared(world: World, spec: JsonObject) -> None:
    slots = slots_of(spec)
    names = sorted(slots)
    project = world.project
    assert await project.names(INSTANCE) == names
    assert await project.names(CLAIM) == [f"instance-{name}" for name in names]
    for cell in NEEDS.cells:
        at = await world.cell_of(cell, project)
        here = [name for name in names if slots[name] == cell.city]
        assert await at.names(INSTANCE) == here, cell.name
        for one in await at.list(INSTANCE):
            _check_instance(one, spec)
            _check_metadata(one, object_at(spec, "template", "metadata"))
    for one in await project.list(INSTANCE):
        _check_instance(one, spec)
    workload = await project.get(WORKLOAD, "web")
    assert condition_of(workload, "Ready").status == "True"
    assert number_at(workload, "status", "readyReplicas") == len(names)


def _check_instance(instance: JsonObject, spec: JsonObject) -> None:
    name = name_of(instance)
    assert gates_of(instance) == [], name
    assert condition_of(instance, "Ready").status == "True", name
    missing = find_missing(object_at(spec, "template", "spec"), object_at(instance, "spec"))
    assert not missing, f"{name} lacks {missing}"


def _check_metadata(instance: JsonObject, declared: JsonObject) -> None:
    """Of Instances in cells: a project shows the labels of the platform alone."""
    for member in ("labels", "annotations"):
        shown = object_at(instance, "metadata", member)
        wanted = object_at(declared, member)
        assert wanted.items() <= shown.items(), (name_of(instance), member)


async def _is_hanging(world: World, spec: JsonObject) -> None:
    """Some Instance has the image that never runs, and the Workload is not all up to date."""
    instances = await world.project.list(INSTANCE)
    assert any(NEVER_RUNS in str(one) for one in instances), slots_of(spec)
    workload = await world.project.get(WORKLOAD, "web")
    assert number_at(workload, "status", "updatedReplicas") < len(slots_of(spec))


def slots_of(spec: JsonObject) -> dict[str, str]:
    """The name of every Instance that a spec asks for, and its city."""
    return {
        f"web-{text_at(placement, 'name')}-{city.lower()}-{ordinal}": city
        for placement in objects_at(spec, "placements")
        for city in texts_at(placement, "cityCodes")
        for ordinal in range(number_at(placement, "scaleSettings", "minReplicas"))
    }


def find_missing(declared: JsonValue, shown: JsonValue, path: str = "spec") -> str:
    """The first path that is declared and not shown with the same value; empty where there is
    none.
    """
    if isinstance(declared, dict):
        inner = ((f"{path}.{name}", one, value_at(shown, name)) for name, one in declared.items())
    elif isinstance(declared, list) and isinstance(shown, list) and len(declared) == len(shown):
        rows = zip(declared, shown, strict=True)
        inner = ((f"{path}[{at}]", one, other) for at, (one, other) in enumerate(rows))
    else:
        return "" if declared == shown else path
    return next(filter(None, (find_missing(one, other, at) for at, one, other in inner)), "")
