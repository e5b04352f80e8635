"""Admission of Workloads by the project of the request, on every replica."""

from __future__ import annotations

from datetime import timedelta

import pytest
from management_builders.documents import a_template_document, a_workload_document
from management_builders.world import (
    Process,
    World,
    a_review,
    play,
    settings_of,
    single_settings,
)

from compute_api_types import labels
from compute_management_operator.admission.review import (
    AdmissionAllowed,
    AdmissionRefused,
    AdmissionResult,
    AdmissionUndecided,
)
from compute_management_operator.planes import WORKLOAD
from compute_operator_kit.core.errors import InvalidSpecError, UnavailableError
from compute_operator_kit.core.json import (
    Json,
    JsonObject,
    decode_json_object,
    encode,
    member_object,
)
from compute_sim_planes.api_server.authz.identity import User, authenticated
from compute_sim_planes.faults.plans import Action, Fault, Parameters, Point

NO_PROJECT = "the request names no project: user extra iam.miloapis.com/parent-name is required"


def of_project(name: str) -> JsonObject:
    return {labels.PARENT_NAME_EXTRA: [name], labels.PARENT_TYPE_EXTRA: ["Project"]}


def status_of(answer: AdmissionResult) -> JsonObject:
    """The status of a refusal, as it travels."""
    assert not isinstance(answer, AdmissionAllowed)
    return decode_json_object(encode(answer.status))


def message_of(answer: AdmissionResult) -> Json:
    return status_of(answer)["message"]


async def settle(world: World, *projects: str) -> Process:
    """Two projects in two cities, and a follower that has seen them."""
    for name in projects or ("acme", "beta"):
        await world.add_project(name, cities=("DFW",) if name == "acme" else ("LHR",))
    process = world.process()
    process.start(leads=False)
    await world.sleep(2)
    return process


@pytest.mark.spec("M-85", "M-86")
def test_the_locations_of_the_requests_own_project_decide_and_no_other_plane_is_asked() -> None:
    async def scenario(world: World) -> None:
        follower = await settle(world)
        before = len(world.requests())
        wanted = a_workload_document("web", {"eu": ("LHR",)})
        assert isinstance(
            await follower.admit(a_review(wanted, of_project("beta"))), AdmissionAllowed
        )
        refused = await follower.admit(a_review(wanted, of_project("acme")))
        assert isinstance(refused, AdmissionRefused)
        assert refused.status["code"] == 422
        assert message_of(refused) == (
            'Workload.compute.datumapis.com "web" is invalid: spec.placements[0].cityCodes[0]: '
            'Unsupported value: "LHR": supported values: "DFW"'
        )
        asked = world.requests()[before:]
        assert {one.address.plane for one in asked} == {"acme", "beta"}
        # Both are idle, so that networking is read when it is needed.
        assert {one.address.resource for one in asked} == {
            "locations",
            "networks",
            "subjectaccessreviews",
        }

    play(scenario)


BAD_EXTRAS: dict[str, JsonObject] = {
    "missing": {},
    "empty": {labels.PARENT_NAME_EXTRA: []},
    "empty name": {labels.PARENT_NAME_EXTRA: [""]},
    "double": {labels.PARENT_NAME_EXTRA: ["acme", "beta"]},
    "not a label": {labels.PARENT_NAME_EXTRA: ["acme/../beta"]},
    "no project": {
        labels.PARENT_NAME_EXTRA: ["acme"],
        labels.PARENT_TYPE_EXTRA: ["Organization"],
    },
}


@pytest.mark.spec("M-85")
@pytest.mark.parametrize("way", sorted(BAD_EXTRAS))
def test_a_request_that_names_no_project_is_answered_500_without_a_request(way: str) -> None:
    async def scenario(world: World) -> None:
        process = await settle(world)
        before = len(world.requests())
        answer = await process.admit(a_review(a_workload_document(), BAD_EXTRAS[way]))
        assert isinstance(answer, AdmissionUndecided)
        assert answer.status["code"] == 500
        assert message_of(answer) == NO_PROJECT
        assert len(world.requests()) == before

    play(scenario)


