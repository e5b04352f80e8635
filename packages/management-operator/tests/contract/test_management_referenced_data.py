"""Admission of ConfigMaps and Secrets that a template names, by rights on the plane itself
(referenced-data.md 7).
"""

from __future__ import annotations

import pytest
from management_builders.documents import a_template_document, a_workload_document
from management_builders.single import play_single
from management_builders.world import Process, World, a_review, settings_of, single_settings

from compute_api_types.validation import DATA_NOT_DELIVERED
from compute_management_operator.admission.review import (
    AdmissionAllowed,
    AdmissionRefused,
    AdmissionResult,
    AdmissionUndecided,
)
from compute_management_operator.planes import SINGLE
from compute_operator_kit.core.json import (
    Json,
    JsonObject,
    decode_json_object,
    encode,
    member_list,
    member_object,
    member_text,
)
from compute_sim_planes.api_server.manifests import apply_manifests
from compute_sim_planes.faults.plans import Action, Fault, Parameters, Point
from compute_sim_planes.json_types import JsonObject as Manifest
from compute_sim_planes.json_types import JsonValue

RBAC = "rbac.authorization.k8s.io"
NAMESPACE = "default"


def a_template(*secrets: str, tag: str = "1.0") -> JsonObject:
    template = a_template_document(annotations={"app/tag": tag})
    runtime = member_object(member_object(template, "spec"), "runtime")
    containers = member_object(runtime, "sandbox")["containers"]
    assert isinstance(containers, list)
    assert isinstance(containers[0], dict)
    sources: list[Json] = [{"secretRef": {"name": name}} for name in secrets]
    containers[0]["envFrom"] = sources
    return template


def a_workload(*secrets: str, tag: str = "1.0") -> JsonObject:
    document = a_workload_document("web", {"us": ("DFW",)})
    member_object(document, "spec")["template"] = a_template(*secrets, tag=tag)
    return document


def a_deployment(*secrets: str, tag: str = "1.0") -> JsonObject:
    metadata: JsonObject = {"name": "web-us-dfw", "namespace": NAMESPACE}
    return {"metadata": metadata, "spec": {"template": a_template(*secrets, tag=tag)}}


async def allow(world: World, user: str, *secrets: str) -> None:
    """A role of `user`: the network of the Workload, and these Secrets by name."""
    rules: list[JsonValue] = [
        {"apiGroups": ["networking.datumapis.com"], "resources": ["networks"], "verbs": ["use"]},
        {
            "apiGroups": [""],
            "resources": ["secrets"],
            "verbs": ["get"],
            "resourceNames": [*secrets],
        },
    ]
    name: Manifest = {"name": f"of-{user}"}
    manifests: list[Manifest] = [
        {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {**name}, "rules": rules},
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {**name},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", **name},
            "subjects": [{"apiGroup": RBAC, "kind": "User", "name": user}],
        },
    ]
    await apply_manifests(world.planes[SINGLE].connect(), manifests)


def fields_of(answer: AdmissionResult) -> list[str]:
    assert isinstance(answer, AdmissionRefused)
    status = decode_json_object(encode(answer.status))
    causes = member_list(member_object(status, "details"), "causes")
    return [member_text(cause, "field") for cause in causes if isinstance(cause, dict)]


def delivering(world: World) -> Process:
    process = world.process("delivering", settings=single_settings(referencedData="on"))
    process.start()
    return process


@pytest.mark.spec("RD-17")
def test_a_workload_needs_its_authors_right_to_read_what_it_names() -> None:
    async def scenario(world: World, _: Process) -> None:
        process = delivering(world)
        await allow(world, "anna", "a")
        await world.sleep(2)
        allowed = await process.admit(a_review(a_workload("a"), {}, user="anna"))
        assert allowed == AdmissionAllowed("Valid")
        refused = await process.admit(a_review(a_workload("a", "b"), {}, user="anna"))
        assert fields_of(refused) == ["spec.template.spec.secrets[b]"]
        update = a_review(a_workload("a", "b"), {}, found=a_workload("a"), user="anna")
        assert fields_of(await process.admit(update)) == ["spec.template.spec.secrets[b]"]
        # An edit of another's Workload that names nothing new.
        before = len(world.requests())
        unrelated = a_review(a_workload("b", tag="2"), {}, found=a_workload("b"), user="anna")
        assert await process.admit(unrelated) == AdmissionAllowed("Valid")
        asked = world.requests()[before:]
        assert [one for one in asked if one.address.resource == "subjectaccessreviews"] == []

    play_single(scenario)


@pytest.mark.spec("RD-17")
def test_a_bare_deployment_needs_the_same_rights() -> None:
    async def scenario(world: World, _: Process) -> None:
        admission = delivering(world).operator.admission
        await allow(world, "anna", "a")
        await world.sleep(2)

        async def review(wanted: JsonObject, stored: JsonObject | None = None) -> AdmissionResult:
            return await admission.review_deployment(
                a_review(wanted, {}, found=stored, user="anna")
            )

        assert await review(a_deployment("a")) == AdmissionAllowed("Valid")
        assert fields_of(await review(a_deployment("b"))) == ["spec.template.spec.secrets[b]"]
        assert fields_of(await review(a_deployment("b"), a_deployment("a"))) == [
            "spec.template.spec.secrets[b]"
        ]
        same = await review(a_deployment("b", tag="2"), a_deployment("b"))
        assert same == AdmissionAllowed("Unread")

    play_single(scenario)


@pytest.mark.spec("RD-17")
def test_a_review_that_cannot_be_made_is_answered_500() -> None:
    at = Point(plane=SINGLE, verb="create", kind="SubjectAccessReview", times=0)
    broken = Fault("reviews", Action.ERROR, at, Parameters(status=503, reason="ServiceUnavailable"))

    async def scenario(world: World, _: Process) -> None:
        process = delivering(world)
        await world.sleep(2)
        wanted = a_deployment("a")
        answer = await process.operator.admission.review_deployment(a_review(wanted, {}))
        assert isinstance(answer, AdmissionUndecided)
        assert answer.status["code"] == 500
        assert answer.status["message"] == (
            'your right to read "Secret/a" could not be checked, try again'
        )

    play_single(scenario, broken, is_clean=False)


@pytest.mark.spec("RD-25")
def test_switched_off_no_right_is_reviewed_and_the_user_is_warned() -> None:
    async def scenario(world: World, process: Process) -> None:
        await world.sleep(2)
        answer = await process.admit(a_review(a_workload("a"), {}, user="user"))
        assert answer == AdmissionAllowed("Valid", (DATA_NOT_DELIVERED,))
        asked = [one for one in world.requests() if one.address.resource == "subjectaccessreviews"]
        assert len(asked) == 1  # of the network

    play_single(scenario)


def test_the_switch_is_accepted_with_a_hub_and_without_one() -> None:
    assert settings_of(referencedData="on").delivers_data
    assert single_settings(referencedData="on").delivers_data
    assert not settings_of().delivers_data
