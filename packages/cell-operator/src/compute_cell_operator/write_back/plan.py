"""Plan of the copy of one Instance on the hub: create, update, replace or delete. Pure (cell.md 11,
12).

Two steps: the caches are compared first, and only a difference leads to live reads of the hub
(`AskHub`), with which the same function decides again. A settled cell sends no request.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, TypeAlias, assert_never

from compute_api_types import conditions, labels, reasons
from compute_cell_operator.delays import RETRY_UNREADABLE
from compute_cell_operator.write_back.checks import (
    NoOwner,
    NotKnown,
    Obstacle,
    Refusal,
    find_obstacle,
    linking_labels_are_there,
)
from compute_cell_operator.write_back.delays import (
    GATHER,
    OWNER_TRIES,
    RETRY_OWNER,
    RETRY_OWNER_LATER,
    RETRY_REFUSED,
    RETRY_REPLACED,
)
from compute_cell_operator.write_back.desired import (
    DesiredCopy,
    derive_copy,
    derive_hash,
    read_copy,
)
from compute_cell_operator.write_back.observe import (
    Hashes,
    HubFacts,
    InstanceDocument,
    ObservedCopy,
)
from compute_operator_kit.controller.mass_delete import RemovalHeld
from compute_operator_kit.core.keys import ObjectKey, Uid
from compute_operator_kit.core.objects import Absent, Metadata, Unreadable
from compute_operator_kit.intents.intents import (
    Delete,
    Ensure,
    Intent,
    OwnedFields,
    Plan,
    RecordEvent,
    RequeueAfter,
    RequireGone,
    SetStatus,
)

SWEEPING: Final = "Sweeping"


@dataclass(frozen=True, slots=True)
class AskHub:
    """The copy differs; live reads of the hub decide whether it may be written."""

    is_create: bool  # needs a live read; an update may use one of the last 10 s
    # More changes are about to follow: a create waits for them before the hub is read. An update is
    # deferred by the applier, and costs no read meanwhile.
    is_provisional: bool = False


@dataclass(frozen=True, slots=True)
class Decided:
    """The plan, and why a copy is not written."""

    plan: Plan
    refusal: Refusal | None = None
    is_ownerless: bool = False


Decision: TypeAlias = AskHub | Decided
SETTLED: Final = Decided(Plan())
NOT_ASKED: Final = HubFacts(Absent(), Absent())


def plan(observed: ObservedCopy) -> Decision:
    # Nothing is compared with an incomplete cache, and nothing is written from it.
    for cached in (observed.namespace, observed.copy):
        if isinstance(cached, Unreadable):
            return _wait(observed, cached.reason, RETRY_UNREADABLE)
    if not _differs(observed):
        return SETTLED
    # A copy created for a terminating Instance would have to be deleted again.
    if not isinstance(observed.copy, InstanceDocument) and observed.instance.metadata.is_deleting:
        return SETTLED
    if observed.hub is None:
        # Missing labels are a refusal that needs no read of the hub.
        lacking = linking_labels_are_there(observed, NOT_ASKED)
        if lacking is not None:
            return _hold(observed, lacking)
        is_create = not isinstance(observed.copy, InstanceDocument)
        return AskHub(is_create, is_provisional=is_create and _is_provisional(observed, None))
    obstacle = find_obstacle(observed, observed.hub)
    if obstacle is not None:
        return _hold(observed, obstacle)
    return Decided(Plan(tuple(_write(observed))))


def derive_hashes(observed: ObservedCopy) -> Hashes | None:
    """Both hashes; None where there is no copy."""
    if not isinstance(observed.copy, InstanceDocument):
        return None
    return Hashes(derive_hash(_desired(observed)), derive_hash(read_copy(observed.copy)))


def _differs(observed: ObservedCopy) -> bool:
    hashes = derive_hashes(observed)
    # A copy without an owner is to be adopted, and only the hub knows by which deployment.
    if hashes is None or not _owner_uid(observed):
        return True
    # An older hub prunes fields: a copy that was written as desired is not written again for that.
    return hashes.desired != hashes.existing and hashes != observed.written


def _desired(observed: ObservedCopy) -> DesiredCopy:
    namespace = observed.namespace if isinstance(observed.namespace, Metadata) else None
    return derive_copy(observed.cell, observed.instance, namespace, _owner_uid(observed))


def _owner_uid(observed: ObservedCopy) -> str:
    """By the hub, else by Karmada's annotation, else by the copy, checked when it was written."""
    if observed.hub is not None and isinstance(observed.hub.deployment, Metadata):
        return observed.hub.deployment.uid
    if observed.deployment_uid:
        return observed.deployment_uid
    controller = (
        observed.copy.metadata.controller if isinstance(observed.copy, InstanceDocument) else None
    )
    return controller.uid if controller is not None else ""


