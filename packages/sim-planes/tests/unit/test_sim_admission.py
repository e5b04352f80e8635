"""Reviewers of a plane in virtual time: webhooks as functions, and Python forms of policies."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta

import pytest

from compute_sim_planes.api_server.admission import AdmissionRequest
from compute_sim_planes.api_server.identity import authenticated
from compute_sim_planes.api_server.plane import Connection, PlaneParts
from compute_sim_planes.api_server.policies import Denial
from compute_sim_planes.api_server.testing import (
    MERGE_PATCH,
    Reply,
    World,
    a_config_map,
    ask,
    in_virtual_time,
)
from compute_sim_planes.api_server.webhook_callers import (
    HttpWebhooks,
    RegisteredWebhooks,
    Service,
    Target,
    WebhookCallError,
)
from compute_sim_planes.json_types import JsonObject, JsonValue, object_at, string_at, string_map_at

MAPS = "/api/v1/namespaces/default/configmaps"
GROUP = "/apis/admissionregistration.k8s.io/v1"
ADDRESS = "https://guard.compute.svc:443/validate"


def a_configuration(**options: JsonValue) -> JsonObject:
    webhook: JsonObject = {
        "name": "guard.example.com",
        "clientConfig": {"service": {"namespace": "compute", "name": "guard", "path": "/validate"}},
        "rules": [
            {
                "operations": ["*"],
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "resources": ["configmaps"],
            }
        ],
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        **options,
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "guard"},
        "webhooks": [webhook],
    }


def reviewing(
    judge: Callable[[JsonObject], JsonObject], delay: timedelta = timedelta()
) -> Webhooks:
    return Webhooks(judge, delay)


class Webhooks(RegisteredWebhooks):
    """One webhook in this process, as an operator's front door would register it."""

    def __init__(self, judge: Callable[[JsonObject], JsonObject], delay: timedelta) -> None:
        super().__init__()
        self._judge = judge
        self._delay = delay
        self.asked: list[JsonObject] = []
        self.webhooks[ADDRESS] = self._answer

    async def _answer(self, review: JsonObject) -> JsonObject:
        request = object_at(review, "request")
        self.asked.append(request)
        await asyncio.sleep(self._delay.total_seconds())
        response: JsonObject = {"uid": request["uid"], **self._judge(request)}
        return {**review, "response": response}


def test_a_registered_function_is_asked_under_the_address_of_its_service() -> None:
    webhooks = reviewing(lambda _: {"allowed": True})

    async def story(world: World) -> None:
        (
            await ask(
                world.admin, "POST", f"{GROUP}/validatingwebhookconfigurations", a_configuration()
            )
        ).expect(201)
        (await ask(world.admin, "POST", MAPS, a_config_map())).expect(201)

    in_virtual_time(story, PlaneParts(webhooks=webhooks))
    assert [request["operation"] for request in webhooks.asked] == ["CREATE"]


def test_a_function_that_takes_too_long_fails_the_request_in_virtual_time() -> None:
    webhooks = reviewing(lambda _: {"allowed": True}, timedelta(minutes=1))

    async def story(world: World) -> tuple[Reply, float]:
        path = f"{GROUP}/validatingwebhookconfigurations"
        (await ask(world.admin, "POST", path, a_configuration(timeoutSeconds=5))).expect(201)
        began = world.clock.monotonic()
        reply = await ask(world.admin, "POST", MAPS, a_config_map())
        return reply, (world.clock.monotonic() - began).total_seconds()

    refused, waited = in_virtual_time(story, PlaneParts(webhooks=webhooks))
    assert (refused.status, waited) == (500, 5.0)
    assert "context deadline exceeded" in refused.message


