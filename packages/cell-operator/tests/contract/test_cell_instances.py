"""Instances in a simulated cell: their two conditions, their Quota gate, and what is not ours in
them (cell.md 8 to 10).
"""

from __future__ import annotations

import itertools
from datetime import timedelta

import orjson
import pytest
from cell_builders.documents import (
    NS,
    PROJECT,
    a_deployment_document,
    a_namespace_document,
    an_instance_document,
)
from cell_builders.milo import BUDGET
from cell_builders.world import (
    QUOTA_ON,
    World,
    condition_of,
    gates_of,
    generation_of,
    play,
    settings_of,
    status_of,
    uid_of,
)

from compute_api_types.labels import RETIRED_INSTANCE_FINALIZERS
from compute_cell_operator.planes import CELL, DEPLOYMENT, HUB, INSTANCE, NAMESPACE, NETWORK_BINDING
from compute_operator_kit.core.json import Json, JsonObject, member_list, member_object, member_text
from compute_sim_planes.faults.plans import Action, Fault, Parameters, Point
from compute_sim_planes.history import Commit, Request

NOTHING = dict.fromkeys(BUDGET, 0)
PROVIDERS = ("Available", "Programmed")


async def begin(world: World, replicas: int = 1, *, networking: str = "off") -> None:
    """A running deployment with granted quota."""
    await world.add_milo()
    world.start_neighbours()
    world.process(settings=settings_of(quota=QUOTA_ON, networking=networking)).start()
    await world.federate()
    await world.deliver("web", replicas)
    await world.eventually(world.is_converged)
    await world.eventually(lambda: world.has_copies(*(f"web-{i}" for i in range(replicas))))


def instance_writes(world: World, identity: str = "operator") -> list[Request]:
    return world.writes(identity, plane=CELL, kind=INSTANCE.kind)


def entries_of(found: JsonObject, *types: str) -> list[Json]:
    return [
        entry
        for entry in member_list(status_of(found), "conditions")
        if isinstance(entry, dict) and entry.get("type") in types
    ]


# --- status ---------------------------------------------------------------------------------------


@pytest.mark.spec("C-54")
@pytest.mark.parametrize("budget", [BUDGET, NOTHING])
def test_the_conditions_of_the_provider_are_never_changed(budget: dict[str, int]) -> None:
    async def scenario(world: World) -> None:
        await world.add_milo(budget)
        world.process(settings=settings_of(quota=QUOTA_ON, networking="off")).start()
        await world.create(CELL, a_deployment_document("web", 1))
        await world.eventually(lambda: world.has_instances("web-0"))
        words: JsonObject = {
            "lastTransitionTime": "2026-01-02T03:04:05Z",
            "message": "mine",
            "observedGeneration": 7,
            "reason": "Odd",
        }
        told: list[Json] = [{"type": kind, "status": "False", **words} for kind in PROVIDERS]
        await world.set_status(CELL, INSTANCE, "web-0", {"conditions": told})
        before = entries_of(await world.instance("web-0"), *PROVIDERS)
        await world.sleep(120)
        after = await world.instance("web-0")
        assert entries_of(after, *PROVIDERS) == before
        assert condition_of(after, "Ready")[0] == "False"
        quota = "True" if budget == BUDGET else "False"
        assert condition_of(after, "QuotaGranted")[0] == quota

    done = play(scenario)
    assert done.world.provider.violations == []


@pytest.mark.spec("C-57")
def test_a_concurrent_change_of_the_provider_survives_our_conflict() -> None:
    async def scenario(world: World) -> None:
        await begin(world)
        await world.stop_neighbours()
        began = len(instance_writes(world))
        # What the operator sees is a moment old: the provider writes in between, each time.
        for turn in range(5):
            broken: Json = {
                "type": "Available",
                "status": "False",
                "reason": "Failed" if turn % 2 else "Stopping",
                "message": f"turn {turn}",
                "lastTransitionTime": "2026-03-01T00:00:00Z",
            }
            programmed = entries_of(await world.instance("web-0"), "Programmed")
            await world.set_status(CELL, INSTANCE, "web-0", {"conditions": [broken, *programmed]})
            extra: JsonObject = {"controller": {"observedTemplateHash": f"v1-{turn:016x}"}}
            await world.set_status(CELL, INSTANCE, "web-0", extra)
            await world.sleep(0.3)
        await world.sleep(5)
        found = await world.instance("web-0")
        assert condition_of(found, "Available")[2] == "turn 4"
        echo = member_text(member_object(status_of(found), "controller"), "observedTemplateHash")
        assert echo == f"v1-{4:016x}"
        assert condition_of(found, "Ready") == ("False", "Stopping", "turn 4")
        assert condition_of(found, "QuotaGranted")[0] == "True"
        written = instance_writes(world)[began:]
        assert written
        assert await world.rests() == []

    play(scenario)


