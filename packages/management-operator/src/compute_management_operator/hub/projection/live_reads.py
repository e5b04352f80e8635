"""Live reads before the reconcile of a hub Instance: the UID of the project namespace, and, where a
list lacks the Instance without a deletion event, the number of projections without a source.

Without the count, a hub that was restored empty would remove every projection at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from compute_api_types import names
from compute_management_operator.hub.api_reader import ApiReader
from compute_management_operator.hub.identity import (
    ProjectNamespace,
    read_namespace,
    read_project_namespace,
)
from compute_management_operator.hub.namespace_uids import NamespaceUids
from compute_management_operator.hub.projection.observe import ProjectionLiveFacts, is_engaged
from compute_management_operator.hub.projection.plan.remove import is_projection
from compute_management_operator.planes import DEPLOYMENT, HUB, INSTANCE, NAMESPACE
from compute_operator_kit.cache.store import Caches, Change
from compute_operator_kit.controller.mass_delete import MassDeleteGuard, RemovalAllowed, Ruling
from compute_operator_kit.core.clock import Clock
from compute_operator_kit.core.keys import ObjectKey, PlaneName, Uid
from compute_operator_kit.core.objects import Absent, Metadata, Unreadable


@dataclass(frozen=True, slots=True)
class ProjectionLiveReads:
    """The live reads of all reconciles of the controller."""

    reads: ApiReader
    namespaces: NamespaceUids
    guard: MassDeleteGuard
    clock: Clock
    deleted: dict[ObjectKey, None] = field(default_factory=dict)  # by a deletion event

    def note_change(self, change: Change) -> None:
        """Notes the deletion event of a hub Instance; one that a list lacks has none."""
        if change.after is None and not change.is_inferred:
            self.deleted[change.key] = None
        else:
            self.deleted.pop(change.key, None)

    async def read(self, key: ObjectKey, caches: Caches) -> ProjectionLiveFacts | None:
        """None where there is nothing to reconcile."""
        source = caches.lister(HUB, INSTANCE).get(key.namespace, key.name)
        if isinstance(source, Unreadable):
            return None
        if isinstance(source, Absent):
            return await self._for_gone(key, caches)
        place = read_project_namespace(source.metadata)
        if place is None or not is_engaged(caches, place.plane):
            return ProjectionLiveFacts(place)
        return ProjectionLiveFacts(place, await self._read_uid(place, key))

    async def _read_uid(self, place: ProjectNamespace, key: ObjectKey) -> Uid | Absent:
        """The UID, by a live read where the remembered one would quarantine the Instance."""
        uid = await self.namespaces.find_or_read(place)
        if isinstance(uid, str) and names.derive_hub_namespace(uid) == key.namespace:
            return uid
        return await self.namespaces.read(place)

    # --- the source is gone -----------------------------------------------------------------------

    async def _for_gone(self, key: ObjectKey, caches: Caches) -> ProjectionLiveFacts | None:
        place = self._find_source(key, caches)
        if place is None or not is_engaged(caches, place.plane):
            self.deleted.pop(key, None)
            return None
        view = caches.lister(place.plane, INSTANCE)
        if isinstance(view.get(place.namespace, key.name), Absent | Unreadable):
            self.namespaces.forget_unused(place, caches)
            self.deleted.pop(key, None)
            return None
        uid = await self.namespaces.read(place)
        return ProjectionLiveFacts(place, uid, await self._rule(key, place, caches))

    def _find_source(self, key: ObjectKey, caches: Caches) -> ProjectNamespace | None:
        known = self.namespaces.find_namespace(names.parse_hub_namespace(key.namespace) or "")
        if known is not None:
            return known
        entry = caches.lister(HUB, NAMESPACE).entry("", key.namespace)
        return None if entry is None else read_project_namespace(entry.metadata)

    async def _rule(self, key: ObjectKey, place: ProjectNamespace, caches: Caches) -> Ruling:
        """Allowed by a deletion event of the source or of its deployment; else by the guard."""
        if key in self.deleted or self._has_deleted_owner(key, place, caches):
            return RemovalAllowed()
        named, now = (place.namespace, key.name), self.clock.monotonic()
        if self.guard.needs_look(place.plane, named, now):
            listed = await self.reads.list_of_project(INSTANCE, place.plane)
            sources = {(read_namespace(one), one.name) for one in listed}
            shown = await self._projections(place.plane)
            self.guard.record(place.plane, shown - sources, len(shown), now)
        return self.guard.judge(place.plane, named, self.clock.monotonic())

    async def _projections(self, plane: PlaneName) -> frozenset[tuple[str, str]]:
        listed = await self.reads.list_all(plane, INSTANCE, {})
        return frozenset((one.namespace, one.name) for one in listed if _is_shown(one, plane))

    def _has_deleted_owner(self, key: ObjectKey, place: ProjectNamespace, caches: Caches) -> bool:
        """Whether its deployment is being deleted, or does not exist: its removal was requested."""
        entry = caches.lister(place.plane, INSTANCE).entry(place.namespace, key.name)
        owners = () if entry is None else entry.metadata.owners
        view = caches.lister(place.plane, DEPLOYMENT)
        for owner in owners:
            cached = view.entry(place.namespace, owner.name)
            if cached is None or cached.metadata.uid != owner.uid or cached.metadata.is_deleting:
                return True
        return False


def _is_shown(metadata: Metadata, plane: PlaneName) -> bool:
    """Whether a project Instance is a projection that is to stay."""
    is_ours = is_projection(metadata, ProjectNamespace(plane, metadata.namespace))
    return is_ours and not metadata.is_deleting
