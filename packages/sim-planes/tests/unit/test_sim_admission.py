"""Admission plugins of a plane in virtual time: webhooks as functions, and policies."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta

import pytest

from compute_sim_planes.api_server.admission.webhook_clients import (
    HttpWebhooks,
    RegisteredWebhooks,
    ServiceReference,
    WebhookCallError,
    WebhookTarget,
)
from compute_sim_planes.api_server.authz.identity import authenticated
from compute_sim_planes.api_server.plane import PlaneParts, UserTransport
from compute_sim_planes.api_server.schema.expressions import (
    ExpressionError,
    ExpressionInputs,
    compile_expression,
)
from compute_sim_planes.api_server.testing import (
    MERGE_PATCH,
    ApiResponse,
    World,
    a_config_map,
    ask,
    in_virtual_time,
)
from compute_sim_planes.json_types import JsonObject, JsonValue, object_at

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
    respond: Callable[[JsonObject], JsonObject], delay: timedelta = timedelta()
) -> Webhooks:
    return Webhooks(respond, delay)


class Webhooks(RegisteredWebhooks):
    """One webhook in this process, registered as an operator's would be."""

    def __init__(self, respond: Callable[[JsonObject], JsonObject], delay: timedelta) -> None:
        super().__init__()
        self._respond = respond
        self._delay = delay
        self.asked: list[JsonObject] = []
        self.webhooks[ADDRESS] = self._answer

    async def _answer(self, review: JsonObject) -> JsonObject:
        request = object_at(review, "request")
        self.asked.append(request)
        await asyncio.sleep(self._delay.total_seconds())
        response: JsonObject = {"uid": request["uid"], **self._respond(request)}
        return {**review, "response": response}


def test_a_registered_function_is_asked_under_the_address_of_its_service() -> None:
    webhooks = reviewing(lambda _: {"allowed": True})

    async def scenario(world: World) -> None:
        (
            await ask(
                world.admin, "POST", f"{GROUP}/validatingwebhookconfigurations", a_configuration()
            )
        ).expect(201)
        (await ask(world.admin, "POST", MAPS, a_config_map())).expect(201)

    in_virtual_time(scenario, PlaneParts(webhooks=webhooks))
    assert [request["operation"] for request in webhooks.asked] == ["CREATE"]


def test_a_function_that_takes_too_long_fails_the_request_in_virtual_time() -> None:
    webhooks = reviewing(lambda _: {"allowed": True}, timedelta(minutes=1))

    async def scenario(world: World) -> tuple[ApiResponse, float]:
        path = f"{GROUP}/validatingwebhookconfigurations"
        (await ask(world.admin, "POST", path, a_configuration(timeoutSeconds=5))).expect(201)
        began = world.clock.monotonic()
        reply = await ask(world.admin, "POST", MAPS, a_config_map())
        return reply, (world.clock.monotonic() - began).total_seconds()

    refused, waited = in_virtual_time(scenario, PlaneParts(webhooks=webhooks))
    assert (refused.status, waited) == (500, 5.0)
    assert "context deadline exceeded" in refused.message


def test_a_patch_that_lost_the_race_during_a_review_is_worked_out_anew() -> None:
    webhooks = reviewing(lambda _: {"allowed": True}, timedelta(seconds=1))

    async def scenario(world: World) -> JsonValue:
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

    # No change is lost, although both were reviewed at the same time.
    assert in_virtual_time(scenario, PlaneParts(webhooks=webhooks)) == {
        "n": "0",
        "a": "1",
        "b": "1",
    }
    assert len(webhooks.asked) == 3


def test_a_replacement_that_lost_the_race_during_a_review_is_a_conflict() -> None:
    webhooks = reviewing(lambda _: {"allowed": True}, timedelta(seconds=1))

    async def scenario(world: World) -> list[int]:
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

    assert in_virtual_time(scenario, PlaneParts(webhooks=webhooks)) == [200, 409, 409]


def test_an_object_created_during_a_review_already_exists_for_the_second() -> None:
    webhooks = reviewing(lambda _: {"allowed": True}, timedelta(seconds=1))

    async def scenario(world: World) -> list[int]:
        path = f"{GROUP}/validatingwebhookconfigurations"
        (await ask(world.admin, "POST", path, a_configuration())).expect(201)
        tasks = [
            asyncio.create_task(ask(world.admin, "POST", MAPS, a_config_map())) for _ in range(2)
        ]
        return sorted([(await task).status for task in tasks])

    assert in_virtual_time(scenario, PlaneParts(webhooks=webhooks)) == [201, 409]


def test_conditions_in_cel_are_refused_instead_of_ignored() -> None:
    async def scenario(world: World) -> ApiResponse:
        condition: JsonValue = [{"name": "c", "expression": "true"}]
        path = f"{GROUP}/validatingwebhookconfigurations"
        return await ask(world.admin, "POST", path, a_configuration(matchConditions=condition))

    refused = in_virtual_time(scenario)
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

    async def scenario(world: World) -> ApiResponse:
        path = f"{GROUP}/validatingwebhookconfigurations"
        (await ask(world.admin, "POST", path, a_configuration())).expect(201)
        return await ask(world.admin, "POST", MAPS, a_config_map())

    refused = in_virtual_time(scenario, parts())
    assert refused.status == 500
    assert words in refused.message


async def test_an_unknown_service_has_no_endpoints() -> None:
    caller = HttpWebhooks()
    target = WebhookTarget("", ServiceReference("compute", "guard", 443), "/validate", b"")
    with pytest.raises(WebhookCallError, match="no endpoints available"):
        await caller.call(target, {}, timedelta(seconds=1))
    await caller.close()


