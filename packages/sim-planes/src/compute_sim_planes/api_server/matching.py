"""Which requests a webhook or an admission policy is about: operations, resources, selectors.

Both kinds of configuration share these rules. Pure; what namespaces are labelled with is handed in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from compute_sim_planes.api_server.admission import AdmissionRequest
from compute_sim_planes.api_server.kinds import GroupResource
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
# Nobody may guard the guards: a bad configuration could otherwise never be removed.
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
class Rule:
    """Operations on resources."""

    operations: frozenset[str]
    groups: frozenset[str]
    versions: frozenset[str]
    resources: frozenset[str]
    scope: str

    def covers(self, request: AdmissionRequest) -> bool:
        kind = request.kind
        return (
            _holds(self.operations, request.operation)
            and _holds(self.groups, kind.group)
            and _holds(self.versions, kind.version)
            and self._covers_resource(request)
            and self._covers_scope(request)
        )

    def _covers_resource(self, request: AdmissionRequest) -> bool:
        resource, subresource = request.kind.plural, request.subresource
        if not subresource:
            return bool({EVERYTHING, "*/*", resource} & self.resources)
        wanted = {"*/*", f"{resource}/*", f"*/{subresource}", f"{resource}/{subresource}"}
        return bool(wanted & self.resources)

    def _covers_scope(self, request: AdmissionRequest) -> bool:
        if self.scope in {"", EVERYTHING}:
            return True
        return (self.scope == "Namespaced") is request.kind.namespaced


def _holds(granted: frozenset[str], wanted: str) -> bool:
    return EVERYTHING in granted or wanted in granted


@dataclass(frozen=True, slots=True)
class Match:
    """Everything that must hold for a request to be reviewed; no rule at all matches nothing."""

    rules: tuple[Rule, ...]
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
            shown = request.wanted if request.wanted is not None else request.found
            return self.namespaces.matches(string_map_at(shown, "metadata", "labels"))
        if not request.kind.namespaced:
            return True
        return self.namespaces.matches(labels_of(request.namespace) or {})

    def _covers_object(self, request: AdmissionRequest) -> bool:
        """The object as it was or as it will be: leaving a selector must not be a way around it."""
        if not self.objects.requirements:
            return True
        shown = (found for found in (request.wanted, request.found) if found is not None)
        return any(
            self.objects.matches(string_map_at(found, "metadata", "labels")) for found in shown
        )


def parse_match(document: JsonObject, rules: str) -> Match:
    """The match of a webhook (`rules`) or of a policy (`resourceRules`)."""
    return Match(
        rules=tuple(_parse_rule(rule) for rule in objects_at(document, rules)),
        namespaces=parse_selector(object_at(document, "namespaceSelector")),
        objects=parse_selector(object_at(document, "objectSelector")),
    )


def _parse_rule(document: JsonObject) -> Rule:
    return Rule(
        operations=frozenset(strings_at(document, "operations")),
        groups=frozenset(strings_at(document, "apiGroups")),
        versions=frozenset(strings_at(document, "apiVersions")),
        resources=frozenset(strings_at(document, "resources")),
        scope=string_at(document, "scope"),
    )


def parse_selector(document: JsonObject) -> LabelSelector:
    """A selector as objects carry it, with `matchLabels` and `matchExpressions`."""
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
