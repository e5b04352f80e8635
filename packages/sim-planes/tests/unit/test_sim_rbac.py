from __future__ import annotations

from collections.abc import Iterable

import pytest

from compute_sim_planes.api_server.authz.authorizer import Attributes
from compute_sim_planes.api_server.authz.identity import ADMIN, ANONYMOUS, User, authenticated
from compute_sim_planes.api_server.authz.rbac import RoleAuthorizer, bootstrap_objects
from compute_sim_planes.json_types import JsonObject, JsonValue

RESOURCES = {
    "ClusterRole": "clusterroles",
    "ClusterRoleBinding": "clusterrolebindings",
    "Role": "roles",
    "RoleBinding": "rolebindings",
}
ALICE = authenticated("alice", "team")
AGENT = authenticated("system:serviceaccount:compute:agent")


class Roles:
    """RBAC objects in a list, with a count of reads."""

    def __init__(self, *objects: JsonObject) -> None:
        self.held = list(objects)
        self.changes = 0
        self.reads = 0

    def version(self) -> int:
        return self.changes

    def objects(self, resource: str) -> Iterable[JsonObject]:
        self.reads += 1
        return [document for document in self.held if RESOURCES[str(document["kind"])] == resource]


def a_role(*rules: JsonObject, namespace: str = "", name: str = "r") -> JsonObject:
    kind = "Role" if namespace else "ClusterRole"
    return {"kind": kind, "metadata": {"name": name, "namespace": namespace}, "rules": [*rules]}


def a_binding(
    *subjects: JsonObject, namespace: str = "", role: str = "r", role_kind: str = ""
) -> JsonObject:
    kind = "RoleBinding" if namespace else "ClusterRoleBinding"
    role_kind = role_kind or ("Role" if namespace else "ClusterRole")
    return {
        "kind": kind,
        "metadata": {"name": "b", "namespace": namespace},
        "roleRef": {"kind": role_kind, "name": role},
        "subjects": [*subjects],
    }


def a_rule(**fields: list[str]) -> JsonObject:
    rule: JsonObject = {"verbs": ["get"], "apiGroups": [""], "resources": ["configmaps"]}
    return {**rule, **{name: list[JsonValue](values) for name, values in fields.items()}}


USER: JsonObject = {"kind": "User", "name": "alice"}


def may(user: User, attributes: Attributes, *objects: JsonObject) -> bool:
    return RoleAuthorizer(Roles(*objects)).authorize(user, attributes).allowed


def getting(resource: str = "configmaps", **other: str) -> Attributes:
    subresource, group = other.get("subresource", ""), other.get("group", "")
    namespace, name = other.get("namespace", ""), other.get("name", "")
    return Attributes(other.get("verb", "get"), group, "v1", resource, subresource, namespace, name)


def test_nothing_is_allowed_without_a_rule_but_to_masters() -> None:
    assert not may(ALICE, getting())
    assert may(ADMIN, getting())


@pytest.mark.parametrize(
    ("rule", "attributes"),
    [
        (a_rule(), getting()),
        (a_rule(verbs=["*"]), getting(verb="delete")),
        (a_rule(apiGroups=["*"]), getting(group="example.com")),
        (a_rule(resources=["*"]), getting("secrets")),
        (a_rule(resources=["*"]), getting("pods", subresource="log")),
        (a_rule(resources=["pods/log"]), getting("pods", subresource="log")),
        (a_rule(resources=["*/status"]), getting("pods", subresource="status")),
        (a_rule(resourceNames=["a"]), getting(name="a")),
    ],
)
def test_a_rule_allows_what_it_names(rule: JsonObject, attributes: Attributes) -> None:
    assert may(ALICE, attributes, a_role(rule), a_binding(USER))


@pytest.mark.parametrize(
    ("rule", "attributes"),
    [
        (a_rule(), getting(verb="list")),
        (a_rule(), getting(group="example.com")),
        (a_rule(), getting("secrets")),
        (a_rule(resources=["pods"]), getting("pods", subresource="log")),
        (a_rule(resources=["pods/log"]), getting("pods")),
        (a_rule(resourceNames=["a"]), getting(name="b")),
        (a_rule(resourceNames=["a"], verbs=["list"]), getting(verb="list")),
        (a_rule(), Attributes("get", path="/metrics")),
    ],
)
def test_a_rule_allows_nothing_else(rule: JsonObject, attributes: Attributes) -> None:
    assert not may(ALICE, attributes, a_role(rule), a_binding(USER))


