"""Networking in a simulated cell: locations, bindings, subnets and the Network gate."""

from __future__ import annotations

import pytest
from cell_builders.documents import (
    NS,
    a_deployment_document,
    a_location_document,
    a_network_document,
    a_template_document,
)
from cell_builders.milo import BUDGET
from cell_builders.world import (
    QUOTA_OFF,
    QUOTA_ON,
    World,
    condition_of,
    gates_of,
    play,
    settings_of,
    spec_of,
    status_of,
    uid_of,
)

from compute_cell_operator.planes import (
    CELL,
    DEPLOYMENT,
    INSTANCE,
    LOCATION,
    NETWORK_BINDING,
    NETWORKING_KINDS,
    SUBNET_CLAIM,
)
from compute_operator_kit.core.json import Json, JsonObject, member_list, member_object
from compute_sim_planes.history import ReconcileRecord, Request


def start(
    world: World,
    *,
    networking: str = "auto",
    city: str = "",
    has_nso: bool = True,
    quota: JsonObject = QUOTA_OFF,
) -> None:
    world.start_neighbours(has_nso=has_nso)
    cell: JsonObject = {"name": "dfw-1", "cityCode": city} if city else {"name": "dfw-1"}
    world.process(settings=settings_of(networking=networking, cell=cell, quota=quota)).start()


def networking_requests(world: World) -> list[Request]:
    kinds = {kind.kind for kind in NETWORKING_KINDS}
    return [request for request in world.requests() if request.address.kind in kinds]


@pytest.mark.spec("C-30", "C-32", "C-33")
def test_every_interface_gets_its_binding_and_a_context_one_claim() -> None:
    async def scenario(world: World) -> None:
        await world.create(CELL, a_network_document("backend"))
        start(world)
        template = a_template_document(networks=("default", "backend", "default"))
        made = await world.create(CELL, a_deployment_document("web", 1, template=template))
        await world.eventually(world.is_converged)
        names = await world.names(CELL, NETWORK_BINDING)
        assert names == ["web-net-0", "web-net-1", "web-net-2"]
        binding = await world.get(CELL, NETWORK_BINDING, "web-net-1")
        assert spec_of(binding) == {
            "network": {"name": "backend"},
            "location": {"name": "dfw"},
        }
        owners = member_list(member_object(binding, "metadata"), "ownerReferences")
        assert [(owner["uid"], owner["controller"]) for owner in map(as_object, owners)] == [
            (uid_of(made), True)
        ]
        claims = await world.names(CELL, SUBNET_CLAIM)
        assert claims == ["backend-dfw-0", "default-dfw-0"]
        claim = await world.get(CELL, SUBNET_CLAIM, "default-dfw-0")
        assert spec_of(claim) == {
            "subnetClass": "private",
            "ipFamily": "IPv4",
            "networkContext": {"name": "default-dfw"},
            "location": {"name": "dfw"},
        }
        claim_owner = as_object(member_list(member_object(claim, "metadata"), "ownerReferences")[0])
        assert claim_owner["kind"] == "NetworkContext"
        assert "controller" not in claim_owner
        assert len(world.writes(kind=SUBNET_CLAIM.kind)) == 2
        assert await world.rests() == []

    play(scenario)


def as_object(found: Json) -> JsonObject:
    assert isinstance(found, dict)
    return found


@pytest.mark.spec("C-33")
def test_only_the_network_gate_goes_and_only_when_the_network_is_ready() -> None:
    async def scenario(world: World) -> None:
        world.nso.options.is_context_never_ready = True
        await world.add_milo(dict.fromkeys(BUDGET, 0))
        start(world, quota=QUOTA_ON)
        await world.create(CELL, a_deployment_document("web", 1))
        await world.eventually(lambda: world.says("QuotaNotGranted"))
        await world.sleep(30)
        assert gates_of(await world.instance("web-0")) == ["Network", "Quota"]
        world.nso.options.is_context_never_ready = False
        await world.sleep(30)
        assert gates_of(await world.instance("web-0")) == ["Quota"]

    play(scenario)