def a_policy(**spec: JsonValue) -> JsonObject:
    rule: JsonObject = {
        "operations": ["CREATE", "UPDATE", "DELETE"],
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "resources": ["configmaps"],
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "own-cell"},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [rule]},
            "variables": [
                {"name": "cell", "expression": "request.userInfo.username.substring(size('cell:'))"}
            ],
            "validations": [
                {
                    "expression": "(object == null ? oldObject : object).metadata"
                    ".?labels[?'cell'].orValue('') == variables.cell",
                    "messageExpression": "'this object is not of cell ' + variables.cell",
                    "reason": "Forbidden",
                }
            ],
            **spec,
        },
    }


def a_policy_binding(*actions: str, **spec: JsonValue) -> JsonObject:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "bound"},
        "spec": {"policyName": "own-cell", "validationActions": [*actions], **spec},
    }


async def bind(admin: UserTransport, binding: JsonObject) -> None:
    (await ask(admin, "POST", f"{GROUP}/validatingadmissionpolicies", a_policy())).expect(201)
    path = f"{GROUP}/validatingadmissionpolicybindings"
    (await ask(admin, "POST", path, binding)).expect(201)


DFW = authenticated("cell:dfw", "system:masters")


def test_a_bound_policy_refuses_with_the_message_of_a_real_server() -> None:
    async def scenario(world: World) -> ApiResponse:
        await bind(world.admin, a_policy_binding("Deny"))
        cell = world.plane.connect(DFW)
        mine = a_config_map("mine", labels={"cell": "dfw"})
        (await ask(cell, "POST", MAPS, mine)).expect(201)
        (await ask(cell, "PATCH", f"{MAPS}/mine", {"data": {"a": "b"}}, MERGE_PATCH)).expect(200)
        (await ask(cell, "DELETE", f"{MAPS}/mine")).expect(200)
        return await ask(cell, "POST", MAPS, a_config_map("theirs", labels={"cell": "ord"}))

    refused = in_virtual_time(scenario)
    assert (refused.status, refused.reason) == (403, "Forbidden")
    assert refused.message == (
        "configmaps \"theirs\" is forbidden: ValidatingAdmissionPolicy 'own-cell' with binding "
        "'bound' denied request: this object is not of cell dfw"
    )


def test_a_policy_guards_nothing_until_it_is_bound_and_nothing_after() -> None:
    async def scenario(world: World) -> list[int]:
        cell, path = world.plane.connect(DFW), f"{GROUP}/validatingadmissionpolicies"
        (await ask(world.admin, "POST", path, a_policy())).expect(201)
        statuses = [(await ask(cell, "POST", MAPS, a_config_map("a"))).status]
        bindings = f"{GROUP}/validatingadmissionpolicybindings"
        (await ask(world.admin, "POST", bindings, a_policy_binding("Deny"))).expect(201)
        statuses.append((await ask(cell, "POST", MAPS, a_config_map("b"))).status)
        (await ask(world.admin, "DELETE", f"{bindings}/bound")).expect(200)
        statuses.append((await ask(cell, "POST", MAPS, a_config_map("c"))).status)
        return statuses

    assert in_virtual_time(scenario) == [201, 403, 201]


def test_a_binding_may_warn_instead() -> None:
    async def scenario(world: World) -> ApiResponse:
        await bind(world.admin, a_policy_binding("Warn"))
        return await ask(world.plane.connect(DFW), "POST", MAPS, a_config_map())

    reply = in_virtual_time(scenario)
    assert reply.status == 201
    assert "this object is not of cell dfw" in reply.warnings[0]


def test_a_binding_may_be_about_some_namespaces_only() -> None:
    async def scenario(world: World) -> list[int]:
        selector: JsonObject = {"matchLabels": {"kubernetes.io/metadata.name": "kube-public"}}
        await bind(
            world.admin, a_policy_binding("Deny", matchResources={"namespaceSelector": selector})
        )
        cell = world.plane.connect(DFW)
        return [
            (await ask(cell, "POST", MAPS.replace("default", name), a_config_map())).status
            for name in ("default", "kube-public")
        ]

    assert in_virtual_time(scenario) == [201, 403]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"paramKind": {"kind": "Limit"}}, "spec.paramKind: Forbidden: this server does not"),
        ({"auditAnnotations": [{"key": "a"}]}, "spec.auditAnnotations: Forbidden: this server"),
        ({"variables": [{"name": "a", "expression": "[object.?a]"}]}, "keeps no optional"),
        ({"validations": [{"expression": "has(variables.cell)"}]}, "must evaluate to bool"),
        ({"validations": [{"expression": "quantity('1').isInteger()"}]}, "reference to 'quantity'"),
        ({"validations": [{"expression": "namespaceObject == null"}]}, "to 'namespaceObject'"),
        ({"validations": [{"expression": "authorizer == null"}]}, "reference to 'authorizer'"),
    ],
)
def test_a_policy_that_only_a_real_server_evaluates_is_refused(
    spec: JsonObject, message: str
) -> None:
    async def scenario(world: World) -> ApiResponse:
        path = f"{GROUP}/validatingadmissionpolicies"
        return await ask(world.admin, "POST", path, a_policy(**spec))

    refused = in_virtual_time(scenario)
    assert refused.status == 422
    assert message in refused.message


def test_a_value_that_is_no_bool_is_an_error() -> None:
    inputs = ExpressionInputs({"object": {"a": "text"}})
    with pytest.raises(ExpressionError, match=r"'object\.a' resulted in error: expected a bool"):
        inputs.holds(compile_expression("object.a"))