@pytest.mark.spec("C-57")
@pytest.mark.fault("C1")
def test_conflicts_on_instances_are_met_by_reading_again() -> None:
    async def scenario(world: World) -> None:
        await begin(world)
        assert condition_of(await world.instance("web-0"), "Ready")[0] == "True"

    at = Point(plane=CELL, verb="update", kind=INSTANCE.kind, times=0, every=2)
    conflict = Parameters(status=409, reason="Conflict")
    play(scenario, Fault("C1", Action.ERROR, at, conflict))


@pytest.mark.spec("C-58")
def test_quota_is_reported_although_the_network_cannot_be_read() -> None:
    async def scenario(world: World) -> None:
        await world.add_milo(NOTHING)
        world.start_neighbours()
        world.process(settings=settings_of(quota=QUOTA_ON, networking="on")).start()
        await world.create(CELL, a_deployment_document("web", 1))

        async def is_told() -> bool:
            found = await world.find(CELL, INSTANCE, "web-0")
            return found is not None and condition_of(found, "QuotaGranted")[0] == "False"

        await world.eventually(is_told)

    at = Point(plane=CELL, verb="list", kind=NETWORK_BINDING.kind, times=0)
    play(scenario, Fault("C4", Action.ERROR, at, Parameters(status=500)))


@pytest.mark.spec("C-59")
def test_a_terminating_instance_shows_it_and_is_not_changed_otherwise() -> None:
    async def scenario(world: World) -> None:
        milo = await world.add_milo()
        held = an_instance_document("lone-0")
        member_object(held, "metadata")["finalizers"] = ["test/hold"]
        await world.create(CELL, held)
        await world.delete(CELL, INSTANCE, "lone-0")
        world.process(settings=settings_of(quota=QUOTA_ON)).start()
        await world.sleep(60)
        found = await world.instance("lone-0")
        assert condition_of(found, "Ready") == (
            "False",
            "Terminating",
            'Instance is being deleted; deletion waits for finalizer "test/hold"',
        )
        assert gates_of(found) == ["Quota"]
        assert await milo.claims() == {}

    play(scenario)


@pytest.mark.spec("C-59")
def test_an_instance_that_vanishes_during_the_write_is_no_error() -> None:
    async def scenario(world: World) -> None:
        await begin(world)
        await world.sleep(60)
        await world.scale("web", 0)
        await world.eventually(world.has_instances)
        await world.sleep(30)
        late = [one for one in instance_writes(world) if one.status == 404]
        assert len(late) == 1

    # The event of its deletion arrives after the Instance is gone.
    at = Point(plane=CELL, verb="update", kind=INSTANCE.kind, after=timedelta(seconds=50))
    play(scenario, Fault("C5", Action.DELAY, at, Parameters(delay=timedelta(seconds=5))))


@pytest.mark.spec("C-60")
@pytest.mark.fault("F6", "G4")
def test_duplicates_control_characters_and_endless_messages_give_a_valid_write() -> None:
    async def scenario(world: World) -> None:
        await begin(world)
        await world.stop_neighbours()
        endless = "\x1b[31mred\x07" + "x" * 32_000  # the schema takes no more
        mess: list[Json] = [
            _entry("Ready", "True", "Old", "first"),
            _entry("Theirs", "False", "ImageUnavailable", endless),
            _entry("Ready", "Unknown", "Older", "second"),
            _entry("Theirs", "True", "Fine", "twice"),
            _entry("Programmed", "False", "ImageUnavailable", endless),
            _entry("QuotaGranted", "True", "QuotaAvailable", "kept"),
        ]
        await world.set_status(CELL, INSTANCE, "web-0", {"conditions": mess})
        theirs = entries_of(await world.instance("web-0"), "Theirs", "Programmed")
        await world.sleep(10)
        found = await world.instance("web-0")
        types = [
            member_text(entry, "type")
            for entry in member_list(status_of(found), "conditions")
            if isinstance(entry, dict)
        ]
        assert types.count("Ready") == 1
        assert types.count("Theirs") == 2
        assert entries_of(found, "Theirs", "Programmed") == theirs
        status, reason, message = condition_of(found, "Ready")
        assert (status, reason) == ("False", "ImageUnavailable")
        assert len(message) <= 1024
        assert not any(ord(character) < 32 for character in message)
        assert await world.rests() == []

    play(scenario)


