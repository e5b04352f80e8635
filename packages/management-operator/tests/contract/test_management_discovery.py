"""Projects come, go and misbehave while the operator runs."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pytest
from management_builders.documents import a_project_document, a_workload_document
from management_builders.world import (
    Process,
    World,
    condition_of,
    member_of,
    play,
    settings_of,
    single_settings,
)

from compute_api_types.names import NamingError
from compute_kubeconfig.problems import ConfigurationError
from compute_management_operator.discovery.plan import derive_project_url
from compute_management_operator.planes import (
    DEPLOYMENT,
    HUB,
    INSTANCE,
    LOCATION,
    NETWORK,
    PROJECT,
    ROOT,
    SINGLE,
    WORKLOAD,
)
from compute_operator_kit.core.keys import PlaneName, Role
from compute_sim_planes.faults.links import LinkState
from compute_sim_planes.faults.plans import Action, Fault, Parameters, Point


def engaged(process: Process) -> tuple[str, ...]:
    return process.operator.planes.planes(Role.PROJECT)


@pytest.mark.spec("M-80")
def test_a_project_is_engaged_once_ready_and_stays_until_it_is_gone() -> None:
    async def scenario(world: World) -> None:
        await world.add_project("acme", cities=("DFW",), is_ready=False)
        process = world.process()
        process.start()
        await world.sleep(2)
        assert engaged(process) == ()
        await world.set_project_ready("acme")
        await world.sleep(1)
        assert engaged(process) == ("acme",)
        await world.set_project_ready("acme", is_ready=False)
        await world.sleep(1)
        assert engaged(process) == ("acme",)
        held = {"metadata": {"finalizers": ["resourcemanager.miloapis.com/project-controller"]}}
        await world.patch(ROOT, PROJECT, "acme", held)
        await world.delete(ROOT, PROJECT, "acme")
        await world.create("acme", a_workload_document())
        await world.sleep(1)
        assert engaged(process) == ("acme",)
        await world.patch(ROOT, PROJECT, "acme", {"metadata": {"finalizers": []}})
        await world.sleep(1)
        assert engaged(process) == ()
        passes = len(process.spans.history.entries)
        await world.delete("acme", WORKLOAD, "web")
        await world.sleep(60)
        assert [
            one for one in process.spans.history.entries[passes:] if "acme://" in str(one)
        ] == []

    play(scenario)


@pytest.mark.spec("M-80")
def test_a_project_that_vanished_unseen_is_noticed_by_the_next_list() -> None:
    async def scenario(world: World) -> None:
        for name in ("acme", "beta"):
            await world.add_project(name)
        process = world.process()
        process.start()
        await world.sleep(1)
        world.links[ROOT].cut(LinkState.REFUSED)
        await world.delete(ROOT, PROJECT, "acme")
        world.planes[ROOT].state.store.compact()
        await world.sleep(5)
        assert engaged(process) == ("acme", "beta")
        world.links[ROOT].heal()
        await world.sleep(60)
        assert engaged(process) == ("beta",)

    play(scenario)


@pytest.mark.spec("M-80")
def test_a_project_that_is_back_under_its_name_is_engaged_anew() -> None:
    async def scenario(world: World) -> None:
        await world.add_project("acme", cities=("DFW",))
        process = world.process()
        process.start()
        await world.sleep(1)
        before = process.operator.planes.get(PlaneName("acme"))
        await world.delete(ROOT, PROJECT, "acme")
        await world.create(ROOT, a_project_document("acme"))
        await world.set_project_ready("acme")
        await world.sleep(1)
        after = process.operator.planes.get(PlaneName("acme"))
        assert after is not before
        assert after.plane.uid == member_of(await world.get(ROOT, PROJECT, "acme"), "uid")
        await world.create("acme", a_workload_document())
        await world.eventually(lambda: world.exists("acme", DEPLOYMENT, "web-us-dfw"))

    play(scenario)


@pytest.mark.spec("M-81")
@pytest.mark.parametrize(
    "base", ["https://milo.example:6443", "https://milo.example:6443/some/path?query=1"]
)
def test_the_address_of_a_project_replaces_the_path_of_the_base(base: str) -> None:
    path = "/apis/resourcemanager.miloapis.com/v1alpha1/projects/acme/control-plane"
    assert derive_project_url(base, "acme") == f"https://milo.example:6443{path}"


@pytest.mark.spec("M-81")
@pytest.mark.parametrize("name", ["a/../b", "A", "a" * 64, "%2e", "", "..", "a.b", "a b", "ä"])
def test_no_address_is_made_of_a_name_that_is_no_label(name: str) -> None:
    with pytest.raises(NamingError):
        derive_project_url("https://milo.example", name)


@pytest.mark.spec("M-81")
@pytest.mark.parametrize("name", ["a.b", "a" * 64])
def test_a_project_with_such_a_name_is_never_asked_anything(name: str) -> None:
    async def scenario(world: World) -> None:
        await world.add_project("acme")
        await world.create(ROOT, a_project_document(name))
        await world.set_project_ready(name)
        process = world.process()
        process.start()
        await world.sleep(60)
        assert engaged(process) == ("acme",)
        assert {one.address.plane for one in world.requests()} <= {"@root", "@hub", "acme"}
        assert process.measures.gauges["compute_projects_failing", ()] == 1

    play(scenario)


BAD_PROJECTS = {
    "hangs": Fault("D2", Action.TIMEOUT, Point(plane="bad", times=0)),
    "breaks": Fault("C4", Action.ERROR, Point(plane="bad", times=0), Parameters(status=500)),
    "refuses": Fault("C6", Action.ERROR, Point(plane="bad", times=0), Parameters(status=401)),
}


@pytest.mark.spec("M-82")
@pytest.mark.fault("D2")
@pytest.mark.parametrize("way", sorted(BAD_PROJECTS))
def test_one_bad_project_delays_no_other_and_heals_without_restart(way: str) -> None:
    fault = BAD_PROJECTS[way]
    others = [f"project-{number:02}" for number in range(50)]

    async def scenario(world: World) -> None:
        await world.add_project("bad", cities=("DFW",))
        for name in others:
            await world.add_project(name, cities=("DFW",))
        process = world.process()
        process.start()
        await world.sleep(2)
        for name in others:
            await world.create(name, a_workload_document())
        began = world.clock.monotonic()
        for name in others:
            await world.eventually(partial(world.exists, name, DEPLOYMENT, "web-us-dfw"))
        assert world.clock.monotonic() - began < timedelta(seconds=1)
        assert process.operator.find_unsynced() is None
        assert process.operator.find_projects_unlisted() is None
        await world.sleep(10)
        assert process.measures.gauges["compute_projects_engaged", ()] == 50
        assert process.measures.gauges["compute_projects_failing", ()] == 1
        await world.create("bad", a_workload_document())
        world.injector.disarm(fault.id)
        await world.eventually(lambda: world.exists("bad", DEPLOYMENT, "web-us-dfw"), within=90)
        # Each kind has a back-off of its own, of 30 s at most; the gauge comes every 5.
        await world.sleep(40)
        assert process.measures.gauges["compute_projects_failing", ()] == 0

    play(scenario, fault)


@pytest.mark.spec("M-88")
def test_an_engagement_that_takes_too_long_is_measured_as_that_and_then_as_done() -> None:
    async def scenario(world: World) -> None:
        await world.add_project("bad")
        process = world.process()
        process.start()
        await world.sleep(10)
        await world.set_project_ready("bad", is_ready=False)  # an event in the meantime
        await world.sleep(40)
        seconds = process.measures.values
        key = "compute_project_engage_seconds"
        assert seconds[key, (("outcome", "timeout"),)] == [30]
        world.injector.disarm("C4")
        await world.sleep(60)
        (took,) = seconds[key, (("outcome", "engaged"),)]
        assert 50 < took < 90

    breaking = BAD_PROJECTS["breaks"]
    play(scenario, breaking)


@pytest.mark.spec("M-98", "OU-02")
@pytest.mark.parametrize("verb", ["list", "watch"])
@pytest.mark.parametrize("retry_after", [timedelta(seconds=1), None])
def test_a_429_to_every_kind_of_a_project_is_waited_out_without_a_word(
    caplog: pytest.LogCaptureFixture, verb: str, retry_after: timedelta | None
) -> None:
    async def scenario(world: World) -> None:
        await world.add_project("acme", cities=("DFW",))
        # As on any network: the first answer is not there before the other lists are sent.
        world.links["acme"].slow(timedelta(milliseconds=1))
        kinds = (WORKLOAD, DEPLOYMENT, INSTANCE, LOCATION, NETWORK)
        for kind in kinds:
            world.injector.arm(
                Fault(
                    "starting",
                    Action.ERROR,
                    Point(plane="acme", verb=verb, kind=kind.kind),
                    Parameters(status=429, retry_after=retry_after),
                )
            )
        process = world.process()
        process.start()
        await world.sleep(5)
        existing = process.operator.planes.get(PlaneName("acme"))
        assert existing.is_synced
        assert not existing.lane.is_open
        await world.sleep(5)
        assert process.measures.gauges["compute_projects_failing", ()] == 0

    play(scenario)
    assert [one.getMessage() for one in caplog.records if one.levelname != "INFO"] == []


@pytest.mark.spec("M-84")
def test_mode_single_serves_one_plane_under_that_name() -> None:
    async def scenario(world: World) -> None:
        await world.add_project_plane(cities=("DFW",))
        process = world.process(settings=single_settings())
        process.start()
        await world.create(SINGLE, a_workload_document())
        await world.eventually(lambda: world.exists(SINGLE, DEPLOYMENT, "web-us-dfw"))
        assert engaged(process) == (SINGLE,)
        assert {one.address.plane for one in world.requests()} == {SINGLE}
        await world.sleep(5)
        assert process.measures.gauges["compute_projects_engaged", ()] == 1

    play(scenario)


@pytest.mark.spec("M-84")
def test_any_other_mode_is_refused_at_start() -> None:
    with pytest.raises(ConfigurationError, match=r"discovery\.mode"):
        settings_of(discovery={"mode": "datum"})


@pytest.mark.spec("M-93")
def test_without_federation_nothing_of_it_exists_and_the_life_of_a_workload_completes() -> None:
    async def scenario(world: World) -> None:
        await world.add_project_plane(cities=("DFW",))
        process = world.process(settings=single_settings())
        process.start()
        await world.create(SINGLE, a_workload_document())
        await world.sleep(2)
        existing = await world.get(SINGLE, DEPLOYMENT, "web-us-dfw")
        metadata = existing["metadata"]
        assert isinstance(metadata, dict)
        assert "finalizers" not in metadata
        assert "annotations" not in metadata
        await world.run_deployment(SINGLE, "web-us-dfw")
        await world.sleep(2)
        assert condition_of(await world.get(SINGLE, WORKLOAD, "web"), "Ready")[0] == "True"
        await world.delete(SINGLE, WORKLOAD, "web")
        await world.eventually(lambda: world.is_gone(SINGLE, WORKLOAD, "web"))
        assert process.operator.planes.find(HUB) is None

    done = play(scenario)
    assert {one.address.plane for one in done.world.requests()} == {SINGLE}


@pytest.mark.spec("M-31", "M-93")
def test_a_hub_without_configuration_is_refused_and_only_none_starts_without_one() -> None:
    with pytest.raises(ConfigurationError, match=r"federation\.kubeconfigPath: is required"):
        settings_of(federation={"mode": "karmada"})
    with pytest.raises(ConfigurationError, match=r"federation\.mode: none is refused"):
        settings_of(federation={"mode": "none"})
    assert not single_settings().is_federated


@pytest.mark.spec("M-92")
def test_networking_off_asks_for_no_networking_kind_and_places_every_city() -> None:
    async def scenario(world: World) -> None:
        await world.add_project_plane(cities=(), networks=())
        world.process(settings=single_settings(networking="off")).start()
        await world.create(SINGLE, a_workload_document("web", {"us": ("DFW", "NOWHERE")}))
        await world.sleep(2)
        assert await world.names(SINGLE, DEPLOYMENT) == ["web-us-dfw", "web-us-nowhere"]

    done = play(scenario)
    asked = {one.address.resource for one in done.world.requests()}
    assert asked == {"workloads", "workloaddeployments"}


@pytest.mark.spec("M-92")
def test_networking_on_concludes_nothing_from_a_kind_that_is_not_served() -> None:
    async def scenario(world: World) -> None:
        await world.add_project_plane(has_networking=False)
        process = world.process(settings=single_settings(networking="on"))
        process.start()
        await world.create(SINGLE, a_workload_document())
        await world.sleep(120)
        assert await world.names(SINGLE, DEPLOYMENT) == []
        existing = await world.get(SINGLE, WORKLOAD, "web")
        assert condition_of(existing, "Ready")[1] == "InstancesProvisioning"
        assert process.reasons() == []

    done = play(scenario)
    assert done.world.writes(kind="WorkloadDeployment") == []


@pytest.mark.spec("M-92")
def test_auto_with_networks_alone_checks_those_and_serves_every_city() -> None:
    async def scenario(world: World) -> None:
        await world.add_project_plane(has_networking=False)
        await world.install(SINGLE, "networks.networking.datumapis.com")
        world.process(settings=single_settings()).start()
        await world.create(SINGLE, a_workload_document("web", {"moon": ("TYCHO",)}))
        await world.sleep(2)
        existing = await world.get(SINGLE, WORKLOAD, "web")
        assert condition_of(existing, "Ready")[1] == "NetworkNotFound"
        await world.add_network(SINGLE, "default")
        await world.sleep(2)
        assert await world.names(SINGLE, DEPLOYMENT) == ["web-moon-tycho"]

    play(scenario)


@pytest.mark.spec("M-79")
def test_a_follower_engages_projects_and_writes_nothing() -> None:
    async def scenario(world: World) -> None:
        await world.add_project("acme", cities=("DFW",))
        follower = world.process("follower")
        follower.start(leads=False)
        await world.create("acme", a_workload_document())
        await world.sleep(5)
        assert engaged(follower) == ("acme",)
        assert world.writes("follower") == []
        follower.begin_leading()
        await world.eventually(lambda: world.exists("acme", DEPLOYMENT, "web-us-dfw"), within=2)

    play(scenario)


@pytest.mark.spec("M-92")
@pytest.mark.fault("B10")
def test_a_networking_kind_that_is_gone_counts_as_off_after_the_second_answer_only() -> None:
    async def scenario(world: World) -> None:
        await world.add_project_plane(cities=("DFW",))
        world.process(settings=single_settings()).start()
        await world.create(SINGLE, a_workload_document("web", {"us": ("DFW",), "moon": ("TYCHO",)}))
        await world.sleep(5)
        await world.uninstall(SINGLE, LOCATION)
        await world.sleep(25)
        assert await world.names(SINGLE, DEPLOYMENT) == ["web-us-dfw"]
        await world.sleep(35)
        assert await world.names(SINGLE, DEPLOYMENT) == ["web-moon-tycho", "web-us-dfw"]

    done = play(scenario)
    assert done.world.writes(verb="delete") == []


@pytest.mark.spec("M-92")
def test_a_networking_kind_that_comes_back_in_time_was_never_off() -> None:
    async def scenario(world: World) -> None:
        await world.add_project_plane(cities=("DFW",))
        world.process(settings=single_settings()).start()
        await world.create(SINGLE, a_workload_document("web", {"us": ("DFW",), "moon": ("TYCHO",)}))
        await world.sleep(5)
        await world.uninstall(SINGLE, LOCATION)
        await world.sleep(10)
        await world.install(SINGLE, "locations.networking.datumapis.com")
        await world.sleep(120)
        assert await world.names(SINGLE, DEPLOYMENT) == ["web-us-dfw"]

    play(scenario)


@pytest.mark.spec("M-92")
def test_an_answer_that_cannot_be_read_is_not_the_second_one() -> None:
    async def scenario(world: World) -> None:
        await world.add_project_plane(cities=("DFW",))
        world.process(settings=single_settings()).start()
        await world.create(SINGLE, a_workload_document("web", {"us": ("DFW",), "moon": ("TYCHO",)}))
        await world.sleep(5)
        await world.uninstall(SINGLE, LOCATION)
        await world.sleep(5)
        at = Point(plane=SINGLE, verb="list", kind="Location", times=0)
        world.injector.arm(Fault("C4", Action.ERROR, at, Parameters(status=503)))
        await world.sleep(120)
        assert await world.names(SINGLE, DEPLOYMENT) == ["web-us-dfw"]
        world.injector.disarm("C4")
        await world.sleep(60)
        assert await world.names(SINGLE, DEPLOYMENT) == ["web-moon-tycho", "web-us-dfw"]

    play(scenario)
