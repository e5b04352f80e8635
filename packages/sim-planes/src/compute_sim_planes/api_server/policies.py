"""ValidatingAdmissionPolicies, whose expressions are not evaluated here: a Python form of each
stands in.

What a policy is about (its match constraints, its bindings and their actions) is read from the
stored objects, so it guards exactly what the manifests say; only the judgement itself is a
function, registered under the policy's name. Each form is held equal to the real expressions by a
shared table of requests. A policy without a form is refused when it is created: a guard that
silently guards nothing is worse than none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from compute_sim_planes.api_server import api_errors
from compute_sim_planes.api_server.admission import AdmissionRequest
from compute_sim_planes.api_server.kinds import GroupResource
from compute_sim_planes.api_server.matching import NAMESPACES, Match, parse_match
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
class Denial:
    """Why a policy refuses; the reason is one of the four a real policy may give."""

    message: str
    reason: str = "Invalid"


# The judgement of one policy: a request it is about, and what is wrong with it.
PolicyForm = Callable[[AdmissionRequest], Denial | None]


@dataclass(frozen=True, slots=True)
class Bound:
    """A policy with one of its bindings."""

    policy: str
    binding: str
    matches: tuple[Match, ...]
    denies: bool
    warns: bool

    def covers(
        self, request: AdmissionRequest, labels_of: Callable[[str], dict[str, str] | None]
    ) -> bool:
        return all(match.covers(request, labels_of) for match in self.matches)


class AdmissionPolicies:
    """The reviewer that judges requests by the policies of a plane."""

    def __init__(self, store: Store, forms: dict[str, PolicyForm] | None = None) -> None:
        self._store = store
        self.forms = forms if forms is not None else {}
        self._bound: tuple[Bound, ...] = ()
        store.listen(self._notice)

    def concerns(self, request: AdmissionRequest) -> bool:
        if request.kind.group_resource == POLICIES and request.operation == "CREATE":
            return True
        return any(bound.covers(request, self._labels_of) for bound in self._bound)

    async def review(self, request: AdmissionRequest) -> Sequence[str]:
        if request.kind.group_resource == POLICIES:
            self._check_form(request)
            return ()
        warnings: list[str] = []
        for bound in self._bound:
            if bound.covers(request, self._labels_of):
                warnings += self._judge(bound, request)
        return warnings

    def _judge(self, bound: Bound, request: AdmissionRequest) -> list[str]:
        form = self.forms.get(bound.policy)
        denial = None if form is None else form(request)
        if denial is None:
            return []
        text = (
            f"ValidatingAdmissionPolicy '{bound.policy}' with binding '{bound.binding}' "
            f"denied request: {denial.message}"
        )
        if bound.denies:
            raise _refusal(request, text, denial.reason)
        warned = (
            f"Validation failed for ValidatingAdmissionPolicy '{bound.policy}' with binding "
            f"'{bound.binding}': {denial.message}"
        )
        return [warned] if bound.warns else []

    def _check_form(self, request: AdmissionRequest) -> None:
        if request.name not in self.forms:
            raise api_errors.forbidden(
                POLICIES,
                request.name,
                "this server evaluates no CEL; register a Python form of the policy first",
            )

    def _labels_of(self, namespace: str) -> dict[str, str] | None:
        found = self._store.get(NAMESPACES, "", namespace)
        return None if found is None else found.labels

    def _notice(self, change: Change) -> None:
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


def _bind(policy: JsonObject, binding: JsonObject) -> Bound:
    matches = [parse_match(object_at(policy, "spec", "matchConstraints"), "resourceRules")]
    narrowed = object_at(binding, "spec", "matchResources")
    if narrowed:
        # A binding without rules of its own narrows by selectors alone.
        narrowed = dict(narrowed)
        narrowed.setdefault("resourceRules", [_ANY])
        matches.append(parse_match(narrowed, "resourceRules"))
    actions = strings_at(binding, "spec", "validationActions")
    return Bound(
        policy=string_at(policy, "metadata", "name"),
        binding=string_at(binding, "metadata", "name"),
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


def _refusal(request: AdmissionRequest, text: str, reason: str) -> api_errors.ApiError:
    refused = api_errors.forbidden(request.kind.group_resource, request.name, text)
    refused.reason = reason
    refused.code = _CODES.get(reason, 422)
    refused.add_cause({"message": text})
    return refused
