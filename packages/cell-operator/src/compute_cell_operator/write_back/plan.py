"""Decides what happens to the copy of one Instance. Pure (cell.md 11, 12).

Two steps: what the caches say is compared first, and only a difference makes somebody ask the hub
(`AskHub`). With the answer the same function decides again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, TypeAlias, assert_never

from compute_api_types import conditions, labels, reasons
from compute_cell_operator.write_back.checks import (
    NoOwner,
    NotKnown,
    Obstacle,
    Refusal,
    find_obstacle,
    linking_labels_are_there,
)
from compute_cell_operator.write_back.observe import Document, Hashes, HubAnswer, Seen
from compute_cell_operator.write_back.wanted import Copy, derive_copy, derive_hash, read_copy
from compute_operator_kit.intents import (
    Delete,
    Ensure,
    IfGone,
    Intent,
    Owned,
    Plan,
    SetStatus,
    Wait,
)
from compute_operator_kit.keys import ObjectKey, Uid
from compute_operator_kit.objects import Absent, Metadata, Unreadable

RETRY_OWNER: Final = timedelta(seconds=30)
RETRY_OWNER_LATER: Final = timedelta(minutes=5)
OWNER_TRIES: Final = 10
RETRY_REFUSED: Final = timedelta(minutes=5)
# Not the way it usually goes on: a plane that is back wakes the key.
RETRY_UNREADABLE: Final = timedelta(seconds=30)
RETRY_REPLACED: Final = timedelta(seconds=1)
GATHER: Final = timedelta(milliseconds=100)
"""Grant, gate and start follow each other closely, and are to be one write."""


@dataclass(frozen=True, slots=True)
class AskHub:
    """The copy differs; whether it may be written is for the hub to say."""

    is_create: bool  # a create needs a fresh answer, another may use one of the last 10 s
    # More is about to follow: a create waits a moment for it, before anybody is asked. An update
    # that is held back by its writer costs no request, since answers are kept.
    is_provisional: bool = False


@dataclass(frozen=True, slots=True)
class Decided:
    """What is done, and why a copy is not written."""

    plan: Plan
    refusal: Refusal | None = None
    is_ownerless: bool = False


Decision: TypeAlias = AskHub | Decided
SETTLED: Final = Decided(Plan())
NOT_ASKED: Final = HubAnswer(Absent(), Absent())


def plan(seen: Seen) -> Decision:
    # Half a view: nothing is compared with it, and nothing written from it.
    for found in (seen.namespace, seen.copy):
        if isinstance(found, Unreadable):
            return _wait(seen, found.reason, RETRY_UNREADABLE)
    if not _differs(seen):
        return SETTLED
    # Nothing is made for what is going: it would have to be taken away again.
    if not isinstance(seen.copy, Document) and seen.instance.metadata.is_deleting:
        return SETTLED
    if seen.hub is None:
        # What the Instance itself lacks is told without asking anybody.
        lacking = linking_labels_are_there(seen, NOT_ASKED)
        if lacking is not None:
            return _hold(seen, lacking)
        is_create = not isinstance(seen.copy, Document)
        return AskHub(is_create, is_provisional=is_create and _is_provisional(seen, None))
    obstacle = find_obstacle(seen, seen.hub)
    if obstacle is not None:
        return _hold(seen, obstacle)
    return Decided(Plan(tuple(_write(seen))))


def derive_hashes(seen: Seen) -> Hashes | None:
    """Both hashes; None where there is no copy."""
    if not isinstance(seen.copy, Document):
        return None
    wanted, found = _wanted(seen), read_copy(seen.copy)
    return Hashes(derive_hash(wanted), derive_hash(found))


def _differs(seen: Seen) -> bool:
    hashes = derive_hashes(seen)
    # A copy that nobody owns, and of which nobody here knows the owner, is to be adopted.
    if hashes is None or not _owner_uid(seen):
        return True
    # An older hub prunes a field: what was written as wanted is not written again for it.
    return hashes.wanted != hashes.found and hashes != seen.written


def _wanted(seen: Seen) -> Copy:
    namespace = seen.namespace if isinstance(seen.namespace, Metadata) else None
    return derive_copy(seen.cell, seen.instance, namespace, _owner_uid(seen))


def _owner_uid(seen: Seen) -> str:
    """The hub's own word, else Karmada's, else what the copy has: it was checked when written."""
    if seen.hub is not None and isinstance(seen.hub.deployment, Metadata):
        return seen.hub.deployment.uid
    if seen.deployment_uid:
        return seen.deployment_uid
    controller = seen.copy.metadata.controller if isinstance(seen.copy, Document) else None
    return controller.uid if controller is not None else ""


def _hold(seen: Seen, obstacle: Obstacle) -> Decided:
    match obstacle:
        case NotKnown(reason=reason):
            return _wait(seen, reason, RETRY_UNREADABLE)
        case NoOwner():
            is_early = seen.owner_misses < OWNER_TRIES
            delay = RETRY_OWNER if is_early else RETRY_OWNER_LATER
            waits = Plan.of(Wait(seen.instance.key, reasons.OWNER_ABSENT, delay))
            return Decided(waits, is_ownerless=True)
        case Refusal():
            waits = Plan.of(Wait(seen.instance.key, reasons.REFUSED, RETRY_REFUSED))
            return Decided(waits, refusal=obstacle)
        case _:
            assert_never(obstacle)


def _wait(seen: Seen, reason: str, delay: timedelta) -> Decided:
    return Decided(Plan.of(Wait(seen.instance.key, reason, delay)))


def _write(seen: Seen) -> Iterator[Intent]:
    found = seen.copy if isinstance(seen.copy, Document) else None
    if found is not None and _is_of_another(found, seen):
        # Age and identity are to be the new Instance's: its vanishing wakes the key again, unless
        # nobody watches it.
        yield Delete(found.key, found.metadata.uid, reasons.REPLACED)
        if found.metadata.labels.get(labels.CELL) != seen.cell:
            yield Wait(seen.instance.key, reasons.REPLACED, RETRY_REPLACED)
        return
    yield from _ensure(seen, _wanted(seen), found)


def _is_of_another(found: Document, seen: Seen) -> bool:
    recorded = found.metadata.annotations.get(labels.INSTANCE_UID)
    return recorded is not None and recorded != seen.instance.metadata.uid


def _ensure(seen: Seen, wanted: Copy, found: Document | None) -> Iterator[Intent]:
    # A create has waited before the hub was asked.
    provisional = found is not None and _is_provisional(seen, found)
    settle = None if found is None else GATHER
    made = Ensure(
        seen.copy_key,
        Owned(
            labels=wanted.labels,
            annotations=wanted.annotations,
            owners=(wanted.owner,) if wanted.owner is not None else (),
            whole={"spec": wanted.spec},
        ),
        reasons.ABSENT if found is None else reasons.DRIFTED,
        uid=None if found is None else found.metadata.uid,
        provisional=provisional,
        settle=settle,
        is_final=True,  # what is wanted of a copy does not depend on the copy
    )
    yield made
    if wanted.status != ({} if found is None else found.status):
        yield SetStatus(
            made.key,
            made.uid,
            "" if found is None else found.metadata.resource_version,
            wanted.status,
            reason=reasons.STATUS_CHANGED,
            provisional=provisional,
            settle=settle,
            is_final=True,
        )


def _is_provisional(seen: Seen, found: Document | None) -> bool:
    """A copy is judged like its source (api.md 8.1, rule 8)."""
    return conditions.provisional(
        "Instance",
        seen.instance.conditions,
        found.conditions if found is not None else (),
        is_terminating=seen.instance.metadata.is_deleting,
    )


# --- release (cell.md 12) -------------------------------------------------------------------------


def plan_removal(cell: str, instance: ObjectKey, copy: Document) -> Plan:
    """What happens to a copy whose Instance the cache does not have.

    The cache is no proof: the guard reads the cell live, around the delete.
    """
    if copy.metadata.labels.get(labels.CELL) != cell or copy.metadata.is_deleting:
        return Plan()
    recorded = copy.metadata.annotations.get(labels.INSTANCE_UID)
    gone = IfGone(instance, Uid(recorded) if recorded else None)
    return Plan.of(Delete(copy.key, copy.metadata.uid, reasons.NOT_WANTED, if_gone=gone))
