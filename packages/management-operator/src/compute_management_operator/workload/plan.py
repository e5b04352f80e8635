"""The deployments of a Workload: which are created, kept equal or deleted. Pure (management.md 3).

A deployment is matched by placement and city, never by name, and exists at most once per city: two
would run every replica twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

import msgspec

from compute_api_types import labels, names, reasons
from compute_management_operator.planes import DEPLOYMENT, WORKLOAD
from compute_management_operator.workload.observe import (
    DeploymentIdentity,
    NetworkName,
    ObservedWorkload,
    WorkloadChild,
    WorkloadPlacement,
    is_new,
)
from compute_operator_kit.cache.optional_kinds import Off
from compute_operator_kit.core.json import JsonMapping, is_map
from compute_operator_kit.core.keys import ObjectKey, Uid
from compute_operator_kit.core.objects import OwnerReference, Unreadable
from compute_operator_kit.intents.intents import (
    AddFinalizer,
    Delete,
    Ensure,
    Intent,
    OwnedFields,
    Plan,
    RecordEvent,
    RemoveFinalizer,
    RequireExists,
    RequireNone,
    RequireUnchanged,
)

ACTION: Final = "PlacingWorkload"


# --- the state of one (placement, city) -----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DeploymentExists:
    """The city has its deployment."""

    deployment: WorkloadChild


@dataclass(frozen=True, slots=True)
class DeploymentMissing:
    """A deployment is to be created under this name."""

    name: str


@dataclass(frozen=True, slots=True)
class NotServed:
    """No Location carries the city code."""


@dataclass(frozen=True, slots=True)
class PlacementUndecided:
    """Locations, or the Networks of the template, cannot be read: nothing is concluded."""


@dataclass(frozen=True, slots=True)
class NameHeld:
    """Both names are taken by deployments of this Workload that are being deleted."""


@dataclass(frozen=True, slots=True)
class NameTaken:
    """Both names belong to deployments of another Workload, which are left alone."""

    name: str


CityState: TypeAlias = (
    DeploymentExists | DeploymentMissing | NotServed | PlacementUndecided | NameHeld | NameTaken
)


def leave_out_events(seen: ObservedWorkload, decided: Plan) -> Plan:
    """Without events where the project is deleted: its namespaces accept none any more."""
    if not seen.is_project_deleting:
        return decided
    return Plan(tuple(one for one in decided if not isinstance(one, RecordEvent)))


def plan(seen: ObservedWorkload) -> Plan:
    if seen.metadata.is_deleting:
        return _finalize(seen)
    if is_new(seen.metadata):
        # Nothing is created before the finalizer is stored, or a deletion would leave it behind.
        return Plan.of(
            AddFinalizer(
                seen.key, seen.metadata.uid, labels.WORKLOAD_FINALIZER, reasons.FINALIZER_MISSING
            )
        )
    if missing_networks(seen):
        # Deployments stay, those that left the spec are deleted, and none starts without a network.
        return Plan(tuple(_orphans(seen)))
    return Plan((*_orphans(seen), *_deployments(seen)))


def desired_identities(seen: ObservedWorkload) -> dict[DeploymentIdentity, WorkloadPlacement]:
    """Every (placement, city) of the spec, in its order."""
    return {
        DeploymentIdentity(placement.name, code): placement
        for placement in seen.placements
        for code in placement.city_codes
    }


def derive_city_states(seen: ObservedWorkload) -> dict[DeploymentIdentity, CityState]:
    """The state of every (placement, city); a name given to one is taken for the next."""
    existing = _chosen(seen)
    holders = dict(seen.holders)
    states: dict[DeploymentIdentity, CityState] = {}
    for identity in desired_identities(seen):
        deployment = existing.get(identity)
        if deployment is not None:
            # An existing deployment stays, also where its Location was deleted.
            states[identity] = DeploymentExists(deployment)
            continue
        state = _derive_new(seen, identity, holders)
        states[identity] = state
        if isinstance(state, DeploymentMissing):
            holders[state.name] = seen.metadata.uid
    return states


def _chosen(seen: ObservedWorkload) -> dict[DeploymentIdentity, WorkloadChild]:
    """The deployment of each identity; of several, one that is not deleted, then by name."""
    chosen: dict[DeploymentIdentity, WorkloadChild] = {}
    for deployment in sorted(seen.deployments, key=lambda one: one.metadata.is_deleting):
        chosen.setdefault(deployment.identity, deployment)
    return chosen


def _derive_new(
    seen: ObservedWorkload, identity: DeploymentIdentity, holders: Mapping[str, str]
) -> CityState:
    if isinstance(seen.served, Unreadable) or are_networks_unknown(seen):
        return PlacementUndecided()
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
            return DeploymentMissing(name)
    if holders.get(both.hashed) == seen.metadata.uid:
        return NameHeld()
    return NameTaken(both.plain or both.hashed)


def are_networks_unknown(seen: ObservedWorkload) -> bool:
    """Whether the template names Networks and they cannot be read."""
    return bool(seen.networks) and isinstance(seen.present_networks, Unreadable)


def missing_networks(seen: ObservedWorkload) -> tuple[NetworkName, ...]:
    """Networks the template names and the project does not have; none while unreadable."""
    if isinstance(seen.present_networks, Unreadable | Off):
        return ()
    return tuple(network for network in seen.networks if network not in seen.present_networks)


def orphans(seen: ObservedWorkload) -> tuple[WorkloadChild, ...]:
    """Deployments of a (placement, city) that left the spec."""
    desired = desired_identities(seen)
    return tuple(one for one in seen.deployments if one.identity not in desired)


def leftovers(seen: ObservedWorkload) -> tuple[WorkloadChild, ...]:
    """Deployments beside the one that each (placement, city) has: orphans, and duplicates made by
    another client, which are not deleted.
    """
    desired, chosen = desired_identities(seen), _chosen(seen)
    return tuple(
        one
        for one in seen.deployments
        if one.identity not in desired or chosen[one.identity] is not one
    )


def _orphans(seen: ObservedWorkload) -> Iterator[Intent]:
    # The cache may lag behind a city that was added back: the delete reads the Workload again.
    unchanged = RequireUnchanged(seen.key, seen.metadata.uid, generation=seen.metadata.generation)
    for deployment in orphans(seen):
        if not deployment.metadata.is_deleting:
            yield from _removal(seen, deployment, unchanged)


def _removal(
    seen: ObservedWorkload, deployment: WorkloadChild, unchanged: RequireUnchanged | None
) -> Iterator[Intent]:
    removed = Delete(
        deployment.key,
        deployment.metadata.uid,
        reasons.NOT_WANTED,
        require_unchanged=unchanged,
    )
    yield removed
    message = f'Deleted deployment "{deployment.name}"'
    yield _event(seen, reasons.DEPLOYMENT_DELETED, message, removed)


def _deployments(seen: ObservedWorkload) -> Iterator[Intent]:
    placements, owner = desired_identities(seen), _owner(seen)
    for identity, state in derive_city_states(seen).items():
        desired = _desired(seen, identity, placements[identity], owner)
        match state:
            case DeploymentExists(deployment) if not deployment.metadata.is_deleting:
                yield Ensure(
                    deployment.key,
                    _keep_number(seen, deployment, placements[identity], desired),
                    reasons.DRIFTED,
                    uid=deployment.metadata.uid,
                )
            case DeploymentMissing(name) if not seen.is_project_deleting:
                # Its own event is ignored: this reconcile has counted it already.
                created = Ensure(
                    deployment_key(seen, name),
                    desired,
                    reasons.ABSENT,
                    initial=_initial(seen),
                    requires=_find_guard(seen),
                    ignore_own_event=True,
                )
                yield created
                message = f'Created deployment "{name}" for city "{identity.city_code}"'
                yield _event(seen, reasons.DEPLOYMENT_CREATED, message, created)
            case _:
                # Being deleted, without a free name, or undecided: an event enqueues the Workload.
                continue


def _keep_number(
    seen: ObservedWorkload,
    deployment: WorkloadChild,
    placement: WorkloadPlacement,
    desired: OwnedFields,
) -> OwnedFields:
    """In a cluster that is its cell too, the number is its autoscaler's; anywhere else the spec has
    none, and one that is found there is removed with the rest (autoscaling.md 2).
    """
    spec = desired.replace["spec"]
    if not (seen.is_cell and deployment.replicas and placement.is_autoscaled and is_map(spec)):
        return desired
    kept: JsonMapping = {"spec": {**spec, "replicas": deployment.replicas}}
    return msgspec.structs.replace(desired, replace=kept)


def _find_guard(seen: ObservedWorkload) -> RequireExists | None:
    """A live read of the Workload before a deployment is created anew: the cache may not show yet
    that the Workload was deleted with its deployments. The first deployments are created without
    it; there the status write of the same reconcile meets the conflict.
    """
    if not seen.is_reported:
        return None
    return RequireExists(seen.key, lock=seen.key, uid=seen.metadata.uid)


def _initial(seen: ObservedWorkload) -> JsonMapping:
    """The annotation and finalizer that federation would add first, which saves a request, an event
    and a reconcile. Afterwards only federation writes them.
    """
    if not seen.hub_namespace:
        return {}
    annotations = {labels.FEDERATION_NAMESPACE: seen.hub_namespace}
    return {"metadata": {"annotations": annotations, "finalizers": [labels.FEDERATION_FINALIZER]}}


def _owner(seen: ObservedWorkload) -> OwnerReference:
    return OwnerReference(
        api_version=WORKLOAD.api_version,
        kind=WORKLOAD.kind,
        name=seen.key.name,
        uid=Uid(seen.metadata.uid),
        controller=True,
        block_owner_deletion=True,
    )


def _desired(
    seen: ObservedWorkload,
    identity: DeploymentIdentity,
    placement: WorkloadPlacement,
    owner: OwnerReference,
) -> OwnedFields:
    spec: JsonMapping = {
        "workloadRef": {"name": seen.key.name, "uid": seen.metadata.uid},
        "placementName": identity.placement,
        "cityCode": identity.city_code,
        "template": seen.template,
        "scaleSettings": placement.scale_settings,
    }
    name = names.derive_label_value(seen.key.name)
    return OwnedFields(
        labels={labels.WORKLOAD_UID: seen.metadata.uid, labels.WORKLOAD_NAME: name.value},
        annotations={} if name.full is None else {labels.WORKLOAD_NAME: name.full},
        owners=(owner,),
        replace={"spec": spec},
    )


def _finalize(seen: ObservedWorkload) -> Plan:
    if labels.WORKLOAD_FINALIZER not in seen.metadata.finalizers:
        return Plan()
    if seen.deployments:
        left = [one for one in seen.deployments if not one.metadata.is_deleting]
        return Plan(tuple(intent for one in left for intent in _removal(seen, one, None)))
    none_left = RequireNone(
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
            require_none=none_left,
        )
    )


def deployment_key(seen: ObservedWorkload, name: str) -> ObjectKey:
    return ObjectKey(seen.key.plane, DEPLOYMENT, seen.key.namespace, name)


def _event(
    seen: ObservedWorkload, reason: str, message: str, after: Ensure | Delete
) -> RecordEvent:
    return RecordEvent(seen.key, seen.metadata.uid, reason, message, ACTION, after=after)
