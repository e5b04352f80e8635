"""Reads caches: all that a sweep of claims needs to know of the cell. No request.

Identity comes from the Namespaces of the cell and is checked before anything is claimed or
released; here it only says in which projects to look, and which slot a claim may be for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby

from compute_api_types import names
from compute_cell_operator.kinds import INSTANCE, NAMESPACE
from compute_cell_operator.plane_names import CELL
from compute_cell_operator.quota_gate.evidence import Payer, derive_payer
from compute_cell_operator.quota_gate.occupancy import is_wanted, observe_desired, read_subject
from compute_cell_operator.quota_gate.place import Place, derive_place
from compute_cell_operator.quota_gate.sweep import SlotSeen
from compute_operator_kit.cache import Caches
from compute_operator_kit.keys import ObjectKey
from compute_operator_kit.objects import Snapshot, Unreadable


@dataclass(frozen=True, slots=True)
class CellSeen:
    """What the caches of the cell say, as far as a sweep needs it."""

    caches: Caches
    namespaces: dict[tuple[str, str], str]  # project and its namespace → Namespace of the cell
    instances: dict[str, tuple[Snapshot, ...]]  # by Namespace
    payers: dict[str, Payer]  # by Namespace

    @property
    def named(self) -> frozenset[str]:
        """Projects that a Namespace names."""
        return frozenset(payer.project for payer in self.payers.values())

    @property
    def populated(self) -> frozenset[str]:
        """Projects with an Instance here."""
        return frozenset(
            self.payers[namespace].project
            for namespace, found in self.instances.items()
            if found and namespace in self.payers
        )

    def started(self, project: str) -> Iterator[tuple[Place, ObjectKey]]:
        """Where the claims of a project's started Instances should be."""
        for namespace, payer in self.payers.items():
            if payer.project != project:
                continue
            for snapshot in self.instances.get(namespace, ()):
                subject = read_subject(snapshot)
                if subject.is_started and not subject.is_terminating:
                    yield derive_place(payer, snapshot.key.name), snapshot.key

    def slot_at(self, place: Place) -> SlotSeen | None:
        """The slot whose claim belongs there."""
        namespace = self.namespaces.get((place.project, place.namespace))
        return self._slot(namespace or "", place.name)

    def slot_named(self, namespace: str, claim: str) -> SlotSeen | None:
        """The slot that a claim names by itself."""
        return self._slot(namespace if names.is_dns_label(namespace) else "", claim)

    def _slot(self, namespace: str, claim: str) -> SlotSeen | None:
        instance = names.parse_claim_name(claim)
        if instance is None or not namespace:
            return None
        key = ObjectKey(CELL, INSTANCE, namespace, instance)
        found = self.caches.view(CELL, INSTANCE).get(namespace, instance)
        desired = observe_desired(key, self.caches)
        if isinstance(found, Unreadable) or isinstance(desired, Unreadable):
            return SlotSeen(key, None, is_wanted=True)  # not knowing is not absence
        uid = found.metadata.uid if isinstance(found, Snapshot) else None
        return SlotSeen(key, uid, is_wanted=is_wanted(key, desired))


def observe_cell(caches: Caches, is_in_scope: Callable[[str], bool]) -> CellSeen | None:
    """None where a cache cannot be believed."""
    found = caches.view(CELL, NAMESPACE).snapshots()
    instances = caches.view(CELL, INSTANCE).snapshots()
    if isinstance(found, Unreadable) or isinstance(instances, Unreadable):
        return None
    payers: dict[str, Payer] = {}
    for namespace in found:
        payer = derive_payer(namespace.metadata)
        if isinstance(payer, Payer) and is_in_scope(namespace.key.name):
            payers[namespace.key.name] = payer
    grouped: dict[str, tuple[Snapshot, ...]] = {}
    for namespace, members in groupby(instances, lambda one: one.key.namespace):
        grouped[namespace] = tuple(members)
    places = {(payer.project, payer.namespace): name for name, payer in payers.items()}
    return CellSeen(caches, places, grouped, payers)