@pytest.mark.parametrize(
    ("path", "requested", "expected"),
    [
        ("/metrics", "/metrics", True),
        ("/metrics", "/metrics/x", False),
        ("/healthz/*", "/healthz/etcd", True),
        ("/healthz/*", "/healthz", False),
        ("*", "/anything", True),
    ],
)
def test_paths_are_allowed_exactly_or_by_prefix(path: str, requested: str, expected: bool) -> None:
    rule: JsonObject = {"verbs": ["get"], "nonResourceURLs": [path]}

    assert may(ALICE, Attributes("get", path=requested), a_role(rule), a_binding(USER)) is expected


def test_groups_and_service_accounts_are_subjects_too() -> None:
    rules = a_role(a_rule())
    group: JsonObject = {"kind": "Group", "name": "team"}
    account: JsonObject = {"kind": "ServiceAccount", "name": "agent", "namespace": "compute"}
    stranger: JsonObject = {"kind": "ServiceAccount", "name": "agent", "namespace": "other"}

    assert may(ALICE, getting(), rules, a_binding(group))
    assert may(AGENT, getting(), rules, a_binding(account))
    assert not may(AGENT, getting(), rules, a_binding(stranger))
    assert not may(ALICE, getting(), rules, a_binding({"kind": "Robot", "name": "alice"}))


def test_a_role_binding_reaches_its_own_namespace_only() -> None:
    objects = (a_role(a_rule(), namespace="n"), a_binding(USER, namespace="n"))

    assert may(ALICE, getting(namespace="n"), *objects)
    assert not may(ALICE, getting(namespace="m"), *objects)
    assert not may(ALICE, getting(), *objects)


def test_a_cluster_role_bound_in_a_namespace_holds_there_only() -> None:
    objects = (a_role(a_rule()), a_binding(USER, namespace="n", role_kind="ClusterRole"))

    assert may(ALICE, getting(namespace="n"), *objects)
    assert not may(ALICE, getting(namespace="m"), *objects)


def test_a_role_of_another_namespace_is_not_found() -> None:
    objects = (a_role(a_rule(), namespace="m"), a_binding(USER, namespace="n"))
    authorizer = RoleAuthorizer(Roles(*objects))

    verdict = authorizer.authorize(ALICE, getting(namespace="n"))

    assert not verdict.allowed
    assert verdict.reason == 'RBAC: role.rbac.authorization.k8s.io "r" not found'


def test_an_allowed_request_names_its_binding() -> None:
    authorizer = RoleAuthorizer(Roles(a_role(a_rule()), a_binding(USER)))

    assert authorizer.authorize(ALICE, getting()).reason == (
        'RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "r" to User "alice"'
    )


def test_rules_are_read_again_only_when_they_changed() -> None:
    roles = Roles(a_role(a_rule()))
    authorizer = RoleAuthorizer(roles)
    assert not authorizer.authorize(ALICE, getting()).allowed
    roles.held.append(a_binding(USER))
    assert not authorizer.authorize(ALICE, getting()).allowed
    roles.changes += 1

    assert authorizer.authorize(ALICE, getting()).allowed
    assert roles.reads == 8


def test_a_new_plane_allows_discovery_and_nothing_more() -> None:
    roles = Roles(*bootstrap_objects())
    authorizer = RoleAuthorizer(roles)

    def may_read(user: User, path: str) -> bool:
        return authorizer.authorize(user, Attributes("get", path=path)).allowed

    assert may_read(ALICE, "/apis/example.com/v1")
    assert may_read(ALICE, "/openapi/v3")
    assert may_read(ANONYMOUS, "/readyz")
    assert not may_read(ANONYMOUS, "/apis")
    assert not authorizer.authorize(ALICE, getting()).allowed