@pytest.mark.spec("C-31", "C-91")
@pytest.mark.parametrize(
    "knob", ["omits_context_ref", "omits_subnet_ref", "is_context_never_ready"]
)
def test_what_is_half_ready_is_waited_for_by_name(knob: str) -> None:
    async def scenario(world: World) -> None:
        setattr(world.nso.options, knob, True)
        start(world)
        await world.create(CELL, a_deployment_document("web", 1))
        await world.eventually(lambda: world.says("NetworkProvisioning"))
        await world.sleep(60)
        waited = 'SubnetClaim "default-dfw-0"' if "subnet" in knob else 'NetworkBinding "web-net-0"'
        assert condition_of(await world.deployment(), "Available") == (
            "False",
            "NetworkProvisioning",
            f"Network is being provisioned: waiting for {waited}",
        )
        assert "Network" in gates_of(await world.instance("web-0"))

    play(scenario)


@pytest.mark.spec("C-35", "C-91")
def test_a_network_that_fails_reaches_the_deployment_and_heals() -> None:
    async def scenario(world: World) -> None:
        world.nso.options.failure = "No address space left"
        start(world)
        await world.create(CELL, a_deployment_document("web", 1))
        await world.eventually(lambda: world.says("NetworkFailedToCreate"))
        found = await world.deployment()
        said = ("False", "NetworkFailedToCreate", "No address space left")
        assert condition_of(found, "Available") == said
        assert condition_of(found, "ReplicasReady") == said
        assert world.processes[0].reasons(kind=DEPLOYMENT).count("NetworkFailedToCreate") == 1

    play(scenario)


def test_a_missing_network_is_named_on_the_deployment() -> None:
    async def scenario(world: World) -> None:
        start(world)
        template = a_template_document(networks=("nowhere",))
        await world.create(CELL, a_deployment_document("web", 1, template=template))
        await world.eventually(lambda: world.says("NetworkNotFound"))
        await world.create(CELL, a_network_document("nowhere"))
        await world.eventually(world.is_converged)

    play(scenario)


@pytest.mark.spec("C-34")
def test_a_changed_network_replaces_the_binding_and_a_foreign_one_is_left_alone() -> None:
    async def scenario(world: World) -> None:
        await world.create(CELL, a_network_document("backend"))
        start(world)
        await world.create(CELL, a_deployment_document("web", 1))
        await world.eventually(world.is_converged)
        before = uid_of(await world.get(CELL, NETWORK_BINDING, "web-net-0"))
        template = a_template_document("2.0", networks=("backend",))
        await world.patch(CELL, DEPLOYMENT, "web", {"spec": {"template": template}})
        await world.sleep(1)
        await world.eventually(world.is_converged)
        binding = await world.get(CELL, NETWORK_BINDING, "web-net-0")
        assert uid_of(binding) != before
        assert spec_of(binding)["network"] == {"name": "backend"}
        foreign: JsonObject = {
            "apiVersion": NETWORK_BINDING.api_version,
            "kind": NETWORK_BINDING.kind,
            "metadata": {"name": "api-net-0", "namespace": NS},
            "spec": {"network": {"name": "default"}, "location": {"name": "dfw"}},
        }
        stranger = uid_of(await world.create(CELL, foreign))
        await world.create(CELL, a_deployment_document("api", 1))
        await world.sleep(30)
        assert uid_of(await world.get(CELL, NETWORK_BINDING, "api-net-0")) == stranger
        said = condition_of(await world.deployment("api"), "Available")
        assert said[1] == "NetworkProvisioning"
        assert "api-net-0" in said[2]
        await world.delete(CELL, NETWORK_BINDING, "api-net-0")
        await world.eventually(lambda: world.is_converged("api"))

    play(scenario)


def test_a_removed_interface_loses_its_binding_when_no_instance_has_it() -> None:
    async def scenario(world: World) -> None:
        await world.create(CELL, a_network_document("backend"))
        start(world)
        template = a_template_document(networks=("default", "backend"))
        await world.create(CELL, a_deployment_document("web", 1, template=template))
        await world.eventually(world.is_converged)
        template = a_template_document("hang")
        await world.patch(CELL, DEPLOYMENT, "web", {"spec": {"template": template}})
        await world.eventually(
            lambda: has_names(world, "web-net-0"),
        )

    async def has_names(world: World, *names: str) -> bool:
        return await world.names(CELL, NETWORK_BINDING) == list(names)

    play(scenario)


