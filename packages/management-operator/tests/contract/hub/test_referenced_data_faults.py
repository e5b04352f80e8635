"""The life of referenced data with one fault at each write of a companion, and at each event about
one: the end is always the same.

```
db       needed by two, edited               app      withdrawn with its source, and back again
typed    replaced by another type            pull     named no more
left     its only deployment is deleted      taken    foreign on the hub; named by a hostile tenant
```

Each point of the reference run is struck once in each way (faults.md 1, 3). What the hub holds in
the end, and how often each object was created and deleted there, must be as without a fault.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import pytest
from management_builders.documents import a_cluster_document, a_deployment_document
from management_builders.hub_script import PROJECT, WD, annotations_of, metadata_of
from management_builders.referenced_data import (
    CONFIG_MAPS,
    MARKER,
    SECRETS,
    DataHub,
    an_object,
    grant,
    name_objects,
)
from management_builders.world import Run, World, condition_of, play, settings_of, uid_of

from compute_api_types import labels
from compute_management_operator.planes import DEPLOYMENT, HUB, ROOT
from compute_operator_kit.core.json import Json, JsonObject, member_list, member_object, member_text
from compute_operator_kit.core.keys import Kind
from compute_sim_planes.faults.plans import Action, Fault, Parameters, Point
from compute_sim_planes.history import Commit, Injected, Request

SETTLE = 20.0
REST = 120.0
LEFT = "left-us-dfw"
HOSTILE = "hostile-us-dfw"
KINDS: Mapping[str, Kind] = {"ConfigMap": CONFIG_MAPS, "Secret": SECRETS}
OBJECTS = (
    ("ConfigMap", "app"),
    ("ConfigMap", "left"),
    *(("Secret", name) for name in ("db", "pull", "taken", "typed")),
)
EDITED: JsonObject = {"k": MARKER, "more": MARKER}


@dataclass(frozen=True, slots=True)
class End:
    """What a run comes to."""

    companions: Mapping[tuple[str, str], object]
    stated: Mapping[str, object]  # by deployment: annotations of its copy, and the condition
    made: Counter[tuple[str, str]]  # (ADDED or DELETED, companion) → how often


class Operators:
    """The operator, and the next one where it has crashed."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._count = 0
        self._deaths: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        self._count += 1
        settings = settings_of(referencedData="on")
        process = self._world.process(f"operator-{self._count}", settings=settings)

        async def die() -> None:
            await process.kill()
            await self._world.sleep(1)
            self.start()

        def crashed(_: Fault) -> None:
            task = asyncio.get_running_loop().create_task(die())
            self._deaths.add(task)
            task.add_done_callback(self._deaths.discard)

        process.life.on_crash = crashed
        process.start()


def a_hostile_deployment() -> JsonObject:
    """It names what is foreign on the hub, and states that nothing is needed and all is well."""
    document = a_deployment_document(HOSTILE)
    name_objects(document, "Secret/taken")
    written: JsonObject = {
        labels.EXPECTED_REFERENCED_DATA: "[]",
        labels.EXPECTED_REFERENCED_VERSIONS: "{}",
        labels.REFERENCED_DATA_ERROR: '{"reason":"Mine","message":"mine"}',
    }
    metadata_of(document)["annotations"] = written
    return document


async def live(hub: DataHub) -> None:
    world = hub.world
    foreign = an_object(SECRETS, "taken", data={"theirs": MARKER})
    for kind, name in OBJECTS:
        await world.create(PROJECT, an_object(KINDS[kind], name))
    await hub.deploy("ConfigMap/app", "Secret/db", "Secret/pull", "Secret/typed")
    await hub.deploy("Secret/db", "ConfigMap/left", name=LEFT)
    await world.sleep(SETTLE)
    metadata_of(foreign)["namespace"] = await hub.namespace()
    await world.create(HUB, foreign)
    await world.create(PROJECT, a_hostile_deployment())
    await world.patch(PROJECT, SECRETS, "db", {"data": EDITED})
    await world.delete(PROJECT, CONFIG_MAPS, "app")
    await world.delete(PROJECT, SECRETS, "typed")
    await world.create(PROJECT, an_object(SECRETS, "typed", type="example.com/other"))
    await world.sleep(SETTLE)
    await world.create(PROJECT, an_object(CONFIG_MAPS, "app", data={"k": "again"}))
    await hub.name_anew("ConfigMap/app", "Secret/db", "Secret/typed")
    await world.delete(PROJECT, DEPLOYMENT, LEFT)
    await world.sleep(REST)


