"""The admission plugin for ValidatingAdmissionPolicies, which are CEL as on a real server.

Policies and bindings are read from the stored objects, so a changed policy is evaluated as it is.
A policy that does not compile is refused when it is stored, because stored it would silently admit
everything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from compute_sim_planes.api_server import api_errors
from compute_sim_planes.api_server.admission.chain import AdmissionRequest
from compute_sim_planes.api_server.admission.compiled_policy import (
    CompiledPolicy,
    InvalidPolicyError,
    compile_policy,
)
from compute_sim_planes.api_server.admission.match_rules import (
    NAMESPACES,
    MatchResources,
    parse_match,
)
from compute_sim_planes.api_server.admission.webhooks import render_attributes
from compute_sim_planes.api_server.kinds.kind import GroupResource
from compute_sim_planes.api_server.schema.expressions import ExpressionInputs
from compute_sim_planes.api_server.storage.records import Change
from compute_sim_planes.api_server.storage.store import Store
from compute_sim_planes.json_types import JsonObject, object_at, string_at, strings_at

_GROUP: Final = "admissionregistration.k8s.io"
POLICIES: Final = GroupResource(_GROUP, "validatingadmissionpolicies")
BINDINGS: Final = GroupResource(_GROUP, "validatingadmissionpolicybindings")
_CODES: Final = {
    "Unauthorized": 401,
    "Forbidden": 403,
    "Invalid": 422,
    "RequestEntityTooLarge": 413,
}


@dataclass(frozen=True, slots=True)
class BoundPolicy:
    """A policy with one of its bindings."""

    policy: str
    binding: str
    rules: CompiledPolicy
    matches: tuple[MatchResources, ...]
    denies: bool
    warns: bool

    def covers(
        self, request: AdmissionRequest, labels_of: Callable[[str], dict[str, str] | None]
    ) -> bool:
        return all(match.covers(request, labels_of) for match in self.matches)


class AdmissionPolicies:
    """The admission plugin that evaluates the policies of a plane."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._bound: tuple[BoundPolicy, ...] = ()
        store.listen(self._on_change)

    def handles(self, request: AdmissionRequest) -> bool:
        if request.kind.group_resource == POLICIES and request.desired is not None:
            return True
        return any(bound.covers(request, self._labels_of) for bound in self._bound)

    async def review(self, request: AdmissionRequest) -> Sequence[str]:
        if request.kind.group_resource == POLICIES:
            _check_policy(request)
            return ()
        warnings: list[str] = []
        inputs = _make_inputs(request)
        for bound in self._bound:
            if bound.covers(request, self._labels_of):
                warnings += _evaluate(bound, request, inputs)
        return warnings

    def _labels_of(self, namespace: str) -> dict[str, str] | None:
        existing = self._store.get(NAMESPACES, "", namespace)
        return None if existing is None else existing.labels

    def _on_change(self, change: Change) -> None:
        if change.resource not in {POLICIES, BINDINGS}:
            return
        policies = {
            stored.name: stored.decode() for stored in self._store.bucket(POLICIES).listed()
        }
        bindings = (stored.decode() for stored in self._store.bucket(BINDINGS).listed())
        self._bound = tuple(
            _bind(policies[name], binding)
            for binding in bindings
            if (name := string_at(binding, "spec", "policyName")) in policies
        )


def _check_policy(request: AdmissionRequest) -> None:
    try:
        compile_policy(object_at(request.desired, "spec"))
    except InvalidPolicyError as error:
        raise api_errors.invalid(request.kind, request.name, [error.problem]) from error


def _make_inputs(request: AdmissionRequest) -> ExpressionInputs:
    return ExpressionInputs(
        {
            "object": request.desired,
            "oldObject": request.existing,
            "request": render_attributes(request, uid=""),
        }
    )


def _evaluate(bound: BoundPolicy, request: AdmissionRequest, inputs: ExpressionInputs) -> list[str]:
    """The warnings of a binding that warns; raises for a binding that denies."""
    subject = f"ValidatingAdmissionPolicy '{bound.policy}' with binding '{bound.binding}'"
    failures = bound.rules.evaluate(inputs)
    if failures and bound.denies:
        text = f"{subject} denied request: {failures[0].message}"
        raise _refusal(request, text, failures[0].reason)
    warned = [f"Validation failed for {subject}: {failed.message}" for failed in failures]
    return warned if bound.warns else []


def _bind(policy: JsonObject, binding: JsonObject) -> BoundPolicy:
    matches = [parse_match(object_at(policy, "spec", "matchConstraints"), "resourceRules")]
    narrowed = object_at(binding, "spec", "matchResources")
    if narrowed:
        # A binding without resource rules narrows by its selectors only.
        narrowed = dict(narrowed)
        narrowed.setdefault("resourceRules", [_ANY])
        matches.append(parse_match(narrowed, "resourceRules"))
    actions = strings_at(binding, "spec", "validationActions")
    return BoundPolicy(
        policy=string_at(policy, "metadata", "name"),
        binding=string_at(binding, "metadata", "name"),
        rules=compile_policy(object_at(policy, "spec")),
        matches=tuple(matches),
        denies="Deny" in actions,
        warns="Warn" in actions,
    )


_ANY: Final[JsonObject] = {
    "operations": ["*"],
    "apiGroups": ["*"],
    "apiVersions": ["*"],
    "resources": ["*", "*/*"],
}


def _refusal(request: AdmissionRequest, text: str, reason: str) -> api_errors.StatusError:
    refused = api_errors.forbidden(request.kind.group_resource, request.name, text)
    refused.reason = reason
    refused.code = _CODES.get(reason, 422)
    refused.add_cause({"message": text})
    return refused
