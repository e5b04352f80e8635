"""Replays the steps of a recording of a real Karmada on the simulated one, and compares.

After every step the planes must have exactly the recorded objects with metadata, spec and status,
and linked writes must be in the recorded order. UIDs, versions, times and event counts are ignored.
Hub status is compared in short form, because the recording was made with a trial version of the
script.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeAlias

import orjson
import pytest
from karmada_builders.documents import CITY, DEPLOYMENTS, a_free_definition

from compute_sim_planes.api_server.manifests import apply_manifests, read_manifests
from compute_sim_planes.api_server.plane import Plane, PlaneParts
from compute_sim_planes.client.rest import Client, Resource
from compute_sim_planes.crds import load_crds
from compute_sim_planes.json_types import (
    JsonObject,
    JsonValue,
    object_at,
    objects_at,
    string_at,
    value_at,
)
from compute_sim_planes.karmada.kinds import (
    BINDINGS,
    EVENTS,
    NAMESPACES,
    POLICIES,
    WORKS,
)
from compute_sim_planes.karmada.metadata import version_of
from compute_sim_planes.karmada.policies.admission import karmada_amendments
from compute_sim_planes.karmada.simulation import Karmada, KarmadaParts
from compute_sim_planes.time.clock import VirtualClock, run

RECORDING: Final = Path(__file__).parents[1] / "observed" / "karmada.json"
INTERPRETER: Final = Path(__file__).parents[4] / "deploy" / "hub" / "interpreter"
NS: Final = "ns-6a2b6d4e-0000-4000-8000-000000000001"
START: Final = datetime(2026, 11, 16, 4, 37, 26, tzinfo=UTC)
STEP: Final = 3.0  # seconds between two steps, as in the recording
UID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
TIMES: Final = frozenset(
    {"creationTimestamp", "deletionTimestamp", "lastTransitionTime", "lastScheduledTime"}
)
OF_ONE_RUN: Final = frozenset({"uid", "resourceVersion", "managedFields"})
FOLLOWED: Final = {
    "hub": (NAMESPACES, POLICIES, DEPLOYMENTS, BINDINGS, WORKS, EVENTS),
    "dfw-1": (NAMESPACES, DEPLOYMENTS),
    "ord-1": (NAMESPACES, DEPLOYMENTS),
}
WEB: Final = (DEPLOYMENTS, "web")
CLUSTERS_OF_KARMADA: Final = ("dfw-1", "ord-1")


@dataclass(frozen=True, slots=True)
class Place:
    """One object on one plane."""

    plane: str
    kind: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Happened:
    """One event of a watch."""

    place: Place
    event: str
    object: JsonObject


@dataclass(slots=True)
class Step:
    name: str
    happened: list[Happened] = field(default_factory=list[Happened])


def place_of(plane: str, document: JsonObject) -> Place:
    return Place(
        plane,
        string_at(document, "kind"),
        string_at(document, "metadata", "namespace"),
        string_at(document, "metadata", "name"),
    )


def recorded_steps() -> list[Step]:
    document: JsonValue = orjson.loads(RECORDING.read_bytes())
    steps: list[Step] = []
    for entry in objects_at(document, "steps"):
        step = Step(string_at(entry, "step"))
        for event in objects_at(entry, "events"):
            seen = object_at(event, "object")
            place = place_of(string_at(event, "plane"), seen)
            step.happened.append(Happened(place, string_at(event, "event"), seen))
        steps.append(step)
    return steps


# normalisation ------------------------------------------------------------------------------------


def normalised(value: JsonValue) -> JsonValue:
    """A value without what differs between runs."""
    if isinstance(value, list):
        return [normalised(one) for one in value]
    if isinstance(value, str):
        return UID.sub("<uid>", value)
    if not isinstance(value, dict):
        return value
    return {
        name: "<time>" if name in TIMES else normalised(inner)
        for name, inner in value.items()
        if name not in OF_ONE_RUN
    }


def normalised_object(place: Place, document: JsonObject) -> JsonValue:
    if place.plane == "hub" and place.kind == DEPLOYMENTS.kind:
        return normalised({**document, "status": status_in_short(object_at(document, "status"))})
    return normalised(document)


def status_in_short(status: JsonObject) -> JsonObject:
    """Counters, and the status of each condition: messages and gaps depend on the script."""
    conditions: JsonObject = {
        string_at(one, "type"): string_at(one, "status") == "True"
        for one in objects_at(status, "conditions")
    }
    counters: JsonObject = {
        name: value for name, value in status.items() if name.endswith("eplicas")
    }
    return {**counters, "conditions": conditions}


def is_about_it(document: JsonObject) -> bool:
    """Whether the object is in the recording, which has only its own namespace."""
    return NS in orjson.dumps(document).decode()


def event_identity(document: JsonObject) -> tuple[str, ...]:
    """The identity of an Event: involved object, reason and message."""
    about = object_at(document, "involvedObject")
    parts = (
        *(string_at(document, name) for name in ("type", "reason", "message")),
        string_at(document, "source", "component"),
        *(string_at(about, name) for name in ("apiVersion", "kind", "namespace", "name")),
    )
    return (string_at(document, "metadata", "namespace"), *parts)


World: TypeAlias = dict[Place, JsonValue]


def fold(worlds: World, step: Step) -> World:
    """All objects after a step."""
    after = dict(worlds)
    for one in step.happened:
        if one.place.kind == EVENTS.kind:
            continue
        if one.event == "DELETED":
            after.pop(one.place, None)
        else:
            after[one.place] = normalised_object(one.place, one.object)
    return after


def is_linked(one: Place, other: Place) -> bool:
    """Whether one of them is written because of the other."""
    kinds = {one.kind, other.kind}
    if kinds in ({BINDINGS.kind, WORKS.kind}, {DEPLOYMENTS.kind, BINDINGS.kind}):
        return one.plane == other.plane == "hub"
    if POLICIES.kind in kinds and one.plane == other.plane:
        return bool(kinds & {BINDINGS.kind, DEPLOYMENTS.kind})
    if WORKS.kind in kinds:
        work, copy = (one, other) if one.kind == WORKS.kind else (other, one)
        return work.namespace.removeprefix("karmada-es-") == copy.plane
    return False


def first_places(step: Step) -> list[Place]:
    """Objects in the order of their first events; on the hub by version, because the watches of
    different kinds are not synchronised.
    """
    happened = [one for one in step.happened if one.place.kind != EVENTS.kind]
    hub = (one for one in happened if one.place.plane == "hub")
    in_order = iter(sorted(hub, key=lambda one: int(version_of(one.object))))
    places = [next(in_order) if one.place.plane == "hub" else one for one in happened]
    return list(dict.fromkeys(one.place for one in places))


def causes(step: Step) -> set[tuple[Place, Place]]:
    """Pairs of linked objects in the order of their changes."""
    places = first_places(step)
    return {
        (earlier, later)
        for at, earlier in enumerate(places)
        for later in places[at + 1 :]
        if is_linked(earlier, later)
    }


# replay -------------------------------------------------------------------------------------------


def interpreter() -> list[JsonObject]:
    """The shipped script without health, which the trial version left to Karmada."""
    manifests = read_manifests(INTERPRETER)
    for manifest in manifests:
        object_at(manifest, "spec", "customizations").pop("healthInterpretation", None)
    return manifests


class Replay:
    """Hub and members, with each step done as in the recording."""

    def __init__(self, clock: VirtualClock, recorded: list[Step]) -> None:
        self.recorded = recorded
        self._clock = clock
        self._seen: list[Happened] = []
        self._watches: list[asyncio.Task[None]] = []
        self.planes: dict[str, Plane] = {}
        for name in FOLLOWED:
            parts = PlaneParts(clock=clock, identities=clock)
            if name == "hub":
                parts.amendments = karmada_amendments(clock)
            self.planes[name] = Plane(name, parts)
        self.karmada = Karmada(self.planes["hub"].connect(), KarmadaParts(clock, clock))
        self.clients = {
            name: Client(plane.connect(), manager="test") for name, plane in self.planes.items()
        }

    async def open(self) -> None:
        definition = a_free_definition(DEPLOYMENTS)
        for name, plane in self.planes.items():
            kinds = [definition, *load_crds("karmada")] if name == "hub" else [definition]
            await apply_manifests(plane.connect(), kinds)
        await apply_manifests(self.planes["hub"].connect(), interpreter())
        self.karmada.start()
        for cluster, city in zip(CLUSTERS_OF_KARMADA, ("DFW", "ORD"), strict=True):
            await self.karmada.join(cluster, self.planes[cluster].connect(), {CITY: city})
        await asyncio.sleep(STEP)
        for name, resources in FOLLOWED.items():
            for resource in resources:
                version = (await self.clients[name].list(resource)).version
                watch = self._watch(name, resource, version)
                self._watches.append(asyncio.create_task(watch))

    async def close(self) -> None:
        for watch in self._watches:
            watch.cancel()
        await asyncio.gather(*self._watches, return_exceptions=True)
        await self.karmada.stop()
        for plane in self.planes.values():
            await plane.close()

    async def _watch(self, plane: str, resource: Resource, version: str) -> None:
        async with aclosing(self.clients[plane].watch(resource, version)) as events:
            async for event in events:
                if event.type != "BOOKMARK":
                    place = place_of(plane, event.object)
                    self._seen.append(Happened(place, event.type, event.object))

    async def take(self, number: int) -> Step:
        """Run one step, and return its events."""
        self._seen = []
        await ACTIONS[number](self, self.recorded[number])
        await asyncio.sleep(STEP)
        return Step(self.recorded[number].name, self._seen)

    async def patch(self, plane: str, patch: JsonObject) -> None:
        resource, name = WEB
        await self.clients[plane].patch(resource, name, patch, namespace=NS)


def recorded_first(step: Step, plane: str, kind: str) -> JsonObject:
    """The object that was written manually in the recording."""
    return next(
        one.object for one in step.happened if (one.place.plane, one.place.kind) == (plane, kind)
    )


def as_request(document: JsonObject, *fields: str) -> JsonObject:
    kept = {name: value_at(document, "metadata", name) for name in ("name", "namespace", *fields)}
    metadata: JsonObject = {name: value for name, value in kept.items() if value}
    return {
        "apiVersion": string_at(document, "apiVersion"),
        "kind": string_at(document, "kind"),
        "metadata": metadata,
        "spec": object_at(document, "spec"),
    }


async def make_namespace(replay: Replay, step: Step) -> None:
    document = recorded_first(step, "hub", NAMESPACES.kind)
    await replay.clients["hub"].create(NAMESPACES, as_request(document, "labels"))


async def make_policy(replay: Replay, step: Step) -> None:
    document = recorded_first(step, "hub", POLICIES.kind)
    await replay.clients["hub"].create(POLICIES, as_request(document))


async def make_deployment(replay: Replay, step: Step) -> None:
    document = recorded_first(step, "hub", DEPLOYMENTS.kind)
    await replay.clients["hub"].create(DEPLOYMENTS, as_request(document, "labels", "annotations"))


async def answer(replay: Replay, step: Step) -> None:
    resource, name = WEB
    status = recorded_first(step, "dfw-1", DEPLOYMENTS.kind)["status"]
    existing = await replay.clients["dfw-1"].get(resource, name, NS)
    assert existing is not None
    await replay.clients["dfw-1"].update_status(resource, {**existing, "status": status})


def edit(plane: str, patch: JsonObject) -> Action:
    async def act(replay: Replay, _: Step) -> None:
        await replay.patch(plane, patch)

    return act


def delete(plane: str, resource: Resource, name: str, namespace: str = "") -> Action:
    async def act(replay: Replay, _: Step) -> None:
        await replay.clients[plane].delete(resource, name, namespace=namespace)

    return act


def label(cluster: str, city: str | None) -> Action:
    async def act(replay: Replay, _: Step) -> None:
        await replay.karmada.label(cluster, {CITY: city})

    return act


Action: TypeAlias = Callable[[Replay, Step], Awaitable[None]]
ANSWERED: Final[JsonObject] = {
    "metadata": {"annotations": {"compute.datumapis.com/project-generation": "2"}}
}
ACTIONS: Final[tuple[Action, ...]] = (
    make_namespace,
    make_policy,
    make_deployment,
    answer,
    answer,
    edit("hub", {"spec": {"template": {"spec": {"x": 2}}}}),
    edit("hub", ANSWERED),
    answer,
    edit("dfw-1", {"spec": {"template": {"spec": {"x": 99}}}}),
    delete("dfw-1", *WEB, NS),
    label("ord-1", "DFW"),
    label("ord-1", "ORD"),
    label("dfw-1", None),
    label("dfw-1", "DFW"),
    delete("hub", POLICIES, "city-dfw", NS),
    make_policy,
    delete("hub", *WEB, NS),
    delete("hub", NAMESPACES, NS),
)


def replayed_steps(seed: int) -> list[Step]:
    recorded = recorded_steps()

    async def main(clock: VirtualClock) -> list[Step]:
        replay = Replay(clock, recorded)
        await replay.open()
        try:
            return [await replay.take(number) for number in range(len(recorded))]
        finally:
            await replay.close()

    return run(main, seed=seed, start=START)


def worlds_of(steps: list[Step]) -> list[World]:
    worlds: list[World] = []
    world: World = {}
    for step in steps:
        world = fold(world, step)
        worlds.append(world)
    return worlds


STEPS: Final = range(len(ACTIONS))
LAST: Final = len(ACTIONS) - 1


@pytest.fixture(scope="module")
def recorded() -> list[Step]:
    return recorded_steps()


@pytest.fixture(scope="module", params=(1, 2, 3))
def replayed(request: pytest.FixtureRequest) -> list[Step]:
    """Another seed gives another order of simultaneous callbacks."""
    seed: int = request.param
    return replayed_steps(seed)


def test_every_step_has_an_action(recorded: list[Step]) -> None:
    assert len(recorded) == len(ACTIONS)


@pytest.mark.parametrize("number", STEPS)
def test_a_step_leaves_the_recorded_objects(
    recorded: list[Step], replayed: list[Step], number: int
) -> None:
    expected, actual = worlds_of(recorded)[number], worlds_of(replayed)[number]
    if number == LAST:
        # The recording ends while members still finalize the namespace.
        for place in [place for place in expected if place.plane != "hub"]:
            expected.pop(place)
            actual.pop(place, None)
    assert actual == expected


@pytest.mark.parametrize("number", STEPS)
def test_a_step_touches_the_recorded_objects_and_no_others(
    recorded: list[Step], replayed: list[Step], number: int
) -> None:
    assert set(first_places(replayed[number])) == set(first_places(recorded[number]))


@pytest.mark.parametrize("number", STEPS)
def test_what_a_step_causes_comes_in_an_order_that_was_recorded(
    recorded: list[Step], replayed: list[Step], number: int
) -> None:
    assert causes(replayed[number]) == causes(recorded[number])


def test_the_recorded_events_are_written_and_no_others(
    recorded: list[Step], replayed: list[Step]
) -> None:
    expected, actual = (
        {
            event_identity(one.object)
            for step in steps
            for one in step.happened
            if one.place.kind == EVENTS.kind and one.event != "DELETED" and is_about_it(one.object)
        }
        for steps in (recorded, replayed)
    )
    assert actual == expected