async def read_end(hub: DataHub) -> tuple[dict[tuple[str, str], object], dict[str, object]]:
    companions: dict[tuple[str, str], object] = {}
    for kind, name in OBJECTS:
        companion = await hub.companion(KINDS[kind], name)
        if companion is not None:
            companions[kind, name] = await describe(hub, KINDS[kind], companion)
    stated: dict[str, object] = {}
    for name in (WD, HOSTILE):
        versions = await hub.stated(name)
        # Their text has versions of the run; that they are those of the sources is checked above.
        expected = versions.pop("expected-referenced-versions", "{}")
        assert isinstance(expected, str)
        condition = condition_of(
            await hub.world.get(PROJECT, DEPLOYMENT, name), "ReferencedDataReady"
        )
        stated[name] = (versions, sorted(json.loads(expected)), condition and condition[:3])
    return companions, stated


async def describe(hub: DataHub, kind: Kind, companion: JsonObject) -> object:
    """All of a companion but its identity, with what its version and its owners refer to."""
    metadata, noted = metadata_of(companion), annotations_of(companion)
    name = member_text(metadata, "name")
    source = await hub.world.get(PROJECT, kind, name)
    version = f"{uid_of(source)}/{metadata_of(source)['resourceVersion']}"
    owners = [
        uid_of(await hub.copy(member_text(one, "name"))) == one["uid"] and one["name"]
        for one in member_list(metadata, "ownerReferences")
        if isinstance(one, dict)
    ]
    return (
        companion.get("data"),
        companion.get("type"),
        dict(member_object(metadata, "labels")),
        noted.get(labels.REFERENCED_BY),
        noted.get(labels.SOURCE_VERSION) == version,
        owners,
    )


def play_out(*faults: Fault) -> tuple[Run, End]:
    ends: list[tuple[dict[tuple[str, str], object], dict[str, object]]] = []

    async def scenario(world: World) -> None:
        await world.add_project(PROJECT, cities=("DFW",))
        await grant(world, "hub", HUB)
        await grant(world, "project", ROOT, PROJECT)
        await world.create(HUB, a_cluster_document("dfw-1", "DFW"))
        Operators(world).start()
        await world.sleep(2)
        hub = DataHub(world, world.processes[0])
        await live(hub)
        ends.append(await read_end(hub))

    # A process that crashes leaves unfinished work behind: that is the fault.
    done = play(scenario, *faults, is_clean=False)
    assert done.world.error_lines == []
    made = Counter(
        (commit.type, f"{commit.kind} {commit.key.rpartition('/')[2]}")
        for commit in done.history.of(Commit)
        if commit.plane == HUB
        and commit.type in {"ADDED", "DELETED"}
        and commit.kind in {"ConfigMap", "Secret"}
    )
    return done, End(*ends[0], made)


def companion_writes(done: Run) -> list[Request]:
    """The writes of the controller, of all processes."""
    return [
        one
        for process in done.world.processes
        for one in done.world.writes(process.name, plane=HUB, controller="referenced-data")
    ]


@cache
def reference() -> tuple[End, Counter[str]]:
    """The run without a fault, and its writes of companions by kind."""
    done, end = play_out()
    written = companion_writes(done)
    assert [one for one in written if one.is_refused] == []
    return end, Counter(one.address.kind for one in written)


def strike_each_write(fault_id: str, action: Action, parameters: Parameters | None = None) -> None:
    expected, writes = reference()
    wrong: list[tuple[str, int]] = []
    for kind, number in writes.items():
        for nth in range(1, number + 1):
            at = Point(plane=HUB, verb="write", kind=kind, nth=nth)
            done, end = play_out(Fault(fault_id, action, at, parameters or Parameters()))
            assert list(done.history.of(Injected)), (kind, nth)
            if end != expected:
                wrong.append((kind, nth))
    assert wrong == [], f"after {action} at these writes the end is another"