def _hold(observed: ObservedCopy, obstacle: Obstacle) -> Decided:
    match obstacle:
        case NotKnown(reason=reason):
            return _wait(observed, reason, RETRY_UNREADABLE)
        case NoOwner():
            is_early = observed.owner_misses < OWNER_TRIES
            delay = RETRY_OWNER if is_early else RETRY_OWNER_LATER
            waits = Plan.of(RequeueAfter(observed.instance.key, reasons.OWNER_ABSENT, delay))
            return Decided(waits, is_ownerless=True)
        case Refusal():
            waits = Plan.of(RequeueAfter(observed.instance.key, reasons.REFUSED, RETRY_REFUSED))
            return Decided(waits, refusal=obstacle)
        case _:
            assert_never(obstacle)


def _wait(observed: ObservedCopy, reason: str, delay: timedelta) -> Decided:
    return Decided(Plan.of(RequeueAfter(observed.instance.key, reason, delay)))


def _write(observed: ObservedCopy) -> Iterator[Intent]:
    existing = observed.copy if isinstance(observed.copy, InstanceDocument) else None
    if existing is not None and _is_of_another(existing, observed):
        # A new copy follows, with the age and UID of the new Instance: the deletion enqueues the
        # key, unless the copy has another label than the watch selects.
        yield Delete(existing.key, existing.metadata.uid, reasons.REPLACED)
        if existing.metadata.labels.get(labels.CELL) != observed.cell:
            yield RequeueAfter(observed.instance.key, reasons.REPLACED, RETRY_REPLACED)
        return
    yield from _ensure(observed, _desired(observed), existing)


def _is_of_another(copy: InstanceDocument, observed: ObservedCopy) -> bool:
    recorded = copy.metadata.annotations.get(labels.INSTANCE_UID)
    return recorded is not None and recorded != observed.instance.metadata.uid


def _ensure(
    observed: ObservedCopy, desired: DesiredCopy, existing: InstanceDocument | None
) -> Iterator[Intent]:
    # A create has waited before the hub was read.
    may_defer = existing is not None and _is_provisional(observed, existing)
    defer_for = None if existing is None else GATHER
    ensure = Ensure(
        observed.copy_key,
        OwnedFields(
            labels=desired.labels,
            annotations=desired.annotations,
            owners=(desired.owner,) if desired.owner is not None else (),
            replace={"spec": desired.spec},
        ),
        reasons.ABSENT if existing is None else reasons.DRIFTED,
        uid=None if existing is None else existing.metadata.uid,
        may_defer=may_defer,
        defer_for=defer_for,
        ignore_own_event=True,  # the desired copy does not depend on the existing one
    )
    yield ensure
    if desired.status != ({} if existing is None else existing.status):
        yield SetStatus(
            ensure.key,
            ensure.uid,
            "" if existing is None else existing.metadata.resource_version,
            desired.status,
            reason=reasons.STATUS_CHANGED,
            may_defer=may_defer,
            defer_for=defer_for,
            ignore_own_event=True,
        )


def _is_provisional(observed: ObservedCopy, existing: InstanceDocument | None) -> bool:
    """By the rule for the Instance itself (api.md 8.1, rule 8)."""
    return conditions.provisional(
        "Instance",
        observed.instance.conditions,
        existing.conditions if existing is not None else (),
        is_terminating=observed.instance.metadata.is_deleting,
    )


# --- removal (cell.md 12) -------------------------------------------------------------------------


def plan_removal(cell: str, instance: ObjectKey, copy: InstanceDocument) -> Plan:
    """The deletion of a copy, if it is ours, where the cache has no Instance.

    The cache may be behind, so the guard reads the cell live around the delete.
    """
    if copy.metadata.labels.get(labels.CELL) != cell or copy.metadata.is_deleting:
        return Plan()
    recorded = copy.metadata.annotations.get(labels.INSTANCE_UID)
    gone = RequireGone(instance, Uid(recorded) if recorded else None)
    return Plan.of(Delete(copy.key, copy.metadata.uid, reasons.NOT_WANTED, require_gone=gone))


def plan_refusal(key: ObjectKey, held: RemovalHeld, operator: ObjectKey) -> Plan:
    """Nothing is deleted now; the event is recorded once per count."""
    waits = Plan.of(RequeueAfter(key, reasons.MASS_DELETE_REFUSED, held.wait))
    if not held.is_news:
        return waits
    message = (
        f"{held.missing} of {held.total} copies on the hub have no Instance in this cell; "
        "they are removed if a second look says the same"
    )
    refused = RecordEvent(
        operator, Uid(""), reasons.MASS_DELETE_REFUSED, message, SWEEPING, type="Warning"
    )
    return Plan.of(refused) + waits
