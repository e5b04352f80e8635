"""The RBAC authorizer: permissions from Roles, ClusterRoles and their bindings.

The objects are those of the plane, rendered from `deploy/`, so a test runs with the permissions
that ship. Without a rule nothing is allowed; only `system:masters` needs none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from compute_sim_planes.api_server.authz.authorizer import Attributes, Decision
from compute_sim_planes.api_server.authz.identity import MASTERS, User
from compute_sim_planes.json_types import (
    JsonObject,
    object_at,
    objects_at,
    string_at,
    strings_at,
)

API_GROUP: Final = "rbac.authorization.k8s.io"
EVERYTHING: Final = "*"


class RoleObjects(Protocol):
    """The RBAC objects of a plane, and a number that changes with each of their writes."""

    def version(self) -> int: ...

    def objects(self, resource: str) -> Iterable[JsonObject]: ...


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """One policy rule of a role."""

    verbs: frozenset[str]
    groups: frozenset[str]
    resources: frozenset[str]
    names: frozenset[str]
    paths: tuple[str, ...]

    def allows(self, attributes: Attributes) -> bool:
        if not _includes(self.verbs, attributes.verb):
            return False
        if not attributes.resource:
            return any(_covers(path, attributes.path) for path in self.paths)
        return (
            _includes(self.groups, attributes.group)
            and self._names_resource(attributes)
            and (not self.names or attributes.name in self.names)
        )

    def _names_resource(self, attributes: Attributes) -> bool:
        if EVERYTHING in self.resources:
            return True
        if not attributes.subresource:
            return attributes.resource in self.resources
        # A rule for a resource does not cover its subresources; `*/status` covers that of every
        # resource.
        full = f"{attributes.resource}/{attributes.subresource}"
        return full in self.resources or f"*/{attributes.subresource}" in self.resources


def _includes(granted: frozenset[str], requested: str) -> bool:
    return EVERYTHING in granted or requested in granted


def _covers(granted: str, path: str) -> bool:
    if granted in {EVERYTHING, path}:
        return True
    return granted.endswith(EVERYTHING) and path.startswith(granted.rstrip(EVERYTHING))


def parse_rule(document: JsonObject) -> PolicyRule:
    return PolicyRule(
        verbs=frozenset(strings_at(document, "verbs")),
        groups=frozenset(strings_at(document, "apiGroups")),
        resources=frozenset(strings_at(document, "resources")),
        names=frozenset(strings_at(document, "resourceNames")),
        paths=tuple(strings_at(document, "nonResourceURLs")),
    )


@dataclass(frozen=True, slots=True)
class Subject:
    """A subject of a binding: user, group or service account."""

    kind: str
    name: str
    namespace: str

    def is_user(self, user: User) -> bool:
        match self.kind:
            case "User":
                return self.name == user.name
            case "Group":
                return self.name in user.groups
            case "ServiceAccount":
                account = f"system:serviceaccount:{self.namespace}:{self.name}"
                return bool(self.namespace) and account == user.name
            case _:
                return False

    def describe(self) -> str:
        name = f"{self.name}/{self.namespace}" if self.kind == "ServiceAccount" else self.name
        return f'{self.kind} "{name}"'


@dataclass(frozen=True, slots=True)
class Grant:
    """One binding with the rules of its role; an empty `namespace` means the whole cluster."""

    binding: str
    role: str
    namespace: str
    subjects: tuple[Subject, ...]
    rules: tuple[PolicyRule, ...]
    missing_role: str

    def reaches(self, namespace: str) -> bool:
        return not self.namespace or self.namespace == namespace

    def subject_of(self, user: User) -> Subject | None:
        return next((subject for subject in self.subjects if subject.is_user(user)), None)


class RoleAuthorizer:
    """Authorizes by the roles of a plane; rules are parsed again after an RBAC object changed."""

    def __init__(self, roles: RoleObjects) -> None:
        self._roles = roles
        self._version: int | None = None
        self._grants: tuple[Grant, ...] = ()

    def authorize(self, user: User, attributes: Attributes) -> Decision:
        if MASTERS in user.groups:
            return Decision(allowed=True)
        missing: list[str] = []
        for grant in self._current():
            subject = grant.subject_of(user)
            if subject is None or not grant.reaches(attributes.namespace):
                continue
            if any(rule.allows(attributes) for rule in grant.rules):
                reason = f"RBAC: allowed by {grant.binding} of {grant.role} to {subject.describe()}"
                return Decision(allowed=True, reason=reason)
            if grant.missing_role:
                missing.append(grant.missing_role)
        return Decision(allowed=False, reason=_missing_text(missing))

    def _current(self) -> tuple[Grant, ...]:
        version = self._roles.version()
        if version != self._version:
            self._grants = tuple(derive_grants(self._roles))
            self._version = version
        return self._grants


def _missing_text(missing: list[str]) -> str:
    if not missing:
        return ""
    return f"RBAC: {missing[0]}" if len(missing) == 1 else f"RBAC: [{', '.join(missing)}]"


def derive_grants(roles: RoleObjects) -> Iterator[Grant]:
    """Every binding with its rules, cluster-wide ones first, in the order of a real server."""
    rules = {
        ("ClusterRole", "", string_at(role, "metadata", "name")): _rules_of(role)
        for role in roles.objects("clusterroles")
    }
    for role in roles.objects("roles"):
        namespace = string_at(role, "metadata", "namespace")
        rules["Role", namespace, string_at(role, "metadata", "name")] = _rules_of(role)
    for binding in roles.objects("clusterrolebindings"):
        yield _derive_grant(binding, "", rules)
    for binding in roles.objects("rolebindings"):
        yield _derive_grant(binding, string_at(binding, "metadata", "namespace"), rules)


def _rules_of(role: JsonObject) -> tuple[PolicyRule, ...]:
    return tuple(parse_rule(rule) for rule in objects_at(role, "rules"))


def _derive_grant(
    binding: JsonObject, namespace: str, rules: dict[tuple[str, str, str], tuple[PolicyRule, ...]]
) -> Grant:
    name = string_at(binding, "metadata", "name")
    reference = object_at(binding, "roleRef")
    kind, role = string_at(reference, "kind"), string_at(reference, "name")
    existing = rules.get((kind, namespace if kind == "Role" else "", role))
    where = f"{name}/{namespace}" if namespace else name
    return Grant(
        binding=f'{"RoleBinding" if namespace else "ClusterRoleBinding"} "{where}"',
        role=f'{kind} "{role}"',
        namespace=namespace,
        subjects=tuple(_parse_subject(s, namespace) for s in objects_at(binding, "subjects")),
        rules=existing or (),
        missing_role=""
        if existing is not None
        else f'{kind.lower()}.{API_GROUP} "{role}" not found',
    )


def _parse_subject(subject: JsonObject, namespace: str) -> Subject:
    return Subject(
        kind=string_at(subject, "kind"),
        name=string_at(subject, "name"),
        # A RoleBinding may omit the namespace of its service account.
        namespace=string_at(subject, "namespace") or namespace,
    )


def bootstrap_objects() -> list[JsonObject]:
    """The roles of a new plane: discovery for every client, everything for administrators."""
    return [
        _cluster_role("cluster-admin", _ALL_RESOURCES, _ALL_PATHS),
        _binding("cluster-admin", MASTERS),
        _cluster_role("system:discovery", _reads("/api", "/api/*", "/apis", "/apis/*")),
        _cluster_role(
            "system:public-info-viewer",
            _reads("/healthz", "/livez", "/readyz", "/version", "/version/"),
        ),
        _cluster_role("system:openapi", _reads("/openapi", "/openapi/*")),
        _cluster_role("system:basic-user", _REVIEW_OWN_ACCESS, _REVIEW_OWN_IDENTITY),
        _binding("system:discovery", "system:authenticated"),
        _binding("system:public-info-viewer", "system:authenticated", "system:unauthenticated"),
        _binding("system:openapi", "system:authenticated"),
        _binding("system:basic-user", "system:authenticated"),
    ]


_ALL_RESOURCES: Final[JsonObject] = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
_ALL_PATHS: Final[JsonObject] = {"nonResourceURLs": ["*"], "verbs": ["*"]}
_REVIEW_OWN_ACCESS: Final[JsonObject] = {
    "apiGroups": ["authorization.k8s.io"],
    "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
    "verbs": ["create"],
}
_REVIEW_OWN_IDENTITY: Final[JsonObject] = {
    "apiGroups": ["authentication.k8s.io"],
    "resources": ["selfsubjectreviews"],
    "verbs": ["create"],
}


def _reads(*paths: str) -> JsonObject:
    return {"nonResourceURLs": [*paths], "verbs": ["get"]}


def _cluster_role(name: str, *rules: JsonObject) -> JsonObject:
    return {
        "apiVersion": f"{API_GROUP}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name, "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"}},
        "rules": [*rules],
    }


def _binding(role: str, *groups: str) -> JsonObject:
    return {
        "apiVersion": f"{API_GROUP}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": role, "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"}},
        "roleRef": {"apiGroup": API_GROUP, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": API_GROUP, "kind": "Group", "name": group} for group in groups],
    }
