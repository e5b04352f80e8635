"""Watches of the quota controller: changes in the cell, and changes of claims, to slots to enqueue.

```
Instance    its own slot                       WorkloadDeployment   its empty and waiting slots
Namespace   every slot in it                   ResourceClaim        the slot of the claim
```

A change that leaves everything a reconcile reads as it was is dropped: a provider writes many
statuses while an Instance starts, and each would cost a reconcile. Runs on every replica, so that a
new leader has its keys; sends no request (cell.md 2).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Final

from typing_extensions import override

from compute_api_types import conditions, labels
from compute_cell_operator import suspension
from compute_cell_operator.conditions import read_conditions
from compute_cell_operator.instance_facts import read_gates
from compute_cell_operator.planes import CELL, DEPLOYMENT, INSTANCE, NAMESPACE
from compute_cell_operator.quota.project_client import ProjectClient
from compute_cell_operator.quota.project_ref import (
    BillingProject,
    ClaimRef,
    derive_billing_project,
)
from compute_cell_operator.quota.result import ClaimGranted
from compute_cell_operator.quota.state import SlotState, SlotTable
from compute_operator_kit.cache.lister import CachedObject, Caches, Change
from compute_operator_kit.controller.spec import Watch
from compute_operator_kit.core.clock import Clock
from compute_operator_kit.core.json import JsonObject, member_object
from compute_operator_kit.core.keys import Kind, ObjectKey, Role
from compute_operator_kit.core.objects import Metadata
from compute_operator_kit.planes.engaged_plane import CachedKind, Plane
from compute_operator_kit.planes.registry import PlaneListener, Planes
from compute_quota_client import Absent, ClaimKey, Granted, Pending, Verdict

QUOTA: Final = "quota"
"""Index of Instances without a Quota gate: status and reason of their `QuotaGranted`."""


def index_by_quota(_: Metadata, body: JsonObject) -> Iterable[str]:
    """None behind the gate: there the condition only repeats the result of this controller."""
    if labels.QUOTA_GATE in read_gates(member_object(body, "spec")):
        return ()
    stored = read_conditions(member_object(body, "status"))
    quota = conditions.find(stored, conditions.QUOTA_GRANTED)
    return (f"{quota.status}/{quota.reason[:64]}",) if quota is not None else ()


CACHED_KINDS: Final = (CachedKind(Role.HOME, INSTANCE, indexes={QUOTA: index_by_quota}),)
KINDS: Final = (DEPLOYMENT, INSTANCE, NAMESPACE)


# --- changes in the cell --------------------------------------------------------------------------


class QuotaWatches:
    """Mapping functions of the quota controller, with the slots they read."""

    def __init__(self, slots: SlotTable, is_in_scope: Callable[[str], bool]) -> None:
        self._slots = slots
        self._is_in_scope = is_in_scope

    def declare(self) -> tuple[Watch, ...]:
        return (
            Watch(Role.HOME, INSTANCE, self.map_instance),
            Watch(Role.HOME, DEPLOYMENT, self.map_deployment),
            Watch(Role.HOME, NAMESPACE, self.map_namespace),
        )

    def map_instance(self, change: Change, _: Caches) -> Iterable[ObjectKey]:
        key = change.key
        if not self._is_in_scope(key.namespace):
            return ()
        if change.after is None:
            # The event is the only evidence: a claim is released at once only on a deletion that
            # was seen, and the cache does not keep one.
            self._slots.open(key).was_seen_deleted = not change.is_inferred
        return (key,) if is_relevant_change(change) else ()

    def map_deployment(self, change: Change, _: Caches) -> Iterator[ObjectKey]:
        """Slots that may not be wanted any more and have no Instance, and slots that wait; all of
        one that is suspended or resumes.
        """
        is_transition = suspension.is_transition(change)
        for key in self._slots.of_deployment(change.key.namespace, change.key.name):
            slot = self._slots.find(key)
            is_waiting = slot is not None and (slot.instance is None or slot.postponed is not None)
            if is_waiting or is_transition:
                yield key

    def map_namespace(self, change: Change, _: Caches) -> Iterable[ObjectKey]:
        return self._slots.in_namespace(change.key.name)

    def derive_fairness_key(self, key: ObjectKey, caches: Caches) -> str:
        """The project of a slot, so that one project's slots take turns with another's; the
        Namespace while the project is unknown.
        """
        slot = self._slots.find(key)
        if slot is not None and slot.billing is not None:
            return slot.billing.project
        namespace = caches.lister(CELL, NAMESPACE).entry("", key.namespace)
        billing = derive_billing_project(namespace.metadata) if namespace is not None else None
        return billing.project if isinstance(billing, BillingProject) else key.namespace


def is_relevant_change(change: Change) -> bool:
    """Whether something changed that a reconcile reads of an Instance."""
    before, after = change.before, change.after
    return before is None or after is None or _read(before) != _read(after)


def _read(instance: CachedObject) -> tuple[object, ...]:
    """Everything that a reconcile reads; the spec, with the gates, by its generation."""
    metadata, quota = instance.metadata, instance.index_values.get(QUOTA)
    return (metadata.uid, metadata.generation, metadata.is_deleting, metadata.owners, quota)


class CellSynced(PlaneListener):
    """An event that is set while all caches that quota reads are complete."""

    def __init__(self, planes: Callable[[], Planes]) -> None:
        self._planes = planes
        self.event = asyncio.Event()

    @override
    def synced(self, plane: Plane, kind: Kind) -> None:
        engaged = self._planes().find(plane.name)
        if plane.name == CELL and engaged is not None and all(map(engaged.is_known, KINDS)):
            self.event.set()

    @override
    def disengaged(self, plane: Plane) -> None:
        if plane.name == CELL:
            self.event.clear()


# --- changes of claims ----------------------------------------------------------------------------


class ClaimWatch:
    """Maps a changed claim to its slot, and keeps the verdict there."""

    def __init__(self, slots: SlotTable, clock: Clock) -> None:
        self._slots = slots
        self._clock = clock

    def on_change(self, project: ProjectClient, claim: ClaimKey) -> None:
        slot = self._slots.of_claim(ClaimRef(project.name, claim.namespace, claim.name))
        if slot is None:
            return  # of a slot that was never reconciled: the collector lists such claims
        verdict = project.last_watched(claim)
        if verdict is None:
            return
        is_news = not is_repeated(slot.verdict, verdict)
        slot.note_verdict(verdict, self._clock.now())
        if is_news and not _is_settled(slot, verdict):
            self._slots.check(slot.key)


def is_repeated(before: Verdict | None, verdict: Verdict | Absent) -> bool:
    """Whether a verdict is no news: the quota service writes a claim several times, once per
    resource, before and after it is evaluated.
    """
    if before == verdict:
        return True
    if not isinstance(before, Pending) or not isinstance(verdict, Pending):
        return False
    claim = verdict.found
    rewritten = replace(
        before.found,
        resource_version=claim.resource_version,
        granted=claim.granted,
        allocations=claim.allocations,
    )
    return rewritten == claim


def _is_settled(slot: SlotState, verdict: Verdict | Absent) -> bool:
    """Whether a started Instance needs nothing: its claim is granted and records it."""
    instance, result = slot.instance, slot.result
    if instance is None or not instance.is_started or slot.postponed is not None:
        return False
    is_reported = result is None or (
        isinstance(result.state, ClaimGranted) and not result.state.is_held
    )
    if not is_reported or not isinstance(verdict, Granted):
        return False
    return verdict.found.value_of(labels.INSTANCE_UID) == instance.uid