def _entry(kind: str, status: str, reason: str, message: str) -> Json:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": "2026-03-01T00:00:00Z",
    }


# --- the gate -------------------------------------------------------------------------------------


@pytest.mark.spec("C-61")
def test_a_grant_is_persisted_and_opens_its_gate_in_one_pass() -> None:
    async def scenario(world: World) -> None:
        world.nso.options.is_context_never_ready = True
        await world.add_milo()
        world.start_neighbours()
        world.process(settings=settings_of(quota=QUOTA_ON, networking="on")).start()
        await world.create(CELL, a_deployment_document("web", 1))

        async def is_open() -> bool:
            found = await world.find(CELL, INSTANCE, "web-0")
            return found is not None and gates_of(found) == ["Network"]

        await world.eventually(is_open)
        found = await world.instance("web-0")
        assert condition_of(found, "QuotaGranted")[:2] == ("True", "QuotaAvailable")
        # Once it is open there is nothing left to do about it.
        await world.sleep(5)
        patches = [one for one in instance_writes(world) if one.address.verb == "patch"]
        assert len(patches) == 1

    done = play(scenario)
    writes = [
        one
        for one in instance_writes(done.world)
        if one.address.verb == "patch" or b'"reason":"QuotaAvailable"' in _after(one)
    ]
    assert [one.address.verb for one in writes[:2]] == ["update", "patch"]
    assert writes[0].at == writes[1].begun


def _after(request: Request) -> bytes:
    return b"".join(commit.after for commit in request.commits)


@pytest.mark.spec("C-61", "C-62")
def test_a_grant_that_could_not_be_persisted_opens_nothing() -> None:
    async def scenario(world: World) -> None:
        await world.add_milo()
        world.process(settings=settings_of(quota=QUOTA_ON, networking="off")).start()
        await world.create(CELL, a_deployment_document("web", 1))
        await world.sleep(15)
        assert gates_of(await world.instance("web-0")) == ["Quota"]
        await world.sleep(30)
        found = await world.instance("web-0")
        assert gates_of(found) == []
        assert condition_of(found, "QuotaGranted")[0] == "True"

    at = Point(plane=CELL, verb="update", kind=INSTANCE.kind, times=0, until=timedelta(seconds=18))
    play(scenario, Fault("C8", Action.ERROR, at, Parameters(status=500)))


@pytest.mark.spec("C-61")
@pytest.mark.fault("A6")
@pytest.mark.parametrize("action", [Action.CRASH_BEFORE, Action.CRASH_AFTER])
def test_a_crash_between_grant_and_gate_is_made_up_at_the_next_start(action: Action) -> None:
    async def scenario(world: World) -> None:
        milo = await world.add_milo()
        world.start_neighbours()
        first = world.process(settings=settings_of(quota=QUOTA_ON, networking="off"))
        first.start()
        await world.create(CELL, a_deployment_document("web", 1))
        await world.sleep(5)
        assert first.life.is_dead
        await first.kill()
        before = {name: uid_of(claim) for name, claim in (await milo.claims()).items()}
        world.process("operator-2", settings_of(quota=QUOTA_ON, networking="off")).start()
        await world.eventually(world.is_converged)
        assert {name: uid_of(claim) for name, claim in (await milo.claims()).items()} == before

    at = Point(plane=CELL, verb="patch", kind=INSTANCE.kind)
    play(scenario, Fault("A6", action, at), is_clean=False)


@pytest.mark.spec("C-62")
@pytest.mark.fault("G7")
@pytest.mark.parametrize("what", ["resize", "delete"])
def test_a_resize_or_a_delete_after_the_judgement_keeps_the_gate(what: str) -> None:
    """The status with the grant is stored; before the gate goes, the Instance becomes another."""
    bigger: JsonObject = {"spec": {"runtime": {"resources": {"requests": {"cpu": "15"}}}}}

    async def scenario(world: World) -> None:
        milo = await world.add_milo()
        world.process(settings=settings_of(quota=QUOTA_ON, networking="off")).start()
        await world.create(CELL, a_deployment_document("web", 1))

        async def is_granted() -> bool:
            found = await world.find(CELL, INSTANCE, "web-0")
            return found is not None and condition_of(found, "QuotaGranted")[0] == "True"

        await world.eventually(is_granted)
        milo.milo.options.pause()
        if what == "resize":
            await world.patch(CELL, INSTANCE, "web-0", bigger)
        else:
            await world.patch(CELL, INSTANCE, "web-0", {"metadata": {"finalizers": ["test/hold"]}})
            await world.delete(CELL, INSTANCE, "web-0")
        await world.sleep(20)
        found = await world.instance("web-0")
        assert gates_of(found) == ["Quota"]
        if what == "resize":
            # Its own size is judged anew, and only that grant opens the gate.
            milo.milo.options.resume()
            await world.sleep(10)
            found = await world.instance("web-0")
            assert gates_of(found) == []
            claim = (await milo.claims())["instance-web-0"]
            assert "15000" in str(claim["spec"])

    # The first removal of the gate takes two seconds: long enough for another writer.
    at = Point(plane=CELL, verb="patch", kind=INSTANCE.kind)
    play(scenario, Fault("C5", Action.DELAY, at, Parameters(delay=timedelta(seconds=2))))


