"""Patches on Instances that exist: links, owner, location and the Network gate. Pure.

They never wait for anything, never cost an Instance its life, and carry only what differs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from compute_api_types import labels, reasons
from compute_api_types.template_hash import HashVerdict
from compute_cell_operator.deployment.observe import FoundInstance, Seen
from compute_cell_operator.deployment.plan.location import (
    Located,
    NotNeeded,
    Resolution,
    refer_to_location,
)
from compute_cell_operator.deployment.plan.wanted import derive_links, refer_to_owner
from compute_cell_operator.network.plan import Readiness, Ready
from compute_operator_kit.intents import Ensure, Intent, Owned, RemoveGate
from compute_operator_kit.wire import JsonMapping


def plan_repairs(seen: Seen, resolution: Resolution) -> Iterator[Intent]:
    """What is wrong with Instances in slots; one patch for each."""
    for ordinal in sorted(seen.slots.by_ordinal):
        found = seen.in_slot(ordinal)
        if found is None or found.metadata.is_deleting:
            continue
        wanted = _missing(seen, ordinal, found, resolution)
        if wanted != Owned():
            yield Ensure(found.key, wanted, reasons.DRIFTED, uid=found.metadata.uid)


def _missing(seen: Seen, ordinal: int, found: FoundInstance, resolution: Resolution) -> Owned:
    links, full = derive_links(seen, ordinal)
    is_unowned = found.metadata.name in seen.slots.unowned
    return Owned(
        labels=_differing(links, found.metadata.labels),
        annotations={**_differing(full, found.metadata.annotations), **_adopted(seen, found)},
        owners=(refer_to_owner(seen),) if is_unowned else (),
        parts=_missing_location(found, resolution),
    )


def _adopted(seen: Seen, found: FoundInstance) -> dict[str, str]:
    """Our hash beside another operator's: from now on it is judged by it, and never restarted for
    the difference.
    """
    return {labels.ADOPTED_TEMPLATE_HASH: seen.template_hash} if found.is_unmarked else {}


def _missing_location(found: FoundInstance, resolution: Resolution) -> JsonMapping:
    """Only where it has not started: a Location is never put under something that runs."""
    is_waiting = not found.location and labels.NETWORK_GATE in found.gates
    if not is_waiting or not isinstance(resolution, Located):
        return {}
    return {"spec": {"location": refer_to_location(resolution.name)}}


def _differing(wanted: Mapping[str, str], found: Mapping[str, str]) -> dict[str, str]:
    return {key: text for key, text in wanted.items() if found.get(key) != text}


def plan_gates(seen: Seen, resolution: Resolution, readiness: Readiness) -> Iterator[RemoveGate]:
    """The Network gate goes when the network is ready, or when nobody looks at networks."""
    if isinstance(resolution, NotNeeded):
        for found in _gated(seen):
            yield _removal(found, reasons.NETWORKING_OFF)
    elif isinstance(resolution, Located) and isinstance(readiness, Ready):
        for found in _gated(seen):
            # A stale one is about to be made anew: it must not start before that.
            if found.revision is HashVerdict.CURRENT:
                yield _removal(found, reasons.NETWORK_READY)


def _gated(seen: Seen) -> Iterator[FoundInstance]:
    for found in seen.owned:
        if labels.NETWORK_GATE in found.gates and not found.metadata.is_deleting:
            yield found


def _removal(found: FoundInstance, reason: str) -> RemoveGate:
    return RemoveGate(found.key, found.metadata.uid, labels.NETWORK_GATE, reason)
