"""Authentication and authorization: tokens, roles, reviews, and messages of refusals."""

from __future__ import annotations

import secrets

from compute_sim_planes.api_server.testing import (
    Api,
    ApiResponse,
    ServerAddress,
    a_config_map,
    a_widget,
    connect,
    eventually,
)
from compute_sim_planes.json_types import JsonObject, JsonValue, object_at

RBAC = "/apis/rbac.authorization.k8s.io/v1"


def a_role(*rules: JsonObject, kind: str = "Role", name: str = "reader") -> JsonObject:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name},
        "rules": [*rules],
    }


def a_binding(
    subject: JsonObject, *, kind: str = "RoleBinding", role: str = "Role/reader"
) -> JsonObject:
    role_kind, _, role_name = role.partition("/")
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": role_name},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": role_kind,
            "name": role_name,
        },
        "subjects": [subject],
    }


def a_user(name: str) -> JsonObject:
    return {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}


async def grant(api: Api, namespace: str, subject: JsonObject, *rules: JsonObject) -> None:
    path = f"{RBAC}/namespaces/{namespace}"
    (await api.post(f"{path}/roles", a_role(*rules))).expect(201)
    (await api.post(f"{path}/rolebindings", a_binding(subject))).expect(201)


async def allowed(api: Api, path: str) -> ApiResponse:
    """A real server's authorizer sees new roles after a moment."""
    return await eventually(lambda: api.get(path), lambda response: response.status != 403)


async def test_an_unknown_token_is_unauthorized(api_server: ServerAddress) -> None:
    address = ServerAddress(api_server.url, "nonsense", api_server.authority)
    async with connect(address) as stranger:
        refused = await stranger.get("/api/v1/namespaces")
    refused.expect(401)
    assert refused.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "Unauthorized",
        "reason": "Unauthorized",
        "code": 401,
    }


async def test_a_refusal_names_the_missing_permission(
    api: Api, widgets: str, namespace: str
) -> None:
    bob = api.impersonating("bob")
    refused = await bob.get(f"{widgets}/one")
    refused.expect(403)
    assert refused.reason == "Forbidden"
    assert refused.message == (
        'widgets.contract.example.com "one" is forbidden: User "bob" cannot get resource "widgets" '
        f'in API group "contract.example.com" in the namespace "{namespace}"'
    )
    assert refused.details == {
        "name": "one",
        "group": "contract.example.com",
        "kind": "widgets",
    }
    listed = await bob.get("/api/v1/nodes")
    assert listed.message == (
        'nodes is forbidden: User "bob" cannot list resource "nodes" in API group "" at the '
        "cluster scope"
    )
    status = await bob.merge(f"{widgets}/one/status", {"status": {}})
    assert status.message == (
        'widgets.contract.example.com "one" is forbidden: User "bob" cannot patch resource '
        f'"widgets/status" in API group "contract.example.com" in the namespace "{namespace}"'
    )
    path = await bob.get("/metrics")
    assert path.expect(403)["message"] == 'forbidden: User "bob" cannot get path "/metrics"'


async def test_absent_and_forbidden_look_alike_to_those_without_rights(
    api: Api, widgets: str
) -> None:
    assert (await api.impersonating("bob").get(f"{widgets}/nobody")).status == 403


async def test_a_role_grants_its_verbs_on_its_resources_and_no_others(
    api: Api, widgets: str, namespace: str
) -> None:
    (await api.post(widgets, a_widget())).expect(201)
    user = f"user-{secrets.token_hex(4)}"
    rule: JsonObject = {
        "apiGroups": ["contract.example.com"],
        "resources": ["widgets"],
        "verbs": ["get", "list", "watch"],
    }
    await grant(api, namespace, a_user(user), rule)
    bob = api.impersonating(user)
    (await allowed(bob, f"{widgets}/one")).expect(200)
    (await bob.get(widgets)).expect(200)
    (await bob.post(widgets, a_widget("two"))).expect(403)
    (await bob.delete(f"{widgets}/one")).expect(403)
    (await bob.delete(widgets)).expect(403)
    (await bob.get(f"{widgets}/one/status")).expect(403)
    (await bob.get(f"/api/v1/namespaces/{namespace}/configmaps")).expect(403)
    (await bob.get("/apis/contract.example.com/v1/widgets")).expect(403)
    (await bob.get(widgets.replace(namespace, "default"))).expect(403)


async def test_a_rule_may_name_objects(api: Api, namespace: str) -> None:
    config_maps = f"/api/v1/namespaces/{namespace}/configmaps"
    for name in ("mine", "yours"):
        (await api.post(config_maps, a_config_map(name))).expect(201)
    user = f"user-{secrets.token_hex(4)}"
    rule: JsonObject = {
        "apiGroups": [""],
        "resources": ["configmaps"],
        "resourceNames": ["mine"],
        "verbs": ["get"],
    }
    await grant(api, namespace, a_user(user), rule)
    bob = api.impersonating(user)
    (await allowed(bob, f"{config_maps}/mine")).expect(200)
    (await bob.get(f"{config_maps}/yours")).expect(403)
    (await bob.get(config_maps)).expect(403)


async def test_service_accounts_and_groups_are_subjects_too(api: Api, namespace: str) -> None:
    rule: JsonObject = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}
    subject: JsonObject = {"kind": "ServiceAccount", "name": "robot", "namespace": namespace}
    await grant(api, namespace, subject, rule)
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    robot = api.impersonating(f"system:serviceaccount:{namespace}:robot")
    (await allowed(robot, path)).expect(200)
    other = api.impersonating(f"system:serviceaccount:{namespace}:other")
    (await other.get(path)).expect(403)
    group = f"group-{secrets.token_hex(4)}"
    team: JsonObject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": group}
    binding = a_binding(team)
    binding["metadata"] = {"name": "team"}
    (await api.post(f"{RBAC}/namespaces/{namespace}/rolebindings", binding)).expect(201)
    (await allowed(api.impersonating("eve", group), path)).expect(200)