@pytest.mark.spec("C-62")
def test_a_grant_of_an_older_generation_is_refreshed_before_it_opens_anything() -> None:
    async def scenario(world: World) -> None:
        await world.add_milo()
        held: JsonObject = {
            "conditions": [
                {
                    **_dict(_entry("QuotaGranted", "True", "QuotaAvailable", "m")),
                    "observedGeneration": 0,
                }
            ]
        }
        await world.create(CELL, a_deployment_document("web", 1))
        await world.create(CELL, an_instance_document("lone-0"))
        await world.set_status(CELL, INSTANCE, "lone-0", held)
        world.process(settings=settings_of(quota=QUOTA_ON, networking="off")).start()
        await world.sleep(10)

    done = play(scenario)
    lone = [
        commit
        for commit in done.history.of(Commit)
        if commit.plane == CELL and commit.key == f"{NS}/lone-0" and commit.before
    ]
    opened = next(i for i, commit in enumerate(lone) if b'"name":"Quota"' not in commit.after)
    refreshed = next(i for i, commit in enumerate(lone) if _granted_generation(commit) == 1)
    assert refreshed < opened


def _dict(found: Json) -> JsonObject:
    assert isinstance(found, dict)
    return found


def _granted_generation(commit: Commit) -> int:
    body = orjson.loads(commit.after)
    for entry in body.get("status", {}).get("conditions", []):
        if entry["type"] == "QuotaGranted" and entry["status"] == "True":
            return int(entry.get("observedGeneration", 0))
    return 0


@pytest.mark.spec("C-63")
@pytest.mark.parametrize("seed", range(5))
def test_both_gates_go_in_any_order_and_none_comes_back(seed: int) -> None:
    async def scenario(world: World) -> None:
        random = world.clock.random("delays")
        milo = await world.add_milo()
        milo.milo.options.evaluation_delay = timedelta(seconds=random.random())
        world.nso.options.context_delay = timedelta(seconds=random.random())
        world.start_neighbours()
        world.process(settings=settings_of(quota=QUOTA_ON, networking="on")).start()
        await world.create(CELL, a_deployment_document("web", 3))
        await world.eventually(world.is_converged)

    done = play(scenario, seed=seed)
    for name in ("web-0", "web-1", "web-2"):
        gates = [
            {gate for gate in (b"Network", b"Quota") if b'"name":"' + gate + b'"' in commit.after}
            for commit in done.history.of(Commit)
            if commit.plane == CELL and commit.key == f"{NS}/{name}" and commit.after
        ]
        assert gates[0] == {b"Network", b"Quota"}
        assert gates[-1] == set()
        assert all(later <= earlier for earlier, later in itertools.pairwise(gates))


@pytest.mark.spec("C-64")
@pytest.mark.fault("D6")
def test_an_outage_of_quota_changes_nothing_on_what_runs() -> None:
    async def scenario(world: World) -> None:
        await begin(world, 2)
        await world.sleep(30)
        assert world.milo is not None
        world.milo.milo.make_unavailable(PROJECT)
        before = len(world.writes())
        await world.sleep(600)
        assert world.writes()[before:] == []
        world.milo.milo.make_available(PROJECT)
        await world.sleep(120)
        assert world.writes()[before:] == []

    play(scenario)