@pytest.mark.spec("RD-09", "RD-11", "RD-12", "RD-14", "RD-15", "RD-18")
def test_the_reference_run_ends_as_the_page_has_it() -> None:
    end, writes = reference()
    assert play_out()[1] == end
    assert sorted(end.companions) == [
        ("ConfigMap", "app"),
        ("Secret", "db"),
        ("Secret", "taken"),
        ("Secret", "typed"),
    ]
    ours: dict[str, Json] = {labels.REFERENCED_DATA: "true"}
    named = f'["default/{WD}"]'
    assert end.companions["ConfigMap", "app"] == ({"k": "again"}, None, ours, named, True, [WD])
    assert end.companions["Secret", "db"] == (EDITED, "Opaque", ours, named, True, [WD])
    typed = ({"k": MARKER}, "example.com/other", ours, named, True, [WD])
    assert end.companions["Secret", "typed"] == typed
    none: dict[str, Json] = {}
    foreign = ({"theirs": MARKER}, "Opaque", none, None, False, list[Json]())
    assert end.companions["Secret", "taken"] == foreign
    assert "SourceNameTaken" in str(end.stated[HOSTILE])
    assert "Mine" not in str(end.stated[HOSTILE])
    assert end.made["ADDED", "Secret taken"] == 1  # the foreign one
    assert end.made["ADDED", "Secret typed"] == end.made["ADDED", "ConfigMap app"] == 2
    assert end.made["DELETED", "Secret taken"] == 0
    assert sum(writes.values()) > 10


@pytest.mark.spec("RD-09")
@pytest.mark.fault("A1")
def test_a_crash_before_any_write_of_a_companion_changes_nothing_in_the_end() -> None:
    strike_each_write("A1", Action.CRASH_BEFORE)


@pytest.mark.spec("RD-09")
@pytest.mark.fault("A2")
def test_a_crash_after_any_write_with_the_reply_lost_changes_nothing_in_the_end() -> None:
    strike_each_write("A2", Action.CRASH_AFTER)


@pytest.mark.fault("C5")
def test_a_reply_that_is_lost_after_any_write_changes_nothing_in_the_end() -> None:
    strike_each_write("C5", Action.TIMEOUT_COMMITTED)


@pytest.mark.fault("C1", "C4")
@pytest.mark.parametrize(("status", "reason"), [(409, "Conflict"), (500, "InternalError")])
def test_a_bad_answer_to_any_write_changes_nothing_in_the_end(status: int, reason: str) -> None:
    strike_each_write("C1", Action.ERROR, Parameters(status=status, reason=reason))


@pytest.mark.fault("C1")
def test_conflicts_at_all_writes_for_a_minute_lose_nothing() -> None:
    expected, writes = reference()
    for kind in writes:
        at = Point(plane=HUB, verb="write", kind=kind, times=10)
        parameters = Parameters(status=409, reason="Conflict")
        done, end = play_out(Fault("C1", Action.ERROR, at, parameters))
        assert len(list(done.history.of(Injected))) == 10
        assert end == expected


# --- watches --------------------------------------------------------------------------------------


def strike_each_event(
    fault_id: str, action: Action, plane: str, kind: str, parameters: Parameters
) -> None:
    expected, _ = reference()
    wrong: list[int] = []
    struck, nth = True, 0
    while struck:
        nth += 1
        at = Point(plane=plane, verb="watch", kind=kind, nth=nth)
        done, end = play_out(Fault(fault_id, action, at, parameters))
        struck = bool(list(done.history.of(Injected)))
        if end != expected:
            wrong.append(nth)
    assert nth > 2, "too few events were struck to show anything"
    assert wrong == [], f"after {action} at these events the end is another"


PLACES = pytest.mark.parametrize(
    ("plane", "kind"),
    [(HUB, "Secret"), (HUB, "ConfigMap"), (PROJECT, "Secret"), (PROJECT, "ConfigMap")],
)


@PLACES
@pytest.mark.fault("B1")
def test_an_event_that_is_missing_until_the_next_list_changes_nothing_in_the_end(
    plane: str, kind: str
) -> None:
    strike_each_event("B1", Action.DROP_UNTIL_RELIST, plane, kind, Parameters())


@PLACES
@pytest.mark.fault("B5")
def test_a_stale_read_changes_nothing_in_the_end(plane: str, kind: str) -> None:
    parameters = Parameters(count=0)  # behind by all events, for the delay
    strike_each_event("B5", Action.STALE, plane, kind, parameters)
