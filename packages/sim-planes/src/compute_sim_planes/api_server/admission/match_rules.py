"""Match rules of webhooks and admission policies: operations, resources, selectors.

Pure; the labels of namespaces are passed in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from compute_sim_planes.api_server.admission.chain import AdmissionRequest
from compute_sim_planes.api_server.kinds.kind import GroupResource
from compute_sim_planes.api_server.selectors import LabelSelector, Operator, Requirement
from compute_sim_planes.json_types import (
    JsonObject,
    object_at,
    objects_at,
    string_at,
    string_map_at,
    strings_at,
)

EVERYTHING: Final = "*"
NAMESPACES: Final = GroupResource("", "namespaces")
# Never matched, as on a real server: otherwise a bad configuration could forbid its own removal.
_EXEMPT_GROUP: Final = "admissionregistration.k8s.io"
_OPERATORS: Final = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.DOES_NOT_EXIST,
}

# Labels of a namespace by its name; None when there is no such namespace.
NamespaceLabels = Callable[[str], Mapping[str, str] | None]


@dataclass(frozen=True, slots=True)
class RuleWithOperations:
    """Operations on resources, as in the API type of this name."""

    operations: frozenset[str]
    groups: frozenset[str]
    versions: frozenset[str]
    resources: frozenset[str]
    scope: str

    def covers(self, request: AdmissionRequest) -> bool:
        kind = request.kind
        return (
            _includes(self.operations, request.operation)
            and _includes(self.groups, kind.group)
            and _includes(self.versions, kind.version)
            and self._covers_resource(request)
            and self._covers_scope(request)
        )

    def _covers_resource(self, request: AdmissionRequest) -> bool:
        resource, subresource = request.kind.plural, request.subresource
        if not subresource:
            return bool({EVERYTHING, "*/*", resource} & self.resources)
        names = {"*/*", f"{resource}/*", f"*/{subresource}", f"{resource}/{subresource}"}
        return bool(names & self.resources)

    def _covers_scope(self, request: AdmissionRequest) -> bool:
        if self.scope in {"", EVERYTHING}:
            return True
        return (self.scope == "Namespaced") is request.kind.namespaced


def _includes(granted: frozenset[str], requested: str) -> bool:
    return EVERYTHING in granted or requested in granted


@dataclass(frozen=True, slots=True)
class MatchResources:
    """All conditions that a request must meet to be reviewed; without a rule nothing matches."""

    rules: tuple[RuleWithOperations, ...]
    namespaces: LabelSelector
    objects: LabelSelector

    def covers(self, request: AdmissionRequest, labels_of: NamespaceLabels) -> bool:
        if request.kind.group == _EXEMPT_GROUP:
            return False
        return (
            any(rule.covers(request) for rule in self.rules)
            and self._covers_namespace(request, labels_of)
            and self._covers_object(request)
        )

    def _covers_namespace(self, request: AdmissionRequest, labels_of: NamespaceLabels) -> bool:
        if not self.namespaces.requirements:
            return True
        if request.kind.group_resource == NAMESPACES:
            shown = request.desired if request.desired is not None else request.existing
            return self.namespaces.matches(string_map_at(shown, "metadata", "labels"))
        if not request.kind.namespaced:
            return True
        return self.namespaces.matches(labels_of(request.namespace) or {})

    def _covers_object(self, request: AdmissionRequest) -> bool:
        """Whether the old or the new object matches: a label change must not bypass the review."""
        if not self.objects.requirements:
            return True
        shown = (
            candidate for candidate in (request.desired, request.existing) if candidate is not None
        )
        return any(
            self.objects.matches(string_map_at(candidate, "metadata", "labels"))
            for candidate in shown
        )


def parse_match(document: JsonObject, rules: str) -> MatchResources:
    """The match rules of a webhook (`rules`) or of a policy (`resourceRules`)."""
    return MatchResources(
        rules=tuple(_parse_rule(rule) for rule in objects_at(document, rules)),
        namespaces=parse_selector(object_at(document, "namespaceSelector")),
        objects=parse_selector(object_at(document, "objectSelector")),
    )


def _parse_rule(document: JsonObject) -> RuleWithOperations:
    return RuleWithOperations(
        operations=frozenset(strings_at(document, "operations")),
        groups=frozenset(strings_at(document, "apiGroups")),
        versions=frozenset(strings_at(document, "apiVersions")),
        resources=frozenset(strings_at(document, "resources")),
        scope=string_at(document, "scope"),
    )


def parse_selector(document: JsonObject) -> LabelSelector:
    """A label selector in object form, with `matchLabels` and `matchExpressions`."""
    exact = tuple(
        Requirement(key, Operator.IN, frozenset({value}))
        for key, value in string_map_at(document, "matchLabels").items()
    )
    others = tuple(
        Requirement(
            string_at(expression, "key"),
            _OPERATORS[string_at(expression, "operator")],
            frozenset(strings_at(expression, "values")),
        )
        for expression in objects_at(document, "matchExpressions")
        if string_at(expression, "operator") in _OPERATORS
    )
    return LabelSelector((*exact, *others))