@pytest.mark.spec("C-65")
@pytest.mark.fault("E4", "G9")
@pytest.mark.parametrize("terminating", [False, True])
def test_finalizers_of_the_older_operator_go_and_none_of_ours_comes(*, terminating: bool) -> None:
    async def scenario(world: World) -> None:
        await begin(world)
        await world.stop_neighbours()
        old: list[Json] = [*RETIRED_INSTANCE_FINALIZERS, "tenant/own"]
        await world.processes[0].stop()
        await world.patch(CELL, INSTANCE, "web-0", {"metadata": {"finalizers": old}})
        if terminating:
            await world.delete(CELL, INSTANCE, "web-0")
        world.process("operator-2", settings_of(quota=QUOTA_ON, networking="off")).start()
        await world.sleep(10)
        found = await world.instance("web-0")
        assert member_object(found, "metadata")["finalizers"] == ["tenant/own"]
        assert generation_of(found) >= 1

    done = play(scenario)
    ours = [
        commit
        for commit in done.history.of(Commit)
        if commit.kind in {INSTANCE.kind, DEPLOYMENT.kind} and commit.plane in {CELL, HUB}
    ]
    for finalizer in RETIRED_INSTANCE_FINALIZERS:
        added = [one for one in ours if finalizer.encode() in one.after and one.actor != "user"]
        assert all(finalizer.encode() in one.before for one in added)


# --- identity -------------------------------------------------------------------------------------


@pytest.mark.spec("C-86")
@pytest.mark.fault("F5")
@pytest.mark.parametrize(
    ("label", "value"),
    [
        ("upstream-cluster-name", None),
        ("upstream-cluster-name", "acme"),
        ("upstream-cluster-name", "cluster-a..b"),
        ("upstream-cluster-name", "cluster-a_..b"),
        ("upstream-namespace", None),
        ("upstream-namespace", "a.b"),
    ],
)
def test_a_namespace_without_a_project_is_reported_with_its_label(
    label: str, value: str | None
) -> None:
    async def scenario(world: World) -> None:
        milo = await world.add_milo()
        world.start_neighbours()
        key = f"meta.datumapis.com/{label}"
        await world.patch(CELL, NAMESPACE, NS, {"metadata": {"labels": {key: value}}})
        process = world.process(settings=settings_of(quota=QUOTA_ON, networking="off"))
        process.start()
        await world.create(CELL, a_deployment_document("web", 1))
        await world.sleep(60)
        found = await world.instance("web-0")
        status, reason, message = condition_of(found, "QuotaGranted")
        assert (status, reason) == ("False", "QuotaProjectIDUnresolvable")
        assert NS in message
        assert key in message
        assert await milo.claims() == {}
        assert process.reasons(kind=INSTANCE).count("QuotaProjectIDUnresolvable") == 1
        counted = process.measures.total(
            "compute_quota_eval_failures_total", reason="project_id_unresolvable"
        )
        assert counted == 1
        whole = member_object(member_object(a_namespace_document(), "metadata"), "labels")
        await world.patch(CELL, NAMESPACE, NS, {"metadata": {"labels": whole}})
        await world.eventually(world.is_converged)

    play(scenario)


@pytest.mark.spec("C-86")
def test_the_last_segment_of_the_label_is_the_project() -> None:
    async def scenario(world: World) -> None:
        milo = await world.add_milo()
        world.start_neighbours()
        name = "meta.datumapis.com/upstream-cluster-name"
        labels: JsonObject = {name: f"cluster-org_{PROJECT}"}
        await world.patch(CELL, NAMESPACE, NS, {"metadata": {"labels": labels}})
        world.process(settings=settings_of(quota=QUOTA_ON, networking="off")).start()
        await world.create(CELL, a_deployment_document("web", 1))
        await world.eventually(world.is_converged)
        assert list(await milo.claims()) == ["instance-web-0"]

    play(scenario)


# --- what is measured -----------------------------------------------------------------------------


def test_waiting_instances_are_counted_by_reason_and_the_wait_is_measured() -> None:
    async def scenario(world: World) -> None:
        milo = await world.add_milo(NOTHING)
        world.start_neighbours()
        process = world.process(settings=settings_of(quota=QUOTA_ON, networking="off"))
        process.start()
        await world.create(CELL, a_deployment_document("web", 1))
        await world.sleep(20)
        gauges = process.measures.gauges
        waiting = ("compute_quota_waiting_instances", (("reason", "QuotaExceeded"),))
        assert gauges[waiting] == 1
        await milo.grant(BUDGET, "more")
        await world.eventually(world.is_converged, within=180)
        await world.sleep(5)
        assert gauges[waiting] == 0
        assert gauges[("compute_quota_enforcement_enabled", ())] == 1
        (wait,) = process.measures.values[("compute_quota_wait_seconds", ())]
        assert wait > 20
        (opened,) = process.measures.values[("compute_quota_grant_to_ungate_seconds", ())]
        assert opened <= 0.25

    play(scenario)
