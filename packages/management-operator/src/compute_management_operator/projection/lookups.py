"""Asks what no cache holds before a pass on a hub Instance: the UID of the project namespace, and,
when a source is gone and nobody saw it go, how many more there are.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from compute_api_types import names
from compute_management_operator import hub_indexes
from compute_management_operator.fresh_reads import FreshReads
from compute_management_operator.identities import Place, read_namespace, read_place
from compute_management_operator.kinds import DEPLOYMENT, INSTANCE, NAMESPACE
from compute_management_operator.plane_names import HUB
from compute_management_operator.project_namespaces import ProjectNamespaces
from compute_management_operator.projection.observe import Fresh, is_engaged
from compute_management_operator.projection.plan.removing import is_projection
from compute_operator_kit.cache import Caches, Change
from compute_operator_kit.clock import Clock
from compute_operator_kit.keys import ObjectKey, PlaneName, Uid
from compute_operator_kit.mass_delete import Allowed, MassDeleteGuard, Ruling
from compute_operator_kit.objects import Absent, Metadata, Unreadable


@dataclass(frozen=True, slots=True)
class Lookups:
    """For all passes of the controller."""

    reads: FreshReads
    namespaces: ProjectNamespaces
    guard: MassDeleteGuard
    clock: Clock
    witnessed: dict[ObjectKey, None] = field(default_factory=dict)

    def witness(self, change: Change) -> None:
        """Notes that a hub Instance was seen to go; one that a list merely lacked was not."""
        if change.after is None and not change.is_inferred:
            self.witnessed[change.key] = None
        else:
            self.witnessed.pop(change.key, None)

    async def look_up(self, key: ObjectKey, caches: Caches) -> Fresh | None:
        """None where there is nothing to look at."""
        found = caches.view(HUB, INSTANCE).get(key.namespace, key.name)
        if isinstance(found, Unreadable):
            return None
        if isinstance(found, Absent):
            return await self._for_gone(key, caches)
        place = read_place(found.metadata)
        if place is None or not is_engaged(caches, place.plane):
            return Fresh(place)
        return Fresh(place, await self._prove(place, key))

    async def _prove(self, place: Place, key: ObjectKey) -> Uid | Absent:
        """The UID, read again where the one we remember would condemn the Instance."""
        uid = await self.namespaces.find_or_read(place)
        if isinstance(uid, str) and names.derive_hub_namespace(uid) == key.namespace:
            return uid
        return await self.namespaces.read(place)

    # --- the source is gone -----------------------------------------------------------------------

    async def _for_gone(self, key: ObjectKey, caches: Caches) -> Fresh | None:
        place = self._find_place(key, caches)
        if place is None or not is_engaged(caches, place.plane):
            self.witnessed.pop(key, None)
            return None
        view = caches.view(place.plane, INSTANCE)
        if isinstance(view.get(place.namespace, key.name), Absent | Unreadable):
            self._forget_unused(place, caches)
            self.witnessed.pop(key, None)
            return None
        uid = await self.namespaces.read(place)
        return Fresh(place, uid, await self._rule(key, place, caches))

    def _find_place(self, key: ObjectKey, caches: Caches) -> Place | None:
        known = self.namespaces.find_place(names.parse_hub_namespace(key.namespace) or "")
        if known is not None:
            return known
        entry = caches.view(HUB, NAMESPACE).entry("", key.namespace)
        return None if entry is None else read_place(entry.metadata)

    async def _rule(self, key: ObjectKey, place: Place, caches: Caches) -> Ruling:
        """Seen to go, or its deployment goes too: nobody inferred anything."""
        if key in self.witnessed or self._has_going_owner(key, place, caches):
            return Allowed()
        named, now = (place.namespace, key.name), self.clock.monotonic()
        if self.guard.needs_look(place.plane, named, now):
            found = await self.reads.list_of_project(INSTANCE, place.plane)
            sources = {(read_namespace(one), one.name) for one in found}
            shown = await self._projections(place.plane)
            self.guard.record(place.plane, shown - sources, len(shown), now)
        return self.guard.judge(place.plane, named, self.clock.monotonic())

    async def _projections(self, plane: PlaneName) -> frozenset[tuple[str, str]]:
        found = await self.reads.list_all(plane, INSTANCE, {})
        return frozenset((one.namespace, one.name) for one in found if _is_shown(one, plane))

    def _has_going_owner(self, key: ObjectKey, place: Place, caches: Caches) -> bool:
        """Its deployment is being deleted, or gone: a root asked for this removal."""
        entry = caches.view(place.plane, INSTANCE).entry(place.namespace, key.name)
        owners = () if entry is None else entry.metadata.owners
        view = caches.view(place.plane, DEPLOYMENT)
        for owner in owners:
            found = view.entry(place.namespace, owner.name)
            if found is None or found.metadata.uid != owner.uid or found.metadata.is_deleting:
                return True
        return False

    def _forget_unused(self, place: Place, caches: Caches) -> None:
        for kind in (DEPLOYMENT, INSTANCE):
            view = caches.view(place.plane, kind)
            if view.entries_by_index(hub_indexes.NAMESPACE_OF, place.namespace):
                return
        self.namespaces.forget(place)


def _is_shown(metadata: Metadata, plane: PlaneName) -> bool:
    """Whether a project Instance is a projection that is to stay."""
    is_ours = is_projection(metadata, Place(plane, metadata.namespace))
    return is_ours and not metadata.is_deleting
