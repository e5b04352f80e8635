"""ValidatingAdmissionPolicies: which are stored, and what their expressions decide."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from compute_sim_planes.api_server.testing import Api, ApiResponse, a_config_map, eventually
from compute_sim_planes.json_types import JsonObject, JsonValue, objects_at

GROUP = "admissionregistration.k8s.io/v1"
POLICIES = f"/apis/{GROUP}/validatingadmissionpolicies"
BINDINGS = f"/apis/{GROUP}/validatingadmissionpolicybindings"
ERROR = "resulted in error: "
ABSENT: JsonObject = {"expression": "object.data.absent == '1'", "message": "not shown"}
PROBE = "object.metadata.name == 'probe'"


def a_policy(namespace: str, **spec: JsonValue) -> JsonObject:
    """A policy for the ConfigMaps of the test's own namespace, because a real server is shared."""
    rule: JsonObject = {"operations": ["CREATE"], "resources": ["configmaps"]}
    rule |= {"apiGroups": [""], "apiVersions": ["v1"]}
    selector: JsonObject = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    return {
        "apiVersion": GROUP,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": namespace},
        "spec": {
            "matchConstraints": {"resourceRules": [rule], "namespaceSelector": selector},
            **spec,
        },
    }


@asynccontextmanager
async def bound(api: Api, namespace: str, policy: JsonObject) -> AsyncGenerator[str]:
    """The path of ConfigMaps once the policy is in force, which it shows for one named `probe`."""
    (await api.post(POLICIES, policy)).expect(201)
    binding: JsonObject = {
        "apiVersion": GROUP,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": namespace},
        "spec": {"policyName": namespace, "validationActions": ["Deny"]},
    }
    (await api.post(BINDINGS, binding)).expect(201)
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    try:
        await await_refusal(api, path, "in force")
        yield path
    finally:
        await api.delete(f"{BINDINGS}/{namespace}")
        await api.delete(f"{POLICIES}/{namespace}")


async def await_refusal(api: Api, path: str, message: str) -> None:
    await eventually(
        lambda: api.post(path, a_config_map("probe"), dryRun="All"),
        lambda response: message in response.message,
    )