def test_a_patch_that_lost_the_race_during_a_review_is_worked_out_anew() -> None:
    webhooks = reviewing(lambda _: {"allowed": True}, timedelta(seconds=1))

    async def story(world: World) -> JsonValue:
        (await ask(world.admin, "POST", MAPS, a_config_map(data={"n": "0"}))).expect(201)
        path = f"{GROUP}/validatingwebhookconfigurations"
        (await ask(world.admin, "POST", path, a_configuration())).expect(201)
        slow = [
            asyncio.create_task(
                ask(world.admin, "PATCH", f"{MAPS}/one", {"data": {name: "1"}}, MERGE_PATCH)
            )
            for name in ("a", "b")
        ]
        for task in slow:
            (await task).expect(200)
        return (await ask(world.admin, "GET", f"{MAPS}/one")).expect(200)["data"]

    # Nobody's change is lost, though both were reviewed at the same time.
    assert in_virtual_time(story, PlaneParts(webhooks=webhooks)) == {
        "n": "0",
        "a": "1",
        "b": "1",
    }
    assert len(webhooks.asked) == 3


def test_a_replacement_that_lost_the_race_during_a_review_is_a_conflict() -> None:
    webhooks = reviewing(lambda _: {"allowed": True}, timedelta(seconds=1))

    async def story(world: World) -> list[int]:
        made = (await ask(world.admin, "POST", MAPS, a_config_map())).expect(201)
        path = f"{GROUP}/validatingwebhookconfigurations"
        (await ask(world.admin, "POST", path, a_configuration())).expect(201)
        tasks = [
            asyncio.create_task(
                ask(world.admin, "PUT", f"{MAPS}/one", {**made, "data": {"writer": str(writer)}})
            )
            for writer in range(3)
        ]
        return sorted([(await task).status for task in tasks])

    assert in_virtual_time(story, PlaneParts(webhooks=webhooks)) == [200, 409, 409]


def test_an_object_created_during_a_review_already_exists_for_the_second() -> None:
    webhooks = reviewing(lambda _: {"allowed": True}, timedelta(seconds=1))

    async def story(world: World) -> list[int]:
        path = f"{GROUP}/validatingwebhookconfigurations"
        (await ask(world.admin, "POST", path, a_configuration())).expect(201)
        tasks = [
            asyncio.create_task(ask(world.admin, "POST", MAPS, a_config_map())) for _ in range(2)
        ]
        return sorted([(await task).status for task in tasks])

    assert in_virtual_time(story, PlaneParts(webhooks=webhooks)) == [201, 409]


def test_conditions_in_cel_are_refused_instead_of_ignored() -> None:
    async def story(world: World) -> Reply:
        condition: JsonValue = [{"name": "c", "expression": "true"}]
        path = f"{GROUP}/validatingwebhookconfigurations"
        return await ask(world.admin, "POST", path, a_configuration(matchConditions=condition))

    refused = in_virtual_time(story)
    assert refused.status == 422
    assert "webhooks[0].matchConditions: Forbidden: this server evaluates no CEL" in refused.message


@pytest.mark.parametrize(
    ("answered", "words"),
    [
        ({"kind": "Nonsense"}, "expected webhook response"),
        ({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1beta1"}, "got admission"),
        ({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}, "was absent"),
    ],
)
def test_a_reply_that_is_no_review_fails_the_request(answered: JsonObject, words: str) -> None:
    async def webhook(review: JsonObject) -> JsonObject:
        del review
        return answered

    def parts() -> PlaneParts:
        webhooks = RegisteredWebhooks()
        webhooks.webhooks[ADDRESS] = webhook
        return PlaneParts(webhooks=webhooks)

    async def story(world: World) -> Reply:
        path = f"{GROUP}/validatingwebhookconfigurations"
        (await ask(world.admin, "POST", path, a_configuration())).expect(201)
        return await ask(world.admin, "POST", MAPS, a_config_map())

    refused = in_virtual_time(story, parts())
    assert refused.status == 500
    assert words in refused.message


async def test_a_service_nobody_located_has_no_endpoints() -> None:
    caller = HttpWebhooks()
    target = Target("", Service("compute", "guard", 443), "/validate", b"")
    with pytest.raises(WebhookCallError, match="no endpoints available"):
        await caller.call(target, {}, timedelta(seconds=1))
    await caller.close()


def only_own_cell(request: AdmissionRequest) -> Denial | None:
    cell = request.user.name.removeprefix("cell:")
    shown = request.wanted if request.wanted is not None else request.found
    if string_map_at(shown, "metadata", "labels").get("cell") == cell:
        return None
    return Denial(f"this object is not of cell {cell}", reason="Forbidden")


def a_policy(name: str = "own-cell") -> JsonObject:
    rule: JsonObject = {
        "operations": ["CREATE", "UPDATE", "DELETE"],
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "resources": ["configmaps"],
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": "written in CEL"}],
        },
    }


def a_policy_binding(*actions: str, **spec: JsonValue) -> JsonObject:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "bound"},
        "spec": {"policyName": "own-cell", "validationActions": [*actions], **spec},
    }


