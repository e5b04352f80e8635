"""Decides which policies of one base name exist. Pure (management.md 5).

A policy exists exactly while a live deployment needs it. Who deletes one asks the hub itself, under
the lock that who creates a copy holds too: between "nobody needs it" and the delete nobody can
begin to need it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Final

from compute_api_types import labels, names, reasons
from compute_api_types.neighbours.karmada import PropagationPolicySpec
from compute_management_operator.hub_indexes import derive_policy_home
from compute_management_operator.kinds import DEPLOYMENT, POLICY
from compute_management_operator.plane_names import HUB
from compute_management_operator.policy.observe import Policy, Seen
from compute_operator_kit.compare import is_same
from compute_operator_kit.intents import Delete, Emit, Ensure, IfNone, Intent, Owned, Plan, Wait
from compute_operator_kit.keys import ObjectKey
from compute_operator_kit.objects import Unreadable
from compute_operator_kit.wire import (
    Json,
    JsonMapping,
    JsonObject,
    JsonValue,
    member_list,
    member_object,
)

ACTION: Final = "KeepingPolicy"
STEP: Final = timedelta(seconds=1)  # management.md 5, step 3


def plan(seen: Seen) -> Plan:
    chosen = choose_names(seen)
    return Plan(
        (
            *_needed(seen, chosen),
            *_needless(seen, frozenset(chosen.values())),
            *_ambiguous(seen),
        )
    )


def choose_names(seen: Seen) -> dict[str, str]:
    """The policy name of every needed city, ascending: what is there stays what it is."""
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


def _find_kept(code: str, live: Mapping[str, Policy]) -> str:
    both = names.derive_policy_names(code)
    return next((name for name in both if name in live and live[name].code == code), "")


def _is_free(seen: Seen, holder: Policy | None, *, is_taken: bool) -> bool:
    """Whether the base name is absent, or held by a policy that nobody needs."""
    if is_taken:
        return False
    if holder is None:
        return True
    # Another city's second name can spell like this base: that one is not ours to take.
    return (
        derive_policy_home(holder.name, holder.code) == seen.base and holder.code not in seen.needed
    )


# --- needed ---------------------------------------------------------------------------------------


def _needed(seen: Seen, chosen: Mapping[str, str]) -> Iterator[Intent]:
    found = {policy.name: policy for policy in seen.policies}
    for code, name in chosen.items():
        policy = found.get(name)
        if policy is not None and not policy.is_live:
            # Still readable and as good as gone: made anew once it is.
            yield Wait(seen.key, reasons.STILL_TERMINATING, STEP)
        elif policy is not None:
            yield from _repair(seen, policy, code)
        elif seen.may_create:
            key = ObjectKey(HUB, POLICY, seen.key.namespace, name)
            wanted = Owned(parts={"spec": _owned_spec(code)})
            yield Ensure(key, wanted, reasons.ABSENT)


def _repair(seen: Seen, policy: Policy, code: str) -> Iterator[Intent]:
    wanted = Owned(parts={"spec": derive_spec(policy.spec, code, seen.key.namespace)})
    repaired = Ensure(policy.key, wanted, reasons.DRIFTED, uid=policy.metadata.uid)
    yield repaired
    message = f'The policy of city "{code}" was changed and has been put right'
    uid = policy.metadata.uid
    yield Emit(policy.key, uid, reasons.POLICY_REPAIRED, message, ACTION, after=repaired)


def derive_spec(found: JsonObject, code: str, namespace: str) -> JsonMapping:
    """The owned fields of a policy that exists; what the server filled in is not among them."""
    wanted = _owned_spec(code)
    selectors = member_list(found, "resourceSelectors")
    ours = wanted["resourceSelectors"]
    if len(selectors) == 1 and _is_selector(selectors[0], ours, namespace):
        ours = selectors
    affinity = member_object(member_object(found, "placement"), "clusterAffinity")
    return {
        **wanted,
        "resourceSelectors": ours,
        "placement": {"clusterAffinity": {"labelSelector": _exactly(affinity, code)}},
    }


def _owned_spec(code: str) -> JsonObject:
    return PropagationPolicySpec.for_city(code).to_document()


def _is_selector(found: Json, wanted: JsonValue, namespace: str) -> bool:
    """Whether the one selector is ours; the server adds the namespace of the policy."""
    if not isinstance(found, dict) or found.get("namespace", namespace) != namespace:
        return False
    stated = {name: value for name, value in found.items() if name != "namespace"}
    return is_same([stated], wanted)


def _exactly(affinity: JsonObject, code: str) -> JsonMapping:
    """The label selector with nothing else in it: whatever more it held would narrow it."""
    selector = member_object(affinity, "labelSelector")
    matched = member_object(selector, "matchLabels")
    return {
        **dict.fromkeys(selector, None),
        "matchLabels": {**dict.fromkeys(matched, None), labels.TOPOLOGY_CITY_CODE: code},
    }


# --- not needed -----------------------------------------------------------------------------------


def _needless(seen: Seen, kept: frozenset[str]) -> Iterator[Intent]:
    for policy in seen.policies:
        is_ours = derive_policy_home(policy.name, policy.code) == seen.base
        if policy.name in kept or not policy.is_live or not is_ours:
            continue
        if isinstance(seen.asked, Unreadable):
            # The project cannot be asked: it may need this one, so it stays.
            yield Wait(seen.key, reasons.PLANE_UNREADABLE, STEP)
            continue
        yield Delete(
            policy.key,
            policy.metadata.uid,
            reasons.NOT_WANTED,
            resource_version=policy.metadata.resource_version,
            if_none=_no_user(seen, policy),
        )


def _no_user(seen: Seen, policy: Policy) -> IfNone:
    """No live copy is routed to its city; where it names no city, no copy at all may be there."""
    is_city = names.is_routable_city(policy.code)
    return IfNone(
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


def _ambiguous(seen: Seen) -> Iterator[Intent]:
    """Told on each policy of such a city, when the Clusters that carry it change."""
    if isinstance(seen.clusters, Unreadable):
        return
    ambiguous = find_ambiguous(seen.clusters)
    for policy in seen.policies:
        carriers = ambiguous.get(policy.code, ())
        if carriers and policy.is_live and seen.told.get(policy.key) != carriers:
            yield Emit(
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