@pytest.mark.spec("M-85")
@pytest.mark.parametrize("name", ["unheard-of", "@home", "hub"])
def test_a_project_that_is_not_engaged_is_answered_500(name: str) -> None:
    async def scenario(world: World) -> None:
        process = await settle(world)
        answer = await process.admit(a_review(a_workload_document(), of_project(name)))
        assert isinstance(answer, AdmissionUndecided)
        assert answer.status["code"] == 500
        unavailable = f'project "{name}" is not available for admission yet, try again'
        assert message_of(answer) == (NO_PROJECT if name == "@home" else unavailable)

    play(scenario)


@pytest.mark.spec("M-85")
def test_locations_that_are_needed_and_unreadable_are_answered_500() -> None:
    failing = Fault(
        "C4",
        Action.ERROR,
        Point(plane="acme", verb="list", kind="Location", times=0),
        Parameters(status=500),
    )

    async def scenario(world: World) -> None:
        process = await settle(world)
        answer = await process.admit(a_review(a_workload_document(), of_project("acme")))
        assert isinstance(answer, AdmissionUndecided)
        assert message_of(answer) == (
            'project "acme" is not available for admission yet, try again'
        )
        # An edit that names no other city needs none of them.
        wanted = a_workload_document(replicas=2)
        edited = a_review(wanted, of_project("acme"), found=a_workload_document())
        assert isinstance(await process.admit(edited), AdmissionAllowed)

    play(scenario, failing)


@pytest.mark.spec("M-86")
def test_finalizers_come_off_whatever_cannot_be_read() -> None:
    async def scenario(world: World) -> None:
        process = world.process()
        process.start(leads=False)
        stored = a_workload_document()
        bare: JsonObject = {**stored, "metadata": {"name": "web", "namespace": "default"}}
        marked: JsonObject = {
            **stored,
            "metadata": {
                "name": "web",
                "namespace": "default",
                "finalizers": [labels.WORKLOAD_FINALIZER],
            },
        }
        assert isinstance(await process.admit(a_review(bare, {}, found=marked)), AdmissionAllowed)
        going = a_workload_document("web", {"moon": ("TYCHO",)})
        member_object(going, "metadata")["deletionTimestamp"] = "2026-03-01T00:00:00Z"
        assert isinstance(await process.admit(a_review(going, {}, found=marked)), AdmissionAllowed)
        assert world.requests() == [] or {
            one.address.resource for one in world.requests()
        }.isdisjoint({"subjectaccessreviews"})

    play(scenario)


@pytest.mark.spec("M-84")
def test_mode_single_ignores_the_extra() -> None:
    async def scenario(world: World) -> None:
        await world.add_project_plane(cities=("DFW",))
        process = world.process(settings=single_settings())
        process.start()
        await world.sleep(1)
        for extra in ({}, of_project("acme"), of_project("single")):
            assert isinstance(
                await process.admit(a_review(a_workload_document(), extra)), AdmissionAllowed
            )
        moon = a_workload_document("web", {"moon": ("TYCHO",)})
        assert isinstance(await process.admit(a_review(moon, {})), AdmissionRefused)

    play(scenario)


@pytest.mark.spec("M-92")
def test_with_networking_off_cities_and_networks_are_not_checked() -> None:
    async def scenario(world: World) -> None:
        await world.add_project("acme")
        process = world.process(settings=settings_of(networking="off"))
        process.start(leads=False)
        await world.sleep(2)
        wanted = a_workload_document("web", {"moon": ("TYCHO",)})
        before = len(world.requests())
        answer = await process.admit(a_review(wanted, of_project("acme"), user="nobody"))
        assert isinstance(answer, AdmissionAllowed)
        assert len(world.requests()) == before

    play(scenario)


@pytest.mark.spec("M-92")
def test_a_plane_without_networking_kinds_checks_neither() -> None:
    async def scenario(world: World) -> None:
        await world.add_project("acme", has_networking=False)
        process = world.process()
        process.start(leads=False)
        await world.sleep(2)
        wanted = a_workload_document("web", {"moon": ("TYCHO",)})
        answer = await process.admit(a_review(wanted, of_project("acme"), user="nobody"))
        assert isinstance(answer, AdmissionAllowed)

    play(scenario)


def test_a_network_the_requester_may_not_use_is_refused_in_their_name() -> None:
    async def scenario(world: World) -> None:
        process = await settle(world)
        wanted = a_workload_document(template=a_template_document(networks=("default", "secret")))
        answer = await process.admit(a_review(wanted, of_project("acme"), user="alice"))
        assert isinstance(answer, AdmissionRefused)
        causes = member_object(status_of(answer), "details")["causes"]
        assert isinstance(causes, list)
        assert [cause["reason"] for cause in causes if isinstance(cause, dict)] == [
            "FieldValueForbidden",
            "FieldValueForbidden",
        ]

    play(scenario)