async def bind(admin: Connection, binding: JsonObject) -> None:
    (await ask(admin, "POST", f"{GROUP}/validatingadmissionpolicies", a_policy())).expect(201)
    path = f"{GROUP}/validatingadmissionpolicybindings"
    (await ask(admin, "POST", path, binding)).expect(201)


def guarded() -> PlaneParts:
    return PlaneParts(policies={"own-cell": only_own_cell})


DFW = authenticated("cell:dfw", "system:masters")


def test_the_python_form_of_a_bound_policy_refuses_with_the_words_of_a_real_one() -> None:
    async def story(world: World) -> Reply:
        await bind(world.admin, a_policy_binding("Deny"))
        cell = world.plane.connect(DFW)
        mine = a_config_map("mine", labels={"cell": "dfw"})
        (await ask(cell, "POST", MAPS, mine)).expect(201)
        (await ask(cell, "PATCH", f"{MAPS}/mine", {"data": {"a": "b"}}, MERGE_PATCH)).expect(200)
        (await ask(cell, "DELETE", f"{MAPS}/mine")).expect(200)
        return await ask(cell, "POST", MAPS, a_config_map("theirs", labels={"cell": "ord"}))

    refused = in_virtual_time(story, guarded())
    assert (refused.status, refused.reason) == (403, "Forbidden")
    assert refused.message == (
        "configmaps \"theirs\" is forbidden: ValidatingAdmissionPolicy 'own-cell' with binding "
        "'bound' denied request: this object is not of cell dfw"
    )


def test_a_policy_guards_nothing_until_it_is_bound_and_nothing_after() -> None:
    async def story(world: World) -> list[int]:
        cell, path = world.plane.connect(DFW), f"{GROUP}/validatingadmissionpolicies"
        (await ask(world.admin, "POST", path, a_policy())).expect(201)
        found = [(await ask(cell, "POST", MAPS, a_config_map("a"))).status]
        bindings = f"{GROUP}/validatingadmissionpolicybindings"
        (await ask(world.admin, "POST", bindings, a_policy_binding("Deny"))).expect(201)
        found.append((await ask(cell, "POST", MAPS, a_config_map("b"))).status)
        (await ask(world.admin, "DELETE", f"{bindings}/bound")).expect(200)
        found.append((await ask(cell, "POST", MAPS, a_config_map("c"))).status)
        return found

    assert in_virtual_time(story, guarded()) == [201, 403, 201]


def test_a_binding_may_warn_instead() -> None:
    async def story(world: World) -> Reply:
        await bind(world.admin, a_policy_binding("Warn"))
        return await ask(world.plane.connect(DFW), "POST", MAPS, a_config_map())

    reply = in_virtual_time(story, guarded())
    assert reply.status == 201
    assert "this object is not of cell dfw" in reply.warnings[0]


def test_a_binding_may_be_about_some_namespaces_only() -> None:
    async def story(world: World) -> list[int]:
        selector: JsonObject = {"matchLabels": {"kubernetes.io/metadata.name": "kube-public"}}
        await bind(
            world.admin, a_policy_binding("Deny", matchResources={"namespaceSelector": selector})
        )
        cell = world.plane.connect(DFW)
        return [
            (await ask(cell, "POST", MAPS.replace("default", name), a_config_map())).status
            for name in ("default", "kube-public")
        ]

    assert in_virtual_time(story, guarded()) == [201, 403]


def test_a_policy_without_a_python_form_is_refused() -> None:
    async def story(world: World) -> Reply:
        path = f"{GROUP}/validatingadmissionpolicies"
        return await ask(world.admin, "POST", path, a_policy("unknown"))

    refused = in_virtual_time(story, guarded())
    assert refused.status == 403
    assert "register a Python form" in refused.message
    assert string_at(refused.details, "name") == "unknown"
