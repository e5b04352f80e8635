"""Workload → deployments, on a simulated plane: what is made, kept, replaced and left alone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from management_builders.documents import (
    a_deployment_document,
    a_document,
    a_location_document,
    a_network_document,
    a_placement_document,
    a_template_document,
    a_workload_document,
)
from management_builders.single import deployment_names, edit_placements, play_single
from management_builders.world import (
    Process,
    World,
    condition_of,
    name_of,
    placement_of,
    play,
    shown,
    single_settings,
    spec_of,
    status_of,
    uid_of,
)

from compute_api_types import labels, names
from compute_management_operator.planes import (
    DEPLOYMENT,
    LOCATION,
    NAMESPACE,
    NETWORK,
    PROJECT,
    ROOT,
    SINGLE,
    WORKLOAD,
)
from compute_operator_kit.core.json import JsonObject, member_list, member_object
from compute_sim_planes.faults.plans import Action, Fault, Parameters, Point


@pytest.mark.spec("M-06")
def test_the_first_write_is_the_finalizer_alone_and_foreign_ones_stay() -> None:
    async def scenario(world: World, _: Process) -> None:
        document = a_workload_document()
        document["metadata"] = {
            "name": "web",
            "namespace": "default",
            "finalizers": ["example.com/theirs"],
        }
        await world.create(SINGLE, document)
        await world.sleep(1)
        existing = member_object(await world.get(SINGLE, WORKLOAD, "web"), "metadata")
        assert existing["finalizers"] == ["example.com/theirs", labels.WORKLOAD_FINALIZER]

    done = play_single(scenario)
    assert shown(done.world.writes())[:2] == [
        "patch Workload web",
        "create WorkloadDeployment web-us-dfw",
    ]


@pytest.mark.spec("M-06")
@pytest.mark.fault("B1")
def test_the_reconcile_after_the_finalizer_needs_no_event_of_its_own() -> None:
    """The event of our own patch is lost; the next event of the watch is enough."""
    lost = Fault("B1", Action.DROP, Point(plane=SINGLE, kind="Workload", nth=2))

    async def scenario(world: World, _: Process) -> None:
        await world.create(SINGLE, a_workload_document())
        await world.eventually(lambda: world.exists(SINGLE, DEPLOYMENT, "web-us-dfw"), within=120)

    play_single(scenario, lost)


@pytest.mark.spec("M-07")
def test_every_placement_and_city_gets_its_deployment_with_the_template_verbatim() -> None:
    async def scenario(world: World, _: Process) -> None:
        template = a_template_document(annotations={labels.RESTARTED_AT: "2026-02-01T00:00:00Z"})
        placements = {"us": ("DFW", "ORD"), "eu": ("LHR",)}
        made = await world.create(
            SINGLE, a_workload_document("web", placements, replicas=3, template=template)
        )
        await world.sleep(1)
        assert await deployment_names(world) == ["web-eu-lhr", "web-us-dfw", "web-us-ord"]
        existing = await world.get(SINGLE, DEPLOYMENT, "web-us-ord")
        assert spec_of(existing) == {
            "workloadRef": {"name": "web", "uid": uid_of(made)},
            "placementName": "us",
            "cityCode": "ORD",
            "template": spec_of(made)["template"],
            "scaleSettings": {"minReplicas": 3, "instanceManagementPolicy": "OrderedReady"},
        }
        metadata = member_object(existing, "metadata")
        assert metadata["labels"] == {
            labels.WORKLOAD_UID: uid_of(made),
            labels.WORKLOAD_NAME: "web",
        }
        assert metadata["ownerReferences"] == [
            {
                "apiVersion": WORKLOAD.api_version,
                "kind": "Workload",
                "name": "web",
                "uid": uid_of(made),
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ]

    play_single(scenario)


@pytest.mark.spec("M-08")
def test_an_unknown_city_is_named_delays_no_other_and_heals_by_its_location_alone() -> None:
    async def scenario(world: World, process: Process) -> None:
        placements = {"us": ("DFW",), "moon": ("TYCHO", "COPERNICUS")}
        await world.create(SINGLE, a_workload_document("web", placements))
        await world.sleep(1)
        assert await deployment_names(world) == ["web-us-dfw"]
        existing = await world.get(SINGLE, WORKLOAD, "web")
        stated = (
            "False",
            "NoMatchingLocation",
            "No location found for city codes: COPERNICUS, TYCHO",
        )
        assert condition_of(placement_of(existing, "moon"), "Available") == stated
        assert condition_of(existing, "Ready") == stated
        assert process.reasons() == ["DeploymentCreated", "NoMatchingLocation"]
        await world.create(SINGLE, a_location_document("TYCHO"))
        await world.sleep(1)
        assert await deployment_names(world) == ["web-moon-tycho", "web-us-dfw"]

    play_single(scenario)


async def delete_location(world: World) -> None:
    await world.delete(SINGLE, LOCATION, "at-dfw")


async def delete_all_locations(world: World) -> None:
    for name in await world.names(SINGLE, LOCATION):
        await world.delete(SINGLE, LOCATION, name)


async def remove_location_kind(world: World) -> None:
    await world.uninstall(SINGLE, LOCATION)


@pytest.mark.spec("M-09")
@pytest.mark.parametrize("lose", [delete_location, delete_all_locations, remove_location_kind])
def test_a_lost_location_deletes_nothing_and_edits_still_arrive(
    lose: Callable[[World], Awaitable[None]],
) -> None:
    async def scenario(world: World, _: Process) -> None:
        await world.create(SINGLE, a_workload_document())
        await world.sleep(1)
        before = await world.get(SINGLE, DEPLOYMENT, "web-us-dfw")
        await lose(world)
        await world.sleep(90)
        await edit_placements(world, a_placement_document("us", ("DFW",), replicas=7))
        await world.sleep(1)
        after = await world.get(SINGLE, DEPLOYMENT, "web-us-dfw")
        assert uid_of(after) == uid_of(before)
        assert member_object(spec_of(after), "scaleSettings")["minReplicas"] == 7

    done = play_single(scenario)
    assert done.world.writes(verb="delete") == []


@pytest.mark.spec("M-09")
def test_a_list_of_locations_that_fails_is_no_verdict_and_deletes_nothing() -> None:
    failing = Fault(
        "C4",
        Action.ERROR,
        Point(plane=SINGLE, verb="list", kind="Location", times=0),
        Parameters(status=500),
    )

    async def scenario(world: World, process: Process) -> None:
        await world.create(SINGLE, a_workload_document())
        await world.sleep(30)
        assert await deployment_names(world) == []
        existing = await world.get(SINGLE, WORKLOAD, "web")
        assert condition_of(existing, "Ready")[1] == "InstancesProvisioning"
        assert process.reasons() == []
        world.injector.disarm("C4")
        await world.eventually(lambda: world.exists(SINGLE, DEPLOYMENT, "web-us-dfw"), within=90)

    play_single(scenario, failing)


@pytest.mark.spec("M-09")
def test_a_deleted_workload_goes_although_locations_cannot_be_read() -> None:
    failing = Fault(
        "C4",
        Action.ERROR,
        Point(plane=SINGLE, verb="list", kind="Location", times=0),
        Parameters(status=500),
    )

    async def scenario(world: World, _: Process) -> None:
        await world.create(SINGLE, a_workload_document())
        await world.sleep(2)
        await world.delete(SINGLE, WORKLOAD, "web")
        await world.eventually(lambda: world.is_gone(SINGLE, WORKLOAD, "web"), within=5)

    play_single(scenario, failing)


@pytest.mark.spec("M-10")
def test_a_city_that_left_the_spec_loses_exactly_its_deployment_after_a_fresh_read() -> None:
    async def scenario(world: World, process: Process) -> None:
        await world.create(SINGLE, a_workload_document("web", {"us": ("DFW", "ORD")}))
        await world.create(SINGLE, a_workload_document("other", {"us": ("DFW", "ORD")}))
        await world.sleep(1)
        await edit_placements(world, a_placement_document("us", ("ORD",)))
        await world.sleep(1)
        assert await deployment_names(world) == ["other-us-dfw", "other-us-ord", "web-us-ord"]
        assert "DeploymentDeleted" in process.reasons()

    done = play_single(scenario)
    requests = [
        one for one in done.world.requests() if one.caller.user_agent.endswith("(workload)")
    ]
    at = next(place for place, one in enumerate(requests) if one.address.verb == "delete")
    assert shown(requests[at - 1 : at + 1]) == [
        "get Workload web",
        "delete WorkloadDeployment web-us-dfw",
    ]


@pytest.mark.spec("M-10")
@pytest.mark.fault("B5")
def test_a_stale_cache_does_not_delete_a_city_that_was_added_back() -> None:
    async def scenario(world: World, _: Process) -> None:
        await world.create(SINGLE, a_workload_document("web", {"us": ("DFW", "ORD")}))
        await world.sleep(1)
        before = await world.get(SINGLE, DEPLOYMENT, "web-us-dfw")
        stale = Fault("B5", Action.DELAY_PAST_NEXT, Point(plane=SINGLE, kind="Workload", nth=2))
        world.injector.arm(stale)
        await edit_placements(world, a_placement_document("us", ("ORD",)))
        await edit_placements(world, a_placement_document("us", ("DFW", "ORD")))
        await world.sleep(30)
        assert uid_of(await world.get(SINGLE, DEPLOYMENT, "web-us-dfw")) == uid_of(before)

    done = play_single(scenario)
    assert done.world.writes(verb="delete") == []


@pytest.mark.spec("M-11")
def test_a_deployment_of_the_same_identity_is_used_under_whatever_name() -> None:
    async def scenario(world: World) -> None:
        await world.add_project_plane(cities=("DFW",))
        made = await world.create(SINGLE, a_workload_document())
        await world.create(SINGLE, a_deployment_document("somehow-else", workload_uid=uid_of(made)))
        world.process(settings=single_settings()).start()
        await world.sleep(2)
        assert await deployment_names(world) == ["somehow-else"]
        existing = member_object(await world.get(SINGLE, DEPLOYMENT, "somehow-else"), "metadata")
        assert existing["labels"] == {
            labels.WORKLOAD_UID: uid_of(made),
            labels.WORKLOAD_NAME: "web",
        }

    play(scenario)


@pytest.mark.spec("M-12")
@pytest.mark.fault("F3")
def test_workloads_with_names_that_run_together_do_not_touch_each_other() -> None:
    async def scenario(world: World, _: Process) -> None:
        first = await world.create(SINGLE, a_workload_document("a-b", {"c": ("DFW",)}))
        await world.sleep(1)
        second = await world.create(SINGLE, a_workload_document("a", {"b-c": ("DFW",)}))
        await world.sleep(1)
        owners = {
            name_of(one): member_object(spec_of(one), "workloadRef")["uid"]
            for one in await world.listed(SINGLE, DEPLOYMENT)
        }
        hashed = names.derive_deployment_names(
            workload="a", workload_uid=uid_of(second), placement="b-c", city_code="DFW"
        ).hashed
        assert owners == {"a-b-c-dfw": uid_of(first), hashed: uid_of(second)}
        assert await world.rests() == []

    play_single(scenario)


@pytest.mark.spec("M-13")
def test_both_names_taken_is_a_collision_that_writes_nothing_of_theirs_and_heals() -> None:
    async def scenario(world: World) -> None:
        await world.add_project_plane(cities=("DFW",))
        made = await world.create(SINGLE, a_workload_document())
        both = names.derive_deployment_names(
            workload="web", workload_uid=uid_of(made), placement="us", city_code="DFW"
        )
        for name in ("web-us-dfw", both.hashed):
            theirs = a_deployment_document(name, workload_uid="another", placement="theirs")
            await world.create(SINGLE, theirs)
        process = world.process(settings=single_settings())
        process.start()
        await world.sleep(2)
        existing = await world.get(SINGLE, WORKLOAD, "web")
        stated = (
            "False",
            "NameCollision",
            'Deployment name "web-us-dfw" is taken by another workload',
        )
        assert condition_of(existing, "Available") == stated
        assert condition_of(placement_of(existing, "us"), "Available") == stated
        assert world.writes(kind="WorkloadDeployment") == []
        assert process.reasons() == ["NameCollision"]
        await world.delete(SINGLE, DEPLOYMENT, both.hashed)
        await world.sleep(1)
        healed = await world.get(SINGLE, DEPLOYMENT, both.hashed)
        assert member_object(spec_of(healed), "workloadRef")["uid"] == uid_of(made)

    play(scenario)


@pytest.mark.spec("M-14")
def test_two_spellings_of_a_city_are_one_and_another_spelling_replaces_it() -> None:
    async def scenario(world: World, _: Process) -> None:
        await world.create(SINGLE, a_location_document("dfw", "lower"))
        await world.create(SINGLE, a_workload_document("web", {"us": ("DFW", "dfw")}))
        await world.sleep(1)
        assert await deployment_names(world) == ["web-us-dfw"]
        assert await world.rests() == []
        await edit_placements(world, a_placement_document("us", ("dfw",)))
        await world.sleep(2)
        (existing,) = await world.listed(SINGLE, DEPLOYMENT)
        assert spec_of(existing)["cityCode"] == "dfw"

    play_single(scenario)


@pytest.mark.spec("M-15")
def test_missing_networks_are_named_in_order_written_once_and_healed_by_watch() -> None:
    async def scenario(world: World, process: Process) -> None:
        template = a_template_document(networks=("b", "a"))
        await world.create(SINGLE, a_workload_document(template=template))
        await world.sleep(1)
        existing = await world.get(SINGLE, WORKLOAD, "web")
        stated = ("False", "NetworkNotFound", "Unable to find networks: a, b")
        assert condition_of(existing, "Available") == stated
        assert condition_of(existing, "Ready") == stated
        assert process.reasons() == ["NetworkNotFound"]
        assert await world.rests() == []
        await world.create(SINGLE, a_network_document("a"))
        await world.create(SINGLE, a_network_document("b"))
        await world.sleep(1)
        assert await deployment_names(world) == ["web-us-dfw"]

    play_single(scenario)


@pytest.mark.spec("M-16")
def test_with_a_network_missing_status_is_written_and_orphans_are_deleted_but_nothing_created() -> (
    None
):
    async def scenario(world: World, _: Process) -> None:
        await world.create(SINGLE, a_workload_document("web", {"us": ("DFW", "ORD")}))
        await world.sleep(1)
        await world.delete(SINGLE, NETWORK, "default")
        await world.sleep(1)
        replicas: JsonObject = {"replicas": 4, "desiredReplicas": 4, "readyReplicas": 4}
        counted = {**replicas, "currentReplicas": 4, "updatedReplicas": 4, "observedGeneration": 1}
        await world.set_status(SINGLE, DEPLOYMENT, "web-us-dfw", counted)
        before = len(world.writes(kind="WorkloadDeployment"))
        cities = ("DFW", "LHR")
        await edit_placements(world, a_placement_document("us", cities, replicas=9))
        await world.sleep(1)
        after = world.writes(kind="WorkloadDeployment")[before:]
        assert shown(after) == ["delete WorkloadDeployment web-us-ord"]
        assert status_of(await world.get(SINGLE, WORKLOAD, "web"))["replicas"] == 4

    play_single(scenario)


@pytest.mark.spec("M-17")
@pytest.mark.fault("B10")
def test_a_plane_without_networking_places_everything_and_notices_it_later() -> None:
    async def scenario(world: World, _: Process) -> None:
        await world.create(SINGLE, a_workload_document("web", {"us": ("DFW",)}))
        await world.sleep(1)
        assert await deployment_names(world) == ["web-us-dfw"]
        await world.install(SINGLE, "networking.datumapis.com")
        await world.sleep(60)
        assert await deployment_names(world) == ["web-us-dfw"]
        existing = await world.get(SINGLE, WORKLOAD, "web")
        assert condition_of(existing, "Ready")[1] == "NetworkNotFound"
        await world.create(SINGLE, a_network_document("default"))
        await world.sleep(1)
        existing = await world.get(SINGLE, WORKLOAD, "web")
        assert condition_of(existing, "Ready")[1] == "NoMatchingLocation"
        await world.create(SINGLE, a_workload_document("late"))
        await world.sleep(1)
        assert await deployment_names(world) == ["web-us-dfw"]

    done = play_single(scenario, has_networking=False)
    assert done.world.writes(verb="delete") == []


@pytest.mark.spec("M-18")
def test_foreign_marks_survive_and_a_users_edit_of_the_spec_does_not() -> None:
    async def scenario(world: World, _: Process) -> None:
        await world.create(SINGLE, a_workload_document())
        await world.sleep(1)
        before = await world.get(SINGLE, DEPLOYMENT, "web-us-dfw")
        await world.patch(
            SINGLE,
            DEPLOYMENT,
            "web-us-dfw",
            {
                "metadata": {
                    "labels": {"theirs": "1", labels.WORKLOAD_UID: "forged"},
                    "annotations": {"theirs": "2"},
                    "finalizers": ["example.com/theirs"],
                },
                "spec": {"scaleSettings": {"minReplicas": 500, "maxReplicas": 501}},
            },
        )
        await world.sleep(1)
        existing = await world.get(SINGLE, DEPLOYMENT, "web-us-dfw")
        metadata = member_object(existing, "metadata")
        own = member_object(member_object(before, "metadata"), "labels")
        assert metadata["labels"] == {"theirs": "1", **own}
        assert metadata["annotations"] == {"theirs": "2"}
        assert metadata["finalizers"] == ["example.com/theirs"]
        assert spec_of(existing) == spec_of(before)

    play_single(scenario)


@pytest.mark.spec("M-22")
def test_a_settled_workload_costs_no_write_for_ten_resyncs() -> None:
    async def scenario(world: World, _: Process) -> None:
        placements = {"us": ("DFW", "ORD"), "moon": ("TYCHO",)}
        await world.create(SINGLE, a_workload_document("web", placements))
        await world.sleep(5)
        before = await world.get(SINGLE, WORKLOAD, "web")
        assert await world.rests() == []
        assert await world.get(SINGLE, WORKLOAD, "web") == before

    play_single(scenario)


@pytest.mark.spec("M-23")
def test_a_deleted_workload_waits_for_its_deployments_and_removes_only_its_own_mark() -> None:
    async def scenario(world: World, _: Process) -> None:
        await world.create(SINGLE, a_workload_document("web", {"us": ("DFW", "ORD")}))
        await world.create(SINGLE, a_workload_document("other"))
        await world.sleep(1)
        held = {"metadata": {"finalizers": ["example.com/theirs"]}}
        await world.patch(SINGLE, DEPLOYMENT, "web-us-dfw", held)
        added = {"metadata": {"finalizers": [labels.WORKLOAD_FINALIZER, "example.com/theirs"]}}
        await world.patch(SINGLE, WORKLOAD, "web", added)
        await world.delete(SINGLE, WORKLOAD, "web")
        await world.sleep(30)
        existing = await world.get(SINGLE, WORKLOAD, "web")
        assert condition_of(existing, "Ready") == (
            "False",
            "Terminating",
            "Waiting for deployments to go: web-us-dfw",
        )
        assert labels.WORKLOAD_FINALIZER in member_list(
            member_object(existing, "metadata"), "finalizers"
        )
        await world.patch(SINGLE, DEPLOYMENT, "web-us-dfw", {"metadata": {"finalizers": []}})
        await world.sleep(1)
        left = member_object(await world.get(SINGLE, WORKLOAD, "web"), "metadata")
        assert left["finalizers"] == ["example.com/theirs"]
        assert await deployment_names(world) == ["other-us-dfw"]

    done = play_single(scenario)
    verbs = [(one.address.verb, one.address.kind) for one in done.world.requests()]
    assert ("list", "WorkloadDeployment") in verbs[verbs.index(("delete", "WorkloadDeployment")) :]


@pytest.mark.spec("M-24")
@pytest.mark.fault("C6")
def test_a_refused_deployment_stops_neither_the_others_nor_status_and_is_recorded_once() -> None:
    refused = Fault(
        "C6",
        Action.ERROR,
        Point(
            plane=SINGLE,
            verb="create",
            kind="WorkloadDeployment",
            key="default/web-us-dfw",
            times=0,
        ),
        Parameters(status=422, reason="Invalid"),
    )

    async def scenario(world: World, process: Process) -> None:
        await world.create(SINGLE, a_workload_document("web", {"us": ("DFW", "ORD")}))
        await world.sleep(5)
        assert await deployment_names(world) == ["web-us-ord"]
        assert status_of(await world.get(SINGLE, WORKLOAD, "web"))["deployments"] == 1
        for replicas in range(1, 5):
            await world.set_status(
                SINGLE, DEPLOYMENT, "web-us-ord", {"replicas": replicas, "desiredReplicas": 5}
            )
            await world.sleep(20)
        assert process.reasons().count("DeploymentRejected") == 1
        world.injector.disarm("C6")
        await world.sleep(45 * 60)
        assert await deployment_names(world) == ["web-us-dfw", "web-us-ord"]

    play_single(scenario, refused)


@pytest.mark.fault("C4", "C6")
@pytest.mark.parametrize("status", [403, 500])
def test_a_finalizer_that_cannot_be_added_is_not_tried_in_a_hot_loop(status: int) -> None:
    failing = Fault(
        "C6",
        Action.ERROR,
        Point(plane=SINGLE, verb="patch", kind="Workload", times=0),
        Parameters(status=status),
    )

    async def scenario(world: World, _: Process) -> None:
        await world.create(SINGLE, a_workload_document())
        await world.sleep(120)
        assert 2 <= len(world.writes()) <= 12
        assert await deployment_names(world) == []
        world.injector.disarm("C6")
        await world.sleep(75)
        assert await deployment_names(world) == ["web-us-dfw"]

    play_single(scenario, failing, is_clean=False)


@pytest.mark.spec("M-25")
def test_a_deployment_deleted_by_a_user_comes_back_once_it_is_gone() -> None:
    async def scenario(world: World, _: Process) -> None:
        await world.create(SINGLE, a_workload_document())
        await world.sleep(1)
        before = await world.get(SINGLE, DEPLOYMENT, "web-us-dfw")
        held = {"metadata": {"finalizers": ["example.com/theirs"]}}
        await world.patch(SINGLE, DEPLOYMENT, "web-us-dfw", held)
        await world.delete(SINGLE, DEPLOYMENT, "web-us-dfw")
        await world.sleep(30)
        assert await deployment_names(world) == ["web-us-dfw"]
        await world.patch(SINGLE, DEPLOYMENT, "web-us-dfw", {"metadata": {"finalizers": []}})
        await world.sleep(1)
        assert uid_of(await world.get(SINGLE, DEPLOYMENT, "web-us-dfw")) != uid_of(before)

    play_single(scenario)


@pytest.mark.spec("M-25", "M-87")
def test_nothing_is_recreated_in_a_project_or_namespace_that_goes() -> None:
    async def scenario(world: World) -> None:
        await world.add_project("acme", cities=("DFW",))
        await world.add_project("beta", cities=("DFW",))
        world.process().start()
        await world.create("acme", a_workload_document())
        await world.create("beta", a_workload_document())
        await world.eventually(lambda: world.exists("acme", DEPLOYMENT, "web-us-dfw"))
        await world.sleep(90)  # by then every status without a cell's answer has been written
        held = {"metadata": {"finalizers": ["resourcemanager.miloapis.com/project-controller"]}}
        await world.patch(ROOT, PROJECT, "acme", held)
        await world.delete(ROOT, PROJECT, "acme")
        await world.sleep(1)
        before = len(world.writes(plane="beta"))
        await world.delete("acme", WORKLOAD, "web")
        await world.eventually(lambda: world.is_gone("acme", WORKLOAD, "web"))
        await world.create("acme", a_workload_document("late"))
        await world.sleep(60)
        assert await world.names("acme", DEPLOYMENT) == []
        assert len(world.writes(plane="beta")) == before

    play(scenario)


@pytest.mark.spec("M-25")
@pytest.mark.fault("C6")
def test_a_namespace_that_goes_refuses_once_and_is_left_in_peace() -> None:
    async def scenario(world: World, _: Process) -> None:
        await world.create(SINGLE, a_document(NAMESPACE, "team"))
        await world.create(SINGLE, a_network_document("default", "team"))
        await world.create(SINGLE, a_workload_document(namespace="team"))
        await world.sleep(1)
        held = {"metadata": {"finalizers": ["example.com/theirs"]}}
        await world.patch(SINGLE, DEPLOYMENT, "web-us-dfw", held, "team")
        await world.delete(SINGLE, NAMESPACE, "team")
        await world.sleep(5)
        await world.patch(
            SINGLE, DEPLOYMENT, "web-us-dfw", {"metadata": {"finalizers": []}}, "team"
        )
        await world.eventually(lambda: world.is_gone(SINGLE, NAMESPACE, "team"))

    done = play_single(scenario)
    assert len(done.world.writes(verb="create")) <= 2