@pytest.mark.spec("C-26", "C-27")
def test_without_a_location_instances_wait_gated_until_one_appears() -> None:
    async def scenario(world: World) -> None:
        await world.delete(CELL, LOCATION, "dfw")
        start(world)
        await world.create(CELL, a_deployment_document("web", 1))
        await world.eventually(lambda: world.says("NoMatchingLocation"))
        message = 'No Location matches city code "DFW"'
        assert condition_of(await world.deployment(), "Available")[2] == message
        assert gates_of(await world.instance("web-0")) == ["Network"]
        assert "location" not in spec_of(await world.instance("web-0"))
        before = uid_of(await world.instance("web-0"))
        await world.create(CELL, a_location_document("elsewhere", "LHR"))
        await world.create(CELL, a_location_document("nowhere", ""))
        await world.sleep(5)
        passes = len(world.requests())
        await world.create(CELL, a_location_document())
        await world.eventually(world.is_converged)
        assert len(world.requests()) > passes
        found = await world.instance("web-0")
        assert uid_of(found) == before
        assert spec_of(found)["location"] == {"name": "dfw", "namespace": ""}
        assert world.processes[0].reasons().count("NoMatchingLocation") == 1

    play(scenario)


@pytest.mark.spec("C-28")
def test_of_several_locations_the_smallest_name_is_taken_and_kept() -> None:
    async def scenario(world: World) -> None:
        await world.create(CELL, a_location_document("efw"))
        start(world)
        await world.create(CELL, a_deployment_document("web", 1))
        await world.eventually(world.is_converged)
        await world.create(CELL, a_location_document("aaa"))
        await world.sleep(1200)
        assert member_object(status_of(await world.deployment()), "location")["name"] == "dfw"
        told = [
            emit.message
            for emit in world.processes[0].recorder.emitted
            if emit.reason == "AmbiguousLocation"
        ]
        assert told == ['2 Locations match city code "DFW" ("dfw", "efw"); using "dfw"']

    play(scenario)


@pytest.mark.spec("C-29")
@pytest.mark.parametrize("networking", ["on", "off"])
def test_in_the_wrong_city_nothing_starts_and_what_runs_runs_on(networking: str) -> None:
    async def scenario(world: World) -> None:
        start(world, networking=networking, city="DFW")
        await world.create(CELL, a_deployment_document("web", 2))
        await world.eventually(world.is_converged)
        await world.processes[0].stop()
        settings = settings_of(networking=networking, cell={"name": "dfw-1", "cityCode": "LHR"})
        world.process("operator-2", settings=settings).start()
        await world.create(CELL, a_deployment_document("api", 1))
        await world.sleep(10)
        message = (
            'Deployment asked for city "DFW" but this cell serves "LHR"; '
            "it was delivered to the wrong cell"
        )
        said = condition_of(await world.deployment("api"), "Available")
        assert said == ("False", "CityCodeMismatch", message)
        assert await world.instances() == ["web-0", "web-1"]
        assert not [n for n in await bindings(world) if n.startswith("api")]
        assert await world.says("StableInstanceFound")
        await world.scale("web", 1)
        await world.eventually(lambda: world.has_instances("web-0"))
        if networking == "on":
            assert member_object(status_of(await world.deployment()), "location")["name"] == "dfw"

    async def bindings(world: World) -> list[str]:
        return await world.names(CELL, NETWORK_BINDING)

    play(scenario)


@pytest.mark.spec("C-36", "C-19", "C-87")
def test_without_networking_kinds_everything_works_and_they_turn_it_on_when_they_come() -> None:
    async def scenario(world: World) -> None:
        start(world)
        await world.create(CELL, a_deployment_document("web", 1))
        await world.eventually(world.is_converged)
        await world.install_networking()
        await world.create(CELL, a_location_document())
        await world.create(CELL, a_network_document())
        await world.sleep(60)
        await world.create(CELL, a_network_document("backend"))
        template = a_template_document(networks=("backend",))
        await world.create(CELL, a_deployment_document("api", 1, template=template))
        await world.eventually(lambda: world.exists(CELL, INSTANCE, "api-0"))
        assert "Network" in gates_of(await world.instance("api-0"))
        assert gates_of(await world.instance("web-0")) == []
        await world.eventually(lambda: world.is_converged("api"))
        assert await world.is_converged()

    play(scenario, has_networking=False)


