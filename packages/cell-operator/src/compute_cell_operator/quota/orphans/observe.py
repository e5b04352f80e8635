"""Cache reads of the whole cell for the orphan collector: projects, Instances, slots. No request.

The labels of a Namespace only select the projects to list, and the slot that a claim may belong to;
the slot's own reconcile proves the identity before it releases a claim.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby

from compute_api_types import names
from compute_cell_operator.planes import CELL, INSTANCE, NAMESPACE
from compute_cell_operator.quota.observe import is_wanted, observe_desired, read_instance_facts
from compute_cell_operator.quota.orphans.plan import ObservedSlot
from compute_cell_operator.quota.project_ref import (
    BillingProject,
    ClaimRef,
    derive_billing_project,
    derive_claim_ref,
)
from compute_operator_kit.cache.lister import Caches
from compute_operator_kit.core.keys import ObjectKey
from compute_operator_kit.core.objects import Snapshot, Unreadable


@dataclass(frozen=True, slots=True)
class ObservedCell:
    """Namespaces and Instances of the cell."""

    caches: Caches
    namespaces: dict[tuple[str, str], str]  # project and its namespace → Namespace of the cell
    instances: dict[str, tuple[Snapshot, ...]]  # by Namespace
    billing: dict[str, BillingProject]  # by Namespace

    @property
    def named(self) -> frozenset[str]:
        """Projects that a Namespace names."""
        return frozenset(billing.project for billing in self.billing.values())

    @property
    def populated(self) -> frozenset[str]:
        """Projects with an Instance in the cell."""
        return frozenset(
            self.billing[namespace].project
            for namespace, instances in self.instances.items()
            if instances and namespace in self.billing
        )

    def started(self, project: str) -> Iterator[tuple[ClaimRef, ObjectKey]]:
        """Where the claims of a project's started Instances should be."""
        for namespace, billing in self.billing.items():
            if billing.project != project:
                continue
            for snapshot in self.instances.get(namespace, ()):
                instance = read_instance_facts(snapshot)
                if instance.is_started and not instance.is_terminating:
                    yield derive_claim_ref(billing, snapshot.key.name), snapshot.key

    def slot_of_claim(self, claim: ClaimRef) -> ObservedSlot | None:
        """The slot that a claim with this reference belongs to."""
        namespace = self.namespaces.get((claim.project, claim.namespace))
        return self._slot(namespace or "", claim.name)

    def slot_of_subject(self, namespace: str, claim: str) -> ObservedSlot | None:
        """The slot that a claim of this name records."""
        return self._slot(namespace if names.is_dns_label(namespace) else "", claim)

    def _slot(self, namespace: str, claim: str) -> ObservedSlot | None:
        name = names.parse_claim_name(claim)
        if name is None or not namespace:
            return None
        key = ObjectKey(CELL, INSTANCE, namespace, name)
        instance = self.caches.lister(CELL, INSTANCE).get(namespace, name)
        desired = observe_desired(key, self.caches)
        if isinstance(instance, Unreadable) or isinstance(desired, Unreadable):
            return ObservedSlot(key, None, is_wanted=True)  # unreadable is not absent
        uid = instance.metadata.uid if isinstance(instance, Snapshot) else None
        return ObservedSlot(key, uid, is_wanted=is_wanted(key, desired))


def observe_cell(caches: Caches, is_in_scope: Callable[[str], bool]) -> ObservedCell | None:
    """None while a cache is incomplete."""
    namespaces = caches.lister(CELL, NAMESPACE).snapshots()
    instances = caches.lister(CELL, INSTANCE).snapshots()
    if isinstance(namespaces, Unreadable) or isinstance(instances, Unreadable):
        return None
    billing: dict[str, BillingProject] = {}
    for namespace in namespaces:
        project = derive_billing_project(namespace.metadata)
        if isinstance(project, BillingProject) and is_in_scope(namespace.key.name):
            billing[namespace.key.name] = project
    grouped: dict[str, tuple[Snapshot, ...]] = {}
    for name, members in groupby(instances, lambda one: one.key.namespace):
        grouped[name] = tuple(members)
    by_project = {(one.project, one.namespace): name for name, one in billing.items()}
    return ObservedCell(caches, by_project, grouped, billing)
