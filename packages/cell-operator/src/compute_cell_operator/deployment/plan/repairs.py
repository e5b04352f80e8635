"""Patches of existing Instances: linking labels, owner, Location and the Network gate. Pure.

A patch has only the fields that differ, waits for nothing and never restarts an Instance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from compute_api_types import labels, reasons
from compute_api_types.template_hash import HashVerdict
from compute_cell_operator.deployment.observe import ObservedDeployment
from compute_cell_operator.deployment.plan.location import (
    Located,
    NotNeeded,
    Resolution,
    refer_to_location,
)
from compute_cell_operator.deployment.plan.new_instance import derive_links, refer_to_owner
from compute_cell_operator.deployment.slots import SlotInstance
from compute_cell_operator.network.plan import NetworkReady, Readiness
from compute_operator_kit.core.json import JsonMapping
from compute_operator_kit.intents.intents import Ensure, Intent, OwnedFields, RemoveGate


def plan_repairs(observed: ObservedDeployment, resolution: Resolution) -> Iterator[Intent]:
    """One patch for each Instance in a slot that differs."""
    for ordinal, instance in sorted(observed.slots.by_ordinal.items()):
        if instance.is_terminating:
            continue
        differing = _differing_fields(observed, ordinal, instance, resolution)
        if differing != OwnedFields():
            yield Ensure(instance.key, differing, reasons.DRIFTED, uid=instance.metadata.uid)


def _differing_fields(
    observed: ObservedDeployment, ordinal: int, instance: SlotInstance, resolution: Resolution
) -> OwnedFields:
    links, full = derive_links(observed, ordinal)
    metadata = instance.metadata
    return OwnedFields(
        labels=_differing(links, metadata.labels),
        annotations={**_differing(full, metadata.annotations), **_adopted(observed, instance)},
        owners=(refer_to_owner(observed),) if instance.name in observed.slots.unowned else (),
        merge=_missing_location(instance, resolution),
    )


def _adopted(observed: ObservedDeployment, instance: SlotInstance) -> dict[str, str]:
    """Our hash beside another operator's: compared by it from now on, the Instance is not
    restarted because the two differ.
    """
    return {labels.ADOPTED_TEMPLATE_HASH: observed.template_hash} if instance.is_unmarked else {}


def _missing_location(instance: SlotInstance, resolution: Resolution) -> JsonMapping:
    """Only before it starts: a running Instance must not change its Location."""
    is_waiting = not instance.location and labels.NETWORK_GATE in instance.gates
    if not is_waiting or not isinstance(resolution, Located):
        return {}
    return {"spec": {"location": refer_to_location(resolution.name)}}


def _differing(desired: Mapping[str, str], existing: Mapping[str, str]) -> dict[str, str]:
    return {key: text for key, text in desired.items() if existing.get(key) != text}


def plan_gates(
    observed: ObservedDeployment, resolution: Resolution, readiness: Readiness
) -> Iterator[RemoveGate]:
    """Removes the Network gate when the network is ready, or when networking is off."""
    if isinstance(resolution, NotNeeded):
        for instance in _gated(observed):
            yield _remove_gate(instance, reasons.NETWORKING_OFF)
    elif isinstance(resolution, Located) and isinstance(readiness, NetworkReady):
        for instance in _gated(observed):
            # A stale one is about to be replaced: it must not start before that.
            if instance.revision is HashVerdict.CURRENT:
                yield _remove_gate(instance, reasons.NETWORK_READY)


def _gated(observed: ObservedDeployment) -> Iterator[SlotInstance]:
    for instance in observed.owned:
        if labels.NETWORK_GATE in instance.gates and not instance.is_terminating:
            yield instance


def _remove_gate(instance: SlotInstance, reason: str) -> RemoveGate:
    return RemoveGate(instance.key, instance.metadata.uid, labels.NETWORK_GATE, reason)