@pytest.mark.spec("C-37")
def test_kinds_that_go_turn_networking_off_after_two_answers() -> None:
    async def scenario(world: World) -> None:
        world.nso.options.is_context_never_ready = True
        start(world)
        await world.create(CELL, a_deployment_document("web", 1))
        await world.eventually(lambda: world.says("NetworkProvisioning"))
        before = uid_of(await world.instance("web-0"))
        await world.stop_neighbours()
        await world.uninstall(CELL, SUBNET_CLAIM)
        await world.sleep(20)
        assert "Network" in gates_of(await world.instance("web-0"))
        await world.sleep(60)
        world.start_neighbours(has_nso=False)
        await world.eventually(world.is_converged)
        assert uid_of(await world.instance("web-0")) == before

    play(scenario)


@pytest.mark.spec("C-37")
def test_off_removes_gates_and_reads_no_networking_kind() -> None:
    async def scenario(world: World) -> None:
        world.nso.options.is_context_never_ready = True
        start(world)
        await world.create(CELL, a_deployment_document("web", 1))
        await world.eventually(lambda: world.says("NetworkProvisioning"))
        await world.processes[0].stop()
        before = len(networking_requests(world))
        world.process(settings=settings_of(networking="off")).start()
        await world.eventually(world.is_converged)
        assert gates_of(await world.instance("web-0")) == []
        assert len(networking_requests(world)) == before

    play(scenario)


@pytest.mark.spec("C-28")
def test_on_without_the_kinds_concludes_nothing_and_keeps_the_gate() -> None:
    async def scenario(world: World) -> None:
        start(world, networking="on")
        await world.create(CELL, a_deployment_document("web", 1))
        await world.eventually(lambda: world.has_instances("web-0"))
        await world.sleep(120)
        assert gates_of(await world.instance("web-0")) == ["Network"]
        assert not await world.says("NoMatchingLocation")
        await world.scale("web", 0)
        await world.eventually(world.has_instances)

    play(scenario, has_networking=False)


@pytest.mark.spec("C-38", "C-91")
def test_a_namespace_in_a_reference_to_a_location_is_no_drift() -> None:
    async def scenario(world: World) -> None:
        await world.install_older_networking()
        await world.create(CELL, a_location_document())
        await world.create(CELL, a_network_document())
        start(world)
        await world.create(CELL, a_deployment_document("web", 1))
        await world.eventually(world.is_converged)
        older: JsonObject = {"spec": {"location": {"namespace": ""}}}
        for kind, name in ((NETWORK_BINDING, "web-net-0"), (SUBNET_CLAIM, "default-dfw-0")):
            await world.patch(CELL, kind, name, older)
            found = spec_of(await world.get(CELL, kind, name))
            assert found["location"] == {"name": "dfw", "namespace": ""}
        assert await world.rests() == []

    play(scenario, has_networking=False)


@pytest.mark.spec("C-27")
def test_a_location_enqueues_the_deployments_of_its_city_and_no_other() -> None:
    async def scenario(world: World) -> None:
        start(world)
        await world.create(CELL, a_deployment_document("web", 1))
        await world.create(CELL, a_deployment_document("eu", 1, city="LHR"))
        await world.eventually(world.is_converged)
        await world.sleep(5)
        passes = passes_of(world)
        await world.create(CELL, a_location_document("lhr", "LHR"))
        await world.sleep(0.1)
        woken = passes_of(world)[len(passes) :]
        assert woken
        assert all(key.endswith("/eu") for key in woken)

    def passes_of(world: World) -> list[str]:
        return [
            one.key for one in world.history.of(ReconcileRecord) if one.controller == "deployment"
        ]

    play(scenario)