def test_a_review_that_fails_is_never_a_yes() -> None:
    failing = Fault(
        "C4",
        Action.ERROR,
        Point(plane="acme", verb="create", kind="SubjectAccessReview", times=0),
        Parameters(status=500),
    )

    async def scenario(world: World) -> None:
        process = await settle(world)
        answer = await process.admit(a_review(a_workload_document(), of_project("acme")))
        assert isinstance(answer, AdmissionRefused)
        assert "InternalError" in str(answer.status["details"])

    play(scenario, failing)


def test_a_plane_that_hangs_is_answered_before_the_api_server_gives_up() -> None:
    hanging = Fault(
        "D2",
        Action.TIMEOUT,
        Point(plane="acme", verb="create", kind="SubjectAccessReview", times=0),
    )

    async def scenario(world: World) -> None:
        process = await settle(world)
        begun = world.clock.monotonic()
        networks = tuple(f"net-{number}" for number in range(50))
        wanted = a_workload_document(template=a_template_document(networks=networks))
        answer = await process.admit(a_review(wanted, of_project("acme")))
        assert isinstance(answer, AdmissionRefused)
        assert world.clock.monotonic() - begun < timedelta(seconds=5)

    play(scenario, hanging)


def test_data_that_is_not_delivered_is_a_warning() -> None:
    async def scenario(world: World) -> None:
        process = await settle(world)
        wanted = a_workload_document()
        template = member_object(member_object(member_object(wanted, "spec"), "template"), "spec")
        sandbox = member_object(member_object(template, "runtime"), "sandbox")
        sandbox["imagePullSecrets"] = [{"name": "registry"}]
        answer = await process.admit(a_review(wanted, of_project("acme")))
        assert isinstance(answer, AdmissionAllowed)
        assert len(answer.warnings) == 1

    play(scenario)


@pytest.mark.spec("M-88")
def test_every_verdict_is_counted() -> None:
    async def scenario(world: World) -> None:
        process = await settle(world)
        moon = a_workload_document("web", {"moon": ("TYCHO",)})
        await process.admit(a_review(a_workload_document(), of_project("acme")))
        await process.admit(a_review(moon, of_project("acme")))
        await process.admit(a_review(a_workload_document(), {}))
        await process.admit(a_review(moon, {}, found=moon))
        counted = {
            (result, reason): process.measures.total(
                "compute_admission_requests_total", result=result, reason=reason
            )
            for result, reason in (
                ("allowed", "Valid"),
                ("denied", "Invalid"),
                ("error", "InternalError"),
                ("allowed", "Unread"),
            )
        }
        assert set(counted.values()) == {1}

    play(scenario)


def a_tenant(project: str) -> User:
    extra = ((labels.PARENT_NAME_EXTRA, (project,)), (labels.PARENT_TYPE_EXTRA, ("Project",)))
    user = authenticated("tenant", "system:masters")
    return User(user.name, user.groups, "tenant-uid", extra)


@pytest.mark.spec("M-85", "M-86")
def test_an_api_server_that_asks_us_refuses_and_admits_as_we_say() -> None:
    async def scenario(world: World) -> None:
        process = await settle(world)
        await world.ask_for_admission("acme", process)
        tenant = world.kube("acme", a_tenant("acme"))
        moon = a_workload_document("moon", {"moon": ("TYCHO",)})
        with pytest.raises(InvalidSpecError) as refused:
            await tenant.create(world.key_of("acme", moon), moon)
        assert refused.value.answer is not None
        assert "is invalid: spec.placements[0].cityCodes[0]" in refused.value.answer.message
        await tenant.create(world.key_of("acme", a_workload_document()), a_workload_document())
        with pytest.raises(UnavailableError):
            # A request that names no project is neither admitted nor refused for its content.
            await world.kube("acme").create(
                world.key_of("acme", moon), a_workload_document("stranger")
            )
        process.begin_leading()
        await world.sleep(2)
        await world.delete("acme", WORKLOAD, "web")
        await world.eventually(lambda: world.is_gone("acme", WORKLOAD, "web"))

    play(scenario)
