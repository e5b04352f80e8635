"""`kubectl compute plan` predicts the deployments and rolls that then happen, over random edits."""

from __future__ import annotations

import json
import random
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from e2e.world.scenario import (
    DEPLOYMENT,
    DFW,
    INSTANCE,
    ORD,
    WORKLOAD,
    JsonObject,
    JsonValue,
    Needs,
    World,
    a_placement,
    a_template,
    a_workload,
    condition_of,
    name_of,
    number_at,
    objects_at,
    scenario,
    text_at,
    uid_of,
    within,
)

SEED = 20261118
CITIES = ("DFW", "ORD")


@dataclass(frozen=True)
class Wanted:
    """A Workload as its user writes it: cities and replicas by placement, and an image tag."""

    placements: tuple[tuple[str, tuple[str, ...], int], ...] = (("us", ("DFW",), 1),)
    tag: int = 1

    @property
    def document(self) -> JsonObject:
        placed = (
            a_placement(name, *cities, replicas=count) for name, cities, count in self.placements
        )
        return a_workload("web", *placed, template=a_template(f"{self.tag}.0"))


def _free(wanted: Wanted, place: int) -> tuple[str, ...]:
    """Cities that no other placement names; a Workload names each at most once."""
    others = [one for number, one in enumerate(wanted.placements) if number != place]
    taken = {city for _, cities, _ in others for city in cities}
    return tuple(city for city in CITIES if city not in taken)


def _edit(wanted: Wanted, chance: random.Random) -> Wanted:
    """One of the edits: scale, template, cities, another placement, a removal."""
    match chance.choice(("scale", "template", "cities", "add", "remove", "none")):
        case "template":
            return replace(wanted, tag=wanted.tag + 1)
        case "add" if len(wanted.placements) == 1 and _free(wanted, -1):
            added = ("eu", _free(wanted, -1), 1)
            return replace(wanted, placements=(*wanted.placements, added))
        case "remove" if len(wanted.placements) > 1:
            kept = chance.choice(wanted.placements)
            return replace(wanted, placements=(kept,))
        case "none":
            return wanted
        case kind:
            place = chance.randrange(len(wanted.placements))
            name, cities, count = wanted.placements[place]
            if kind == "scale":
                count = chance.choice([one for one in (1, 2, 3) if one != count])
            else:
                free = _free(wanted, place)
                cities = chance.choice([free, *((one,) for one in free)])
            listed = [*wanted.placements]
            listed[place] = (name, cities, count)
            return replace(wanted, placements=tuple(listed))


@dataclass(frozen=True)
class Deployment:
    """A WorkloadDeployment with the UIDs of its Instances by name."""

    uid: str
    replicas: int
    instances: dict[str, str]


async def _look(world: World) -> dict[str, Deployment]:
    project = world.project
    instances = await project.list(INSTANCE)
    seen: dict[str, Deployment] = {}
    for one in await project.list(DEPLOYMENT):
        name = name_of(one)
        own = {
            name_of(each): _source(each)
            for each in instances
            if name_of(each).rpartition("-")[0] == name
        }
        replicas = number_at(one, "spec", "scaleSettings", "minReplicas")
        seen[name] = Deployment(uid_of(one), replicas, own)
    return seen


def _source(instance: JsonObject) -> str:
    """The UID on the cell: a projection is written anew for a new Instance of the same name."""
    return text_at(instance, "metadata", "annotations", "compute.datumapis.com/instance-uid")


async def _plan(world: World, wanted: Wanted) -> dict[str, JsonObject]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "workload.json"
        path.write_text(json.dumps(wanted.document), "utf-8")
        result = await world.compute("plan", "-f", str(path), "-o", "json")
    assert result.code == 0, result.output
    answer: JsonObject = json.loads(result.output)
    assert text_at(answer, "verdict") == "would run"
    return {text_at(one, "name"): one for one in objects_at(answer, "deployments")}


def _compare(
    planned: dict[str, JsonObject], before: dict[str, Deployment], after: dict[str, Deployment]
) -> None:
    changes = {name: text_at(one, "change") for name, one in planned.items()}
    assert {name for name, one in changes.items() if one == "delete"} == before.keys() - after
    assert {name for name, one in changes.items() if one == "create"} == after.keys() - before
    assert changes.keys() == before.keys() | after.keys()
    for name in before.keys() & after.keys():
        old, new = before[name], after[name]
        assert number_at(planned[name], "replicasBefore") == old.replicas
        assert number_at(planned[name], "replicasAfter") == new.replicas == len(new.instances)
        assert new.uid == old.uid
        stayed = old.instances.keys() & new.instances.keys()
        replaced = {one for one in stayed if old.instances[one] != new.instances[one]}
        assert replaced == (stayed if changes[name] == "roll" else set()), changes
        if changes[name] == "keep":
            assert new == old


@pytest.mark.spec("WY-10")
@scenario(Needs(cells=(DFW, ORD), has_quota=True, is_slow=True))
async def test_what_a_plan_predicts_is_what_happens(world: World) -> None:
    chance = random.Random(SEED)  # noqa: S311 -- nothing secret
    wanted = Wanted()
    before: dict[str, Deployment] = {}
    for turn in range(20 if world.backend.name == "sim" else 6):
        planned = await _plan(world, wanted)
        if turn:
            spec: JsonValue = wanted.document["spec"]
            await world.project.patch(WORKLOAD, "web", {"spec": spec})
        else:
            await world.project.create(wanted.document)

        async def is_done(wanted: Wanted = wanted) -> None:
            one = await world.project.get(WORKLOAD, "web")
            assert number_at(one, "status", "observedGeneration") == number_at(
                one, "metadata", "generation"
            )
            assert condition_of(one, "Ready").status == "True"
            cities = {(name, city) for name, listed, _ in wanted.placements for city in listed}
            assert len(await world.project.list(DEPLOYMENT)) == len(cities)

        await world.settle()
        await world.eventually(is_done, within(120, real=240))
        after = await _look(world)
        _compare(planned, before, after)
        before, wanted = after, _edit(wanted, chance)
