"""Asks what no cache holds before a pass on a deployment: only what that pass will need.

```
the deployment lives      the UID of its namespace, unless nothing rests on it or it is proven;
                          a left-over binding before its copy is made, where one may be
is going                  its namespace and the hub namespace, fresh: what is deleted rests on them
is gone, a copy is left   the same, and how many more there are of that kind
```
"""

from __future__ import annotations

from dataclasses import dataclass

from compute_api_types import labels, names
from compute_management_operator import hub_indexes
from compute_management_operator.federation.leftovers import Leftovers
from compute_management_operator.federation.observe import (
    Deployment,
    Fresh,
    derive_hub_name,
    find_copies,
    find_policies,
    read_deployment,
    read_recorded,
)
from compute_management_operator.fresh_reads import FreshReads
from compute_management_operator.identities import Place, read_namespace
from compute_management_operator.kinds import BINDING, DEPLOYMENT, INSTANCE, NAMESPACE
from compute_management_operator.plane_names import HUB
from compute_management_operator.project_namespaces import ProjectNamespaces
from compute_operator_kit.cache import Caches
from compute_operator_kit.clock import Clock
from compute_operator_kit.keys import ObjectKey, Uid
from compute_operator_kit.mass_delete import MassDeleteGuard, Ruling
from compute_operator_kit.objects import Absent, Metadata, Snapshot, Unreadable