async def test_a_cluster_role_holds_everywhere_or_where_it_is_bound(
    api: Api, namespace: str
) -> None:
    name = f"contract-{secrets.token_hex(4)}"
    rule: JsonObject = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}
    role = a_role(rule, kind="ClusterRole", name=name)
    (await api.post(f"{RBAC}/clusterroles", role)).expect(201)
    here, everywhere = f"{name}-here", f"{name}-everywhere"
    local = a_binding(a_user(here), role=f"ClusterRole/{name}")
    (await api.post(f"{RBAC}/namespaces/{namespace}/rolebindings", local)).expect(201)
    wide = a_binding(a_user(everywhere), kind="ClusterRoleBinding", role=f"ClusterRole/{name}")
    (await api.post(f"{RBAC}/clusterrolebindings", wide)).expect(201)
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    (await allowed(api.impersonating(here), path)).expect(200)
    (await api.impersonating(here).get("/api/v1/configmaps")).expect(403)
    (await allowed(api.impersonating(everywhere), "/api/v1/configmaps")).expect(200)
    (await api.delete(f"{RBAC}/clusterrolebindings/{name}")).expect(200)
    (await api.delete(f"{RBAC}/clusterroles/{name}")).expect(200)


async def test_a_right_ends_with_its_binding(api: Api, namespace: str) -> None:
    user = f"user-{secrets.token_hex(4)}"
    rule: JsonObject = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}
    await grant(api, namespace, a_user(user), rule)
    bob, path = api.impersonating(user), f"/api/v1/namespaces/{namespace}/configmaps"
    (await allowed(bob, path)).expect(200)
    (await api.delete(f"{RBAC}/namespaces/{namespace}/rolebindings/reader")).expect(200)
    await eventually(lambda: bob.get(path), lambda response: response.status == 403)


async def test_the_role_of_a_binding_cannot_be_changed(api: Api, namespace: str) -> None:
    path = f"{RBAC}/namespaces/{namespace}/rolebindings"
    (await api.post(path, a_binding(a_user("bob")))).expect(201)
    refused = await api.merge(f"{path}/reader", {"roleRef": {"name": "other"}})
    refused.expect(422)
    assert "cannot change roleRef" in refused.message


async def test_discovery_is_allowed_for_all_users(api: Api) -> None:
    bob = api.impersonating("bob")
    for path in ("/version", "/api", "/apis", "/api/v1", "/healthz", "/openapi/v3"):
        assert (await bob.get(path)).status == 200, path


def a_question(verb: str, namespace: str, **spec: JsonValue) -> JsonObject:
    attributes: JsonObject = {"verb": verb, "resource": "configmaps", "namespace": namespace}
    return {"resourceAttributes": attributes, **spec}


async def ask(api: Api, kind: str, spec: JsonObject) -> JsonObject:
    path = f"/apis/authorization.k8s.io/v1/{kind.lower()}s"
    body: JsonObject = {"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec}
    return object_at((await api.post(path, body)).expect(201), "status")


async def test_rights_can_be_asked_for(api: Api, namespace: str) -> None:
    user = f"user-{secrets.token_hex(4)}"
    rule: JsonObject = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}
    await grant(api, namespace, a_user(user), rule)
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    (await allowed(api.impersonating(user), path)).expect(200)
    may = await ask(api, "SubjectAccessReview", a_question("list", namespace, user=user))
    assert may["allowed"] is True
    assert str(may["reason"]).startswith(f'RBAC: allowed by RoleBinding "reader/{namespace}"')
    may_not = await ask(api, "SubjectAccessReview", a_question("get", namespace, user=user))
    assert may_not["allowed"] is False
    own = await ask(
        api.impersonating(user), "SelfSubjectAccessReview", a_question("list", namespace)
    )
    assert own["allowed"] is True
    admin = await ask(api, "SelfSubjectAccessReview", a_question("delete", namespace))
    assert admin["allowed"] is True


async def test_a_review_without_a_user_is_refused(api: Api, namespace: str) -> None:
    body: JsonObject = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": a_question("list", namespace),
    }
    refused = await api.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", body)
    refused.expect(422)
    assert "at least one of user or group must be specified" in refused.message


async def test_a_token_can_be_reviewed(api: Api, api_server: ServerAddress) -> None:
    path = "/apis/authentication.k8s.io/v1/tokenreviews"

    def review(token: str) -> JsonObject:
        return {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token},
        }

    known = object_at((await api.post(path, review(api_server.token))).expect(201), "status")
    assert known["authenticated"] is True
    assert object_at(known, "user")["username"]
    unknown = object_at((await api.post(path, review("nonsense"))).expect(201), "status")
    assert "authenticated" not in unknown
    assert unknown["error"] == "invalid bearer token"


async def test_a_user_can_review_its_own_identity(api: Api) -> None:
    body: JsonObject = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    answered = (await api.impersonating("bob").post(path, body)).expect(201)
    assert object_at(answered, "status", "userInfo") == {
        "username": "bob",
        "groups": ["system:authenticated"],
    }


async def test_impersonation_needs_a_permission(api: Api, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    bob = api.impersonating("bob")
    body: JsonObject = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": "impersonate", "resource": "users", "name": "eve"}},
    }
    answered = await bob.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body)
    assert object_at(answered.expect(201), "status")["allowed"] is False
    (await bob.get(path)).expect(403)
