"""The policies of one base name: created, repaired or deleted. Pure (management.md 5).

A policy exists exactly while a live deployment needs it. Its deletion reads the hub under the lock
that the creation of a copy takes, too: otherwise a copy created between the read and the delete
would be left without a policy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from compute_api_types import labels, names, reasons
from compute_api_types.neighbours.karmada import TOLERATED, PropagationPolicySpec
from compute_management_operator.hub.delays import STEP
from compute_management_operator.hub.indexes import derive_policy_home
from compute_management_operator.hub.policy.observe import HubPolicy, ObservedPolicies, PolicyScope
from compute_management_operator.planes import DEPLOYMENT, HUB, POLICY
from compute_operator_kit.core.json import JsonMapping, JsonObject, JsonValue
from compute_operator_kit.core.keys import ObjectKey
from compute_operator_kit.core.objects import Unreadable
from compute_operator_kit.intents.compare import is_same
from compute_operator_kit.intents.intents import (
    Delete,
    Ensure,
    Intent,
    OwnedFields,
    Plan,
    RecordEvent,
    RequeueAfter,
    RequireNone,
)

ACTION: Final = "KeepingPolicy"


def plan(seen: ObservedPolicies) -> Plan:
    chosen = choose_names(seen)
    return Plan(
        (
            *_needed(seen, chosen),
            *_needless(seen, frozenset(chosen.values())),
            *_ambiguous(seen),
        )
    )


def choose_names(seen: ObservedPolicies) -> dict[str, str]:
    """The policy name of every needed city, ascending; a city keeps the policy that it has."""
    live = {policy.name: policy for policy in seen.policies if policy.is_live}
    chosen: dict[str, str] = {}
    taken: set[str] = set()
    for code in seen.needed:
        kept = _find_kept(code, live)
        if kept:
            chosen[code] = kept
            taken.add(kept)
    for code in seen.needed:
        if code not in chosen:
            base, second = names.derive_policy_names(code)
            chosen[code] = (
                base if _is_free(seen, live.get(base), is_taken=base in taken) else second
            )
            taken.add(chosen[code])
    return {code: chosen[code] for code in seen.needed}


def _find_kept(code: str, live: Mapping[str, HubPolicy]) -> str:
    both = names.derive_policy_names(code)
    return next((name for name in both if name in live and live[name].code == code), "")


def _is_free(seen: ObservedPolicies, holder: HubPolicy | None, *, is_taken: bool) -> bool:
    """Whether no policy has the base name, or one that is not needed."""
    if is_taken:
        return False
    if holder is None:
        return True
    # The second name of another city can equal this base: its policy belongs to another key.
    return (
        derive_policy_home(holder.name, holder.code) == seen.base and holder.code not in seen.needed
    )


# --- needed ---------------------------------------------------------------------------------------


def _needed(seen: ObservedPolicies, chosen: Mapping[str, str]) -> Iterator[Intent]:
    existing = {policy.name: policy for policy in seen.policies}
    for code, name in chosen.items():
        policy = existing.get(name)
        if policy is not None and not policy.is_live:
            # Being deleted: created anew once it is gone.
            yield RequeueAfter(seen.key, reasons.STILL_TERMINATING, STEP)
        elif policy is not None:
            yield from _repair(policy, code, has_data=_has_data(seen, code))
        elif seen.may_create:
            key = ObjectKey(HUB, POLICY, seen.key.namespace, name)
            spec = {**_owned_spec(code), **_dependencies(has_data=_has_data(seen, code))}
            desired = OwnedFields(merge={"spec": spec})
            yield Ensure(key, desired, reasons.ABSENT)


def _has_data(seen: ObservedPolicies, code: str) -> bool | None:
    return None if seen.with_data is None else code in seen.with_data


def _dependencies(*, has_data: bool | None) -> dict[str, JsonValue]:
    """Whether Karmada delivers what a deployment depends on; without need it costs writes."""
    return {} if has_data is None else {"propagateDeps": True if has_data else None}


def _repair(policy: HubPolicy, code: str, *, has_data: bool | None) -> Iterator[Intent]:
    # The need for data comes and goes with templates: a change of it is no repair.
    if has_data is not None:
        needed = OwnedFields(merge={"spec": _dependencies(has_data=has_data)})
        yield Ensure(policy.key, needed, reasons.NEED_CHANGED, uid=policy.metadata.uid)
    desired = OwnedFields(merge={"spec": derive_spec(policy.scope, code)})
    repaired = Ensure(policy.key, desired, reasons.DRIFTED, uid=policy.metadata.uid)
    yield repaired
    message = f'The policy of city "{code}" was changed and has been put right'
    uid = policy.metadata.uid
    yield RecordEvent(policy.key, uid, reasons.POLICY_REPAIRED, message, ACTION, after=repaired)


def derive_spec(scope: PolicyScope, code: str) -> JsonMapping:
    """The owned fields of an existing policy, without differences that the API server fills in."""
    desired = _owned_spec(code)
    selectors: JsonValue = desired["resourceSelectors"]
    if scope.only_selector is not None and is_same([scope.only_selector], selectors):
        selectors = scope.resource_selectors
    return {
        **desired,
        "resourceSelectors": selectors,
        "placement": {
            "clusterAffinity": {"labelSelector": _exactly(scope, code)},
            "clusterTolerations": [one.to_document() for one in TOLERATED],
        },
    }


def _owned_spec(code: str) -> JsonObject:
    return PropagationPolicySpec.for_city(code).to_document()


def _exactly(scope: PolicyScope, code: str) -> JsonMapping:
    """The cluster selector with every other member removed: each of them would narrow it."""
    others = dict.fromkeys(scope.cluster_labels, None)
    return {
        **dict.fromkeys(scope.cluster_selector_members, None),
        "matchLabels": {**others, labels.TOPOLOGY_CITY_CODE: code},
    }


# --- not needed -----------------------------------------------------------------------------------


def _needless(seen: ObservedPolicies, kept: frozenset[str]) -> Iterator[Intent]:
    for policy in seen.policies:
        is_ours = derive_policy_home(policy.name, policy.code) == seen.base
        if policy.name in kept or not policy.is_live or not is_ours:
            continue
        if isinstance(seen.asked, Unreadable):
            # The project cannot be read: it may need this policy, so it stays.
            yield RequeueAfter(seen.key, reasons.PLANE_UNREADABLE, STEP)
            continue
        yield Delete(
            policy.key,
            policy.metadata.uid,
            reasons.NOT_WANTED,
            resource_version=policy.metadata.resource_version,
            require_none=_no_user(seen, policy),
        )


def _no_user(seen: ObservedPolicies, policy: HubPolicy) -> RequireNone:
    """No live copy is routed to its city; for a policy without a city, no copy exists at all."""
    is_city = names.is_routable_city(policy.code)
    return RequireNone(
        HUB,
        DEPLOYMENT,
        {labels.TOPOLOGY_CITY_CODE: policy.code} if is_city else {},
        namespace=seen.key.namespace,
        lock=seen.key,
    )


# --- one city, one cell ---------------------------------------------------------------------------


def find_ambiguous(clusters: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """City codes that more than one Cluster carries."""
    return {code: carriers for code, carriers in clusters.items() if len(carriers) > 1}


def _ambiguous(seen: ObservedPolicies) -> Iterator[Intent]:
    """An event on each policy of such a city, when the Clusters that carry it change."""
    if isinstance(seen.clusters, Unreadable):
        return
    ambiguous = find_ambiguous(seen.clusters)
    for policy in seen.policies:
        carriers = ambiguous.get(policy.code, ())
        if carriers and policy.is_live and seen.reported.get(policy.key) != carriers:
            yield RecordEvent(
                policy.key,
                policy.metadata.uid,
                reasons.AMBIGUOUS_CITY,
                _ambiguity(policy.code, carriers),
                ACTION,
                type="Warning",
            )


def _ambiguity(code: str, carriers: tuple[str, ...]) -> str:
    named = ", ".join(carriers)
    return (
        f'City code "{code}" is carried by {len(carriers)} clusters: {named}; '
        "each runs every replica"
    )