@dataclass(frozen=True, slots=True)
class Lookups:
    """For all passes of the controller."""

    reads: FreshReads
    namespaces: ProjectNamespaces
    guard: MassDeleteGuard
    leftovers: Leftovers
    clock: Clock

    async def look_up(self, key: ObjectKey, caches: Caches) -> Fresh | None:
        """None where there is nothing to look at."""
        found = caches.view(key.plane, DEPLOYMENT).get(key.namespace, key.name)
        if isinstance(found, Unreadable):
            return None
        if isinstance(found, Absent):
            return await self._for_orphan(key, caches)
        if not found.metadata.is_deleting:
            return await self._for_living(read_deployment(found), caches)
        if labels.FEDERATION_FINALIZER not in found.metadata.finalizers:
            return None
        return await self._for_going(read_deployment(found))

    # --- the deployment lives -------------------------------------------------------------------

    async def _for_living(self, deployment: Deployment, caches: Caches) -> Fresh:
        if not names.is_routable_city(deployment.city_code):
            return Fresh()
        place = Place(deployment.key.plane, deployment.key.namespace)
        known = self.namespaces.find_uid(place)
        if known is not None and self._is_delivered(known, deployment, caches):
            return Fresh(namespace=known)
        # What is recorded, or written on the hub, must be so for this very deployment.
        metadata, beside = deployment.metadata, caches.view(place.plane, DEPLOYMENT)
        proven = self.namespaces.find_proven(metadata, beside)
        uid = proven or await self.namespaces.read_beside(metadata, place.plane)
        return await self._fresh(uid, deployment, caches)

    def _is_delivered(self, uid: Uid, deployment: Deployment, caches: Caches) -> bool:
        hub_name = names.derive_hub_namespace(uid)
        return _is_recorded(deployment, hub_name) and not self._lacks_copy(uid, deployment, caches)

    def _lacks_copy(self, uid: Uid, deployment: Deployment, caches: Caches) -> bool:
        hub_name = names.derive_hub_namespace(uid)
        return caches.view(HUB, DEPLOYMENT).entry(hub_name, deployment.key.name) is None

    async def _fresh(self, uid: Uid | Absent, deployment: Deployment, caches: Caches) -> Fresh:
        if isinstance(uid, Absent):
            return Fresh(namespace=uid)
        hub_name = names.derive_hub_namespace(uid)
        copies, name = caches.view(HUB, DEPLOYMENT), deployment.key.name
        is_left = (
            self._may_create(hub_name, deployment, caches)
            and self.leftovers.may_be(hub_name, name, copies.listing)
            and await self._has_binding(hub_name, name)
        )
        return Fresh(namespace=uid, has_left_over_binding=is_left)

    def _may_create(self, hub_name: str, deployment: Deployment, caches: Caches) -> bool:
        if not _is_recorded(deployment, hub_name):
            return False  # this pass ends with recording it
        if caches.view(HUB, DEPLOYMENT).entry(hub_name, deployment.key.name) is not None:
            return False
        codes = {policy.code for policy in find_policies(caches, hub_name)}
        return deployment.city_code in codes

    async def _has_binding(self, hub_name: str, name: str) -> bool:
        key = ObjectKey(HUB, BINDING, hub_name, f"{name}-{DEPLOYMENT.kind.lower()}")
        return isinstance(await self.reads.get(key), Snapshot)

    # --- the deployment goes --------------------------------------------------------------------

    async def _for_going(self, deployment: Deployment) -> Fresh:
        place = Place(deployment.key.plane, deployment.key.namespace)
        uid = await self.namespaces.read(place)
        hub_name = derive_hub_name(deployment, uid)
        return Fresh(namespace=uid, hub_namespace=await self._hub_namespace(hub_name))

    async def _hub_namespace(self, hub_name: str) -> Metadata | Absent:
        if not hub_name:
            return Absent()
        found = await self.reads.get(ObjectKey(HUB, NAMESPACE, "", hub_name))
        return found if isinstance(found, Absent) else found.metadata

    # --- the deployment is gone -----------------------------------------------------------------

    async def _for_orphan(self, key: ObjectKey, caches: Caches) -> Fresh | None:
        place = Place(key.plane, key.namespace)
        if not self._has_copies(key, place, caches):
            self._forget_unused(place, caches)
            return None
        uid = await self.namespaces.read(place)
        hub_name = derive_hub_name(Absent(), uid)
        hub_namespace = await self._hub_namespace(hub_name)
        if caches.view(HUB, DEPLOYMENT).entry(hub_name, key.name) is None:
            return Fresh(namespace=uid, hub_namespace=hub_namespace)
        ruling = await self._rule(key)
        return Fresh(namespace=uid, hub_namespace=hub_namespace, ruling=ruling)

    def _has_copies(self, key: ObjectKey, place: Place, caches: Caches) -> bool:
        if find_copies(caches, key):
            return True
        uid = self.namespaces.find_uid(place)
        if uid is None:
            return False
        hub_name = names.derive_hub_namespace(uid)
        return caches.view(HUB, DEPLOYMENT).entry(hub_name, key.name) is not None

    async def _rule(self, key: ObjectKey) -> Ruling:
        """How many copies of the project have no deployment, by fresh lists of both sides."""
        named, now = (key.namespace, key.name), self.clock.monotonic()
        if self.guard.needs_look(key.plane, named, now):
            found = await self.reads.list_of_project(DEPLOYMENT, key.plane)
            copies = {(read_namespace(one), one.name) for one in found if not one.is_deleting}
            living = await self.reads.list_all(key.plane, DEPLOYMENT, {})
            missing = copies - {(one.namespace, one.name) for one in living}
            self.guard.record(key.plane, frozenset(missing), len(copies), now)
        return self.guard.judge(key.plane, named, self.clock.monotonic())

    def _forget_unused(self, place: Place, caches: Caches) -> None:
        """The last deployment has left the cache, and no projection needs the UID either."""
        for kind in (DEPLOYMENT, INSTANCE):
            view = caches.view(place.plane, kind)
            if view.entries_by_index(hub_indexes.NAMESPACE_OF, place.namespace):
                return
        self.namespaces.forget(place)


def _is_recorded(deployment: Deployment, hub_name: str) -> bool:
    """Whether finalizer and place are stored: nothing is written on the hub before (step 5)."""
    has_finalizer = labels.FEDERATION_FINALIZER in deployment.metadata.finalizers
    return has_finalizer and read_recorded(deployment) == hub_name
