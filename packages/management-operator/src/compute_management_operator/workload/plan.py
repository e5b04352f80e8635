"""Decides which deployments a Workload has. Pure (management.md 3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from compute_api_types import labels, names, reasons
from compute_management_operator.kinds import DEPLOYMENT, WORKLOAD
from compute_management_operator.networking import Off
from compute_management_operator.workload.observe import (
    Deployment,
    Identity,
    NetworkName,
    Placement,
    Seen,
    is_new,
)
from compute_operator_kit.intents import (
    AddFinalizer,
    Delete,
    Emit,
    Ensure,
    IfNone,
    IfUnchanged,
    Intent,
    OnlyUnder,
    Owned,
    Plan,
    RemoveFinalizer,
)
from compute_operator_kit.keys import ObjectKey, Uid
from compute_operator_kit.objects import OwnerReference, Unreadable
from compute_operator_kit.wire import JsonMapping

ACTION: Final = "PlacingWorkload"


# what becomes of one (placement, city) -----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Placed:
    """It has its deployment."""

    deployment: Deployment


@dataclass(frozen=True, slots=True)
class ToCreate:
    """It gets a deployment, under this name."""

    name: str


@dataclass(frozen=True, slots=True)
class NotServed:
    """No Location carries the city code."""


@dataclass(frozen=True, slots=True)
class Undecided:
    """Locations, or the networks it needs, cannot be read: nothing is concluded."""


@dataclass(frozen=True, slots=True)
class NameHeld:
    """Both names are taken by deployments of this Workload that are about to go."""


@dataclass(frozen=True, slots=True)
class NameTaken:
    """Both names belong to another Workload; that one is left alone."""

    name: str


Verdict: TypeAlias = Placed | ToCreate | NotServed | Undecided | NameHeld | NameTaken


def leave_out_events(seen: Seen, decided: Plan) -> Plan:
    """The namespaces of a project that is being deleted take no Events any more."""
    if not seen.is_project_deleting:
        return decided
    return Plan(tuple(one for one in decided if not isinstance(one, Emit)))


def plan(seen: Seen) -> Plan:
    if seen.metadata.is_deleting:
        return _finalize(seen)
    if is_new(seen.metadata):
        # Nothing is created before the finalizer that removes it again is stored.
        return Plan.of(
            AddFinalizer(
                seen.key, seen.metadata.uid, labels.WORKLOAD_FINALIZER, reasons.FINALIZER_MISSING
            )
        )
    if missing_networks(seen):
        # What is placed stays, what left the spec goes, and nothing starts without a network.
        return Plan(tuple(_orphans(seen)))
    return Plan((*_orphans(seen), *_deployments(seen)))


def wanted_identities(seen: Seen) -> dict[Identity, Placement]:
    """Every (placement, city) of the spec, in its order."""
    return {
        Identity(placement.name, code): placement
        for placement in seen.placements
        for code in placement.city_codes
    }


def verdicts(seen: Seen) -> dict[Identity, Verdict]:
    """What becomes of every (placement, city); names given out here are taken for the next one."""
    found = _chosen(seen)
    holders = dict(seen.holders)
    decided: dict[Identity, Verdict] = {}
    for identity in wanted_identities(seen):
        deployment = found.get(identity)
        if deployment is not None:
            # A deployment that exists stays, whatever Locations say now.
            decided[identity] = Placed(deployment)
            continue
        verdict = _judge_new(seen, identity, holders)
        decided[identity] = verdict
        if isinstance(verdict, ToCreate):
            holders[verdict.name] = seen.metadata.uid
    return decided


def _chosen(seen: Seen) -> dict[Identity, Deployment]:
    """The deployment of each identity; should there be several, a live one, then by name."""
    chosen: dict[Identity, Deployment] = {}
    for deployment in sorted(seen.deployments, key=lambda one: one.metadata.is_deleting):
        chosen.setdefault(deployment.identity, deployment)
    return chosen


def _judge_new(seen: Seen, identity: Identity, holders: Mapping[str, str]) -> Verdict:
    if isinstance(seen.served, Unreadable) or are_networks_unknown(seen):
        return Undecided()
    is_served = isinstance(seen.served, Off) or identity.city_code in seen.served
    if not (is_served and names.is_routable_city(identity.city_code)):
        return NotServed()
    both = names.derive_deployment_names(
        workload=seen.key.name,
        workload_uid=seen.metadata.uid,
        placement=identity.placement,
        city_code=identity.city_code,
    )
    for name in (both.plain, both.hashed):
        if name is not None and name not in holders:
            return ToCreate(name)
    if holders.get(both.hashed) == seen.metadata.uid:
        return NameHeld()
    return NameTaken(both.plain or both.hashed)


def are_networks_unknown(seen: Seen) -> bool:
    """Whether it needs networks and nobody can tell if they are there."""
    return bool(seen.networks) and isinstance(seen.present_networks, Unreadable)


def missing_networks(seen: Seen) -> tuple[NetworkName, ...]:
    """Networks the template names and the project does not have; none while nobody can tell."""
    if isinstance(seen.present_networks, Unreadable | Off):
        return ()
    return tuple(network for network in seen.networks if network not in seen.present_networks)


def orphans(seen: Seen) -> tuple[Deployment, ...]:
    """Deployments whose (placement, city) left the spec."""
    wanted = wanted_identities(seen)
    return tuple(one for one in seen.deployments if one.identity not in wanted)


def leftovers(seen: Seen) -> tuple[Deployment, ...]:
    """Deployments beside the one that each (placement, city) has: orphans, and doubles that
    somebody made, which are nobody's to delete but theirs.
    """
    wanted, chosen = wanted_identities(seen), _chosen(seen)
    return tuple(
        one
        for one in seen.deployments
        if one.identity not in wanted or chosen[one.identity] is not one
    )


def _orphans(seen: Seen) -> Iterator[Intent]:
    # A cache may lag behind a city that was added back: the Workload is read again before the act.
    unchanged = IfUnchanged(seen.key, seen.metadata.uid, generation=seen.metadata.generation)
    for deployment in orphans(seen):
        if not deployment.metadata.is_deleting:
            yield from _removal(seen, deployment, unchanged)


def _removal(seen: Seen, deployment: Deployment, unchanged: IfUnchanged | None) -> Iterator[Intent]:
    removed = Delete(
        deployment.key,
        deployment.metadata.uid,
        reasons.NOT_WANTED,
        if_unchanged=unchanged,
    )
    yield removed
    yield _told(
        seen, reasons.DEPLOYMENT_DELETED, f'Deleted deployment "{deployment.name}"', removed
    )


def _deployments(seen: Seen) -> Iterator[Intent]:
    placements, owner = wanted_identities(seen), _owner(seen)
    for identity, verdict in verdicts(seen).items():
        wanted = _wanted(seen, identity, placements[identity], owner)
        match verdict:
            case Placed(deployment) if not deployment.metadata.is_deleting:
                yield Ensure(
                    deployment.key,
                    wanted,
                    reasons.DRIFTED,
                    uid=deployment.metadata.uid,
                )
            case ToCreate(name) if not seen.is_project_deleting:
                # New, it says nothing that this pass has not counted in already.
                created = Ensure(
                    deployment_key(seen, name),
                    wanted,
                    reasons.ABSENT,
                    initial=_born_with(seen),
                    only_under=_find_guard(seen),
                    is_final=True,
                )
                yield created
                message = f'Created deployment "{name}" for city "{identity.city_code}"'
                yield _told(seen, reasons.DEPLOYMENT_CREATED, message, created)
            case _:
                # Going, waiting for a name, or not to be decided: an event brings us back.
                continue


def _find_guard(seen: Seen) -> OnlyUnder | None:
    """A deployment that is missing again may have gone with its Workload, and the cache not know of
    that. The first ones of a Workload are made without the read: there, the status of the same pass
    meets the conflict.
    """
    if not seen.is_reported:
        return None
    return OnlyUnder(seen.key, lock=seen.key, uid=seen.metadata.uid)


def _born_with(seen: Seen) -> JsonMapping:
    """What federation would put on it first: a request, an event and a look at it less. From then
    on it is federation's alone.
    """
    if not seen.hub_namespace:
        return {}
    annotations = {labels.FEDERATION_NAMESPACE: seen.hub_namespace}
    return {"metadata": {"annotations": annotations, "finalizers": [labels.FEDERATION_FINALIZER]}}


def _owner(seen: Seen) -> OwnerReference:
    return OwnerReference(
        api_version=WORKLOAD.api_version,
        kind=WORKLOAD.kind,
        name=seen.key.name,
        uid=Uid(seen.metadata.uid),
        controller=True,
        block_owner_deletion=True,
    )


def _wanted(seen: Seen, identity: Identity, placement: Placement, owner: OwnerReference) -> Owned:
    spec: JsonMapping = {
        "workloadRef": {"name": seen.key.name, "uid": seen.metadata.uid},
        "placementName": identity.placement,
        "cityCode": identity.city_code,
        "template": seen.template,
        "scaleSettings": placement.scale_settings,
    }
    name = names.derive_label_value(seen.key.name)
    return Owned(
        labels={labels.WORKLOAD_UID: seen.metadata.uid, labels.WORKLOAD_NAME: name.value},
        annotations={} if name.full is None else {labels.WORKLOAD_NAME: name.full},
        owners=(owner,),
        whole={"spec": spec},
    )


def _finalize(seen: Seen) -> Plan:
    if labels.WORKLOAD_FINALIZER not in seen.metadata.finalizers:
        return Plan()
    if seen.deployments:
        going = [one for one in seen.deployments if not one.metadata.is_deleting]
        return Plan(tuple(intent for one in going for intent in _removal(seen, one, None)))
    none_left = IfNone(
        seen.key.plane,
        DEPLOYMENT,
        {labels.WORKLOAD_UID: seen.metadata.uid},
        namespace=seen.key.namespace,
        counts_deleting=True,
    )
    return Plan.of(
        RemoveFinalizer(
            seen.key,
            seen.metadata.uid,
            labels.WORKLOAD_FINALIZER,
            reasons.FINALIZER_DONE,
            if_none=none_left,
        )
    )


def deployment_key(seen: Seen, name: str) -> ObjectKey:
    return ObjectKey(seen.key.plane, DEPLOYMENT, seen.key.namespace, name)


def _told(seen: Seen, reason: str, message: str, after: Ensure | Delete) -> Emit:
    return Emit(seen.key, seen.metadata.uid, reason, message, ACTION, after=after)
