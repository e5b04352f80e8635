"""Turns changes in the cell into slots to look at (cell.md 2), and says when looking may begin.

```
Instance    its own slot                       deployment   its vacant slots, and those that wait
Namespace   every slot in it
```

What is gone from a list and was not seen to go is an inference, and is marked so. Runs on every
replica, so that a new leader knows what to look at. It never asks a plane.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from compute_api_types import conditions, labels
from compute_cell_operator.deployment.mapping import DEPLOYMENT_INDEXES
from compute_cell_operator.instance.observe import read_gates
from compute_cell_operator.kinds import DEPLOYMENT, INSTANCE, NAMESPACE
from compute_cell_operator.plane_names import CELL
from compute_cell_operator.quota_gate.evidence import Payer, derive_payer
from compute_cell_operator.quota_gate.ledger import Ledger
from compute_cell_operator.quota_gate.runner import Runner
from compute_operator_kit.cache import Change, Entry
from compute_operator_kit.keys import Kind, ObjectKey, Role
from compute_operator_kit.objects import Metadata
from compute_operator_kit.planes import Plane, Watched
from compute_operator_kit.reach import Reach
from compute_operator_kit.reconcile import call_safely
from compute_operator_kit.wire import JsonObject, member_list, member_object, member_text

QUOTA: Final = "quota"
"""Index of Instances that no Quota gate holds: status and reason of their `QuotaGranted`."""


def index_by_quota(_: Metadata, body: JsonObject) -> Iterable[str]:
    """Behind its gate nothing that is said of it is news to the one who has found it out."""
    if labels.QUOTA_GATE in read_gates(member_object(body, "spec")):
        return ()
    for entry in member_list(member_object(body, "status"), "conditions"):
        if isinstance(entry, dict) and entry.get("type") == conditions.QUOTA_GRANTED:
            return (f"{member_text(entry, 'status')}/{member_text(entry, 'reason')[:64]}",)
    return ()


WATCHED: Final = (
    Watched(Role.HOME, DEPLOYMENT, indexes=DEPLOYMENT_INDEXES),
    Watched(Role.HOME, INSTANCE, indexes={QUOTA: index_by_quota}),
    Watched(Role.HOME, NAMESPACE),
)
KINDS: Final = tuple(watched.kind for watched in WATCHED)
CONTROLLER: Final = "instance"  # whose part this is, in logs


def find_payer(key: ObjectKey, ledger: Ledger, reach: Reach) -> Payer | None:
    """Whose quota a slot takes: as remembered, else by the labels of its Namespace."""
    record = ledger.find(key)
    if record is not None and record.payer is not None:
        return record.payer
    entry = reach.caches.view(CELL, NAMESPACE).entry("", key.namespace)
    payer = derive_payer(entry.metadata) if entry is not None else None
    return payer if isinstance(payer, Payer) else None


class Waker:
    """A listener of planes."""

    def __init__(
        self,
        reach: Reach,
        ledger: Ledger,
        runner: Runner,
        *,
        is_in_scope: Callable[[str], bool],
    ) -> None:
        self._reach = reach
        self._ledger = ledger
        self._runner = runner
        self._is_in_scope = is_in_scope
        self.synced_event = asyncio.Event()  # set while every cache that is read is complete

    def teller(self, role: Role, kind: Kind) -> Callable[[Change], None]:
        notes = {
            INSTANCE: self._note_instance,
            DEPLOYMENT: self._note_deployment,
            NAMESPACE: self._note_namespace,
        }
        note = notes.get(kind, _ignore) if role is Role.HOME else _ignore
        return lambda change: call_safely(CONTROLLER, note, change)

    def synced(self, plane: Plane, kind: Kind) -> None:
        del kind
        engaged = self._reach.planes.find(plane.name)
        if plane.name == CELL and engaged is not None and all(map(engaged.is_known, KINDS)):
            self.synced_event.set()

    def recovered(self, plane: Plane) -> None:
        """What failed because the cell was away is tried again on its own time."""

    def disengaged(self, plane: Plane) -> None:
        if plane.name == CELL:
            self.synced_event.clear()

    # changes -------------------------------------------------------------------------------------

    def _note_instance(self, change: Change) -> None:
        key = change.key
        if not self._is_in_scope(key.namespace):
            return
        if change.after is None:
            self._ledger.open(key).is_seen_going = not change.is_inferred
        if not is_alike(change):
            self._runner.add(key, is_urgent=not change.is_initial)

    def _note_deployment(self, change: Change) -> None:
        """Claims of slots that are not wanted any more and have no Instance."""
        for key in self._ledger.of_deployment(change.key.namespace, change.key.name):
            record = self._ledger.find(key)
            if record is not None and (record.subject is None or record.postponed is not None):
                self._runner.add(key)

    def _note_namespace(self, change: Change) -> None:
        for key in self._ledger.in_namespace(change.key.name):
            self._runner.add(key)


def is_alike(change: Change) -> bool:
    """Whether the Instance is to its claim what it was: most of what is said of one on its way up
    is the provider's.
    """
    before, after = change.before, change.after
    if before is None or after is None:
        return False
    return _read(before) == _read(after)


def _read(instance: Entry) -> tuple[object, ...]:
    """All that a look reads of an Instance; its spec, with the gates, by its generation."""
    found, quota = instance.metadata, instance.values.get(QUOTA)
    return (found.uid, found.generation, found.is_deleting, found.owners, quota)


def _ignore(change: Change) -> None:
    del change