@dataclass(frozen=True, slots=True)
class Case:
    """A policy, and the response to the ConfigMap `one` with the data `a: b`."""

    title: str
    status: int
    message: str
    validation: JsonObject
    conditions: tuple[str, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    failure_policy: str = "Fail"

    def spec(self) -> JsonObject:
        conditions = [f"{PROBE} || ({condition})" for condition in self.conditions]
        return {
            "failurePolicy": self.failure_policy,
            "matchConditions": [
                {"name": f"condition-{at}", "expression": condition}
                for at, condition in enumerate(conditions)
            ],
            "variables": [
                {"name": name, "expression": expression} for name, expression in self.variables
            ],
            "validations": [
                {"expression": f"!({PROBE})", "message": "in force"},
                self.validation,
            ],
        }


CASES = (
    Case(
        "reason and message",
        403,
        "denied request: not you",
        {"expression": "'x' in object.data", "reason": "Forbidden", "message": " not you "},
    ),
    Case(
        "no message",
        422,
        "denied request: failed expression: 'x' in object.data",
        {"expression": " 'x' in object.data "},
    ),
    Case(
        "message expression",
        422,
        "denied request: one has b",
        {
            "expression": "variables.a != 'b'",
            "message": "not shown",
            "messageExpression": "variables.name + ' has ' + variables.a",
        },
        variables=(("name", "object.metadata.name"), ("a", "object.data.a")),
    ),
    Case(
        "message expression that fails",
        422,
        "denied request: shown instead",
        {
            "expression": "false",
            "message": "shown instead",
            "messageExpression": "string(object.data.absent)",
        },
    ),
    Case(
        "variable that reads another",
        422,
        "denied request: both",
        {"expression": "variables.second != 'bb!'", "message": "both"},
        variables=(("first", "object.data.a + 'b'"), ("second", "variables.first + '!'")),
    ),
    Case(
        "objects and attributes of the request",
        201,
        "",
        {
            "expression": "oldObject == null && request.operation == 'CREATE'"
            " && request.resource.resource == 'configmaps' && request.name == 'one'"
            " && !has(request.subResource) && request.dryRun == false"
        },
    ),
    Case("error", 422, f"expression '{ABSENT['expression']}' {ERROR}", ABSENT),
    Case("error that is ignored", 201, "", ABSENT, failure_policy="Ignore"),
    Case("false condition", 201, "", ABSENT, conditions=("request.operation == 'DELETE'",)),
    Case(
        "false condition outweighs an error",
        201,
        "",
        ABSENT,
        conditions=("object.data.absent == '1'", "request.operation == 'DELETE'"),
    ),
    Case(
        "condition with an error",
        422,
        ERROR,
        {"expression": "true"},
        conditions=("object.data.absent == '1'",),
    ),
    Case(
        "variable with an error that is not read",
        201,
        "",
        {"expression": "true || variables.absent == '1'"},
        variables=(("absent", "object.data.absent"),),
    ),
    Case(
        "variable with an error",
        422,
        f"expression 'variables.absent == '1'' {ERROR}",
        {"expression": "variables.absent == '1'"},
        variables=(("absent", "object.data.absent"),),
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
async def test_expressions_decide_about_a_request(api: Api, namespace: str, case: Case) -> None:
    async with bound(api, namespace, a_policy(namespace, **case.spec())) as path:
        reply = await api.post(path, a_config_map("one", {"a": "b"}))
    assert reply.status == case.status, reply.message
    assert case.message in reply.message


async def test_a_changed_policy_is_evaluated_as_it_is(api: Api, namespace: str) -> None:
    def validated(message: str) -> JsonObject:
        return a_policy(namespace, validations=[{"expression": "false", "message": message}])

    async with bound(api, namespace, validated("in force")) as path:
        target = f"{POLICIES}/{namespace}"
        (await api.apply(target, validated("changed"), "contract", force="true")).expect(200)
        await await_refusal(api, path, "denied request: changed")
        broken = await api.apply(target, validated_by("nothing(object)", namespace), "contract")
        (await api.post(path, a_config_map("one"))).expect(422)
    assert_refused(broken, "spec.validations[0].expression", "compilation failed: ERROR: ")


def validated_by(expression: str, namespace: str) -> JsonObject:
    return a_policy(namespace, validations=[{"expression": expression}])


def assert_refused(reply: ApiResponse, path: str, detail: str) -> None:
    assert reply.status == 422, reply.message
    causes = {cause["field"]: cause["message"] for cause in objects_at(reply.details, "causes")}
    assert list(causes) == [path]
    assert detail in str(causes[path])


@pytest.mark.parametrize(
    ("expression", "detail"),
    [
        ("nothing(object)", "undeclared reference to 'nothing' (in container '')"),
        ("object.data.a ==", "compilation failed: ERROR: <input>:1:17: Syntax error: "),
        ("request.operation + 1 == 'x' && 'a' + 1 == 'a1'", "found no matching overload for '_+_'"),
        ("variables.absent == 'x'", "compilation failed: ERROR: "),
        ("variables.text == 1", "found no matching overload for '_==_'"),
        ("'text'", "must evaluate to bool"),
        ("object.data.a", "must evaluate to bool"),
    ],
)
async def test_a_policy_with_an_expression_that_does_not_compile_is_refused(
    api: Api, namespace: str, expression: str, detail: str
) -> None:
    policy = a_policy(
        namespace,
        variables=[{"name": "text", "expression": "'text'"}],
        validations=[{"expression": expression}],
    )
    reply = await api.post(POLICIES, policy)
    assert_refused(reply, "spec.validations[0].expression", detail)


@pytest.mark.parametrize(
    ("field", "path", "detail"),
    [
        ("matchConditions", "spec.matchConditions[0].expression", "must evaluate to bool"),
        ("variables", "spec.variables[0].expression", "compilation failed: ERROR: "),
        ("validations", "spec.validations[0].messageExpression", "must evaluate to string"),
    ],
)
async def test_every_expression_of_a_policy_is_compiled(
    api: Api, namespace: str, field: str, path: str, detail: str
) -> None:
    entries: dict[str, JsonObject] = {
        "matchConditions": {"name": "wrong", "expression": "1"},
        "variables": {"name": "wrong", "expression": "nothing"},
        "validations": {"expression": "true", "messageExpression": "1"},
    }
    spec: JsonObject = {"validations": [{"expression": "true"}], field: [entries[field]]}
    assert_refused(await api.post(POLICIES, a_policy(namespace, **spec)), path, detail)
