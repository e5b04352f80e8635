"""Live reads before the reconcile of a deployment, of facts that no cache holds.

```
the deployment exists     the UID of its namespace, unless it is not needed or confirmed;
                          a left-over binding before its copy is created, where there may be one
is being deleted          its namespace and the hub namespace: the deletion depends on both
is gone, a copy is left   the same, and the number of such copies
```

Each read costs a request per reconcile, so only those are made that the reconcile will need.
"""

from __future__ import annotations

from dataclasses import dataclass

from compute_api_types import labels, names
from compute_management_operator.hub.api_reader import ApiReader
from compute_management_operator.hub.federation.leftover_bindings import LeftoverBindings
from compute_management_operator.hub.federation.observe import (
    FederationLiveFacts,
    ProjectDeployment,
    derive_hub_name,
    find_copies,
    find_policies,
    read_recorded,
    read_without_status,
)
from compute_management_operator.hub.identity import ProjectNamespace, read_namespace
from compute_management_operator.hub.namespace_uids import NamespaceUids
from compute_management_operator.planes import BINDING, DEPLOYMENT, HUB, NAMESPACE
from compute_operator_kit.cache.store import Caches
from compute_operator_kit.controller.mass_delete import MassDeleteGuard, Ruling
from compute_operator_kit.core.clock import Clock
from compute_operator_kit.core.keys import ObjectKey, Uid
from compute_operator_kit.core.objects import Absent, Metadata, Snapshot, Unreadable


@dataclass(frozen=True, slots=True)
class FederationLiveReads:
    """The live reads of all reconciles of the controller."""

    reads: ApiReader
    namespaces: NamespaceUids
    guard: MassDeleteGuard
    leftovers: LeftoverBindings
    clock: Clock

    async def read(self, key: ObjectKey, caches: Caches) -> FederationLiveFacts | None:
        """None where there is nothing to reconcile."""
        existing = caches.lister(key.plane, DEPLOYMENT).get(key.namespace, key.name)
        if isinstance(existing, Unreadable):
            return None
        if isinstance(existing, Absent):
            return await self._for_orphan(key, caches)
        if not existing.metadata.is_deleting:
            return await self._for_existing(read_without_status(existing), caches)
        finalizers = existing.metadata.finalizers
        if labels.FEDERATION_FINALIZER not in finalizers:
            # One of an older operator is removed without a read of the hub.
            is_retired = labels.REFERENCED_DATA_FINALIZER in finalizers
            return FederationLiveFacts() if is_retired else None
        return await self._for_deleting(read_without_status(existing))

    # --- the deployment exists ------------------------------------------------------------------

    async def _for_existing(
        self, deployment: ProjectDeployment, caches: Caches
    ) -> FederationLiveFacts:
        if not names.is_routable_city(deployment.city_code):
            return FederationLiveFacts()
        place = ProjectNamespace(deployment.key.plane, deployment.key.namespace)
        known = self.namespaces.find_uid(place)
        if known is not None and self._is_delivered(known, deployment, caches):
            return FederationLiveFacts(namespace=known)
        # The UID that is recorded, or written on the hub, must be that of this deployment.
        metadata, deployments = deployment.metadata, caches.lister(place.plane, DEPLOYMENT)
        confirmed = self.namespaces.confirmed(metadata, deployments)
        uid = confirmed or await self.namespaces.read_for(metadata, place.plane)
        return await self._read_binding(uid, deployment, caches)

    def _is_delivered(self, uid: Uid, deployment: ProjectDeployment, caches: Caches) -> bool:
        hub_name = names.derive_hub_namespace(uid)
        return _is_recorded(deployment, hub_name) and not self._lacks_copy(uid, deployment, caches)

    def _lacks_copy(self, uid: Uid, deployment: ProjectDeployment, caches: Caches) -> bool:
        hub_name = names.derive_hub_namespace(uid)
        return caches.lister(HUB, DEPLOYMENT).entry(hub_name, deployment.key.name) is None

    async def _read_binding(
        self, uid: Uid | Absent, deployment: ProjectDeployment, caches: Caches
    ) -> FederationLiveFacts:
        if isinstance(uid, Absent):
            return FederationLiveFacts(namespace=uid)
        hub_name = names.derive_hub_namespace(uid)
        copies, name = caches.lister(HUB, DEPLOYMENT), deployment.key.name
        is_left = (
            self._may_create(hub_name, deployment, caches)
            and self.leftovers.may_be(hub_name, name, copies.listing)
            and await self._has_binding(hub_name, name)
        )
        return FederationLiveFacts(namespace=uid, has_left_over_binding=is_left)

    def _may_create(self, hub_name: str, deployment: ProjectDeployment, caches: Caches) -> bool:
        if not _is_recorded(deployment, hub_name):
            return False  # this reconcile only records it
        if caches.lister(HUB, DEPLOYMENT).entry(hub_name, deployment.key.name) is not None:
            return False
        codes = {policy.code for policy in find_policies(caches, hub_name)}
        return deployment.city_code in codes

    async def _has_binding(self, hub_name: str, name: str) -> bool:
        key = ObjectKey(HUB, BINDING, hub_name, f"{name}-{DEPLOYMENT.kind.lower()}")
        return isinstance(await self.reads.get(key), Snapshot)

    # --- the deployment is being deleted --------------------------------------------------------

    async def _for_deleting(self, deployment: ProjectDeployment) -> FederationLiveFacts:
        place = ProjectNamespace(deployment.key.plane, deployment.key.namespace)
        uid = await self.namespaces.read(place)
        hub_name = derive_hub_name(deployment, uid)
        return FederationLiveFacts(namespace=uid, hub_namespace=await self._hub_namespace(hub_name))

    async def _hub_namespace(self, hub_name: str) -> Metadata | Absent:
        if not hub_name:
            return Absent()
        existing = await self.reads.get(ObjectKey(HUB, NAMESPACE, "", hub_name))
        return existing if isinstance(existing, Absent) else existing.metadata

    # --- the deployment is gone -----------------------------------------------------------------

    async def _for_orphan(self, key: ObjectKey, caches: Caches) -> FederationLiveFacts | None:
        place = ProjectNamespace(key.plane, key.namespace)
        if not self._has_copies(key, place, caches):
            self.namespaces.forget_unused(place, caches)
            return None
        uid = await self.namespaces.read(place)
        hub_name = derive_hub_name(Absent(), uid)
        hub_namespace = await self._hub_namespace(hub_name)
        if caches.lister(HUB, DEPLOYMENT).entry(hub_name, key.name) is None:
            return FederationLiveFacts(namespace=uid, hub_namespace=hub_namespace)
        ruling = await self._rule(key)
        return FederationLiveFacts(namespace=uid, hub_namespace=hub_namespace, ruling=ruling)

    def _has_copies(self, key: ObjectKey, place: ProjectNamespace, caches: Caches) -> bool:
        if find_copies(caches, key):
            return True
        uid = self.namespaces.find_uid(place)
        if uid is None:
            return False
        hub_name = names.derive_hub_namespace(uid)
        return caches.lister(HUB, DEPLOYMENT).entry(hub_name, key.name) is not None

    async def _rule(self, key: ObjectKey) -> Ruling:
        """The mass-delete guard's ruling, by live lists of the copies and of the deployments."""
        named, now = (key.namespace, key.name), self.clock.monotonic()
        if self.guard.needs_look(key.plane, named, now):
            listed = await self.reads.list_of_project(DEPLOYMENT, key.plane)
            copies = {(read_namespace(one), one.name) for one in listed if not one.is_deleting}
            existing = await self.reads.list_all(key.plane, DEPLOYMENT, {})
            missing = copies - {(one.namespace, one.name) for one in existing}
            self.guard.record(key.plane, frozenset(missing), len(copies), now)
        return self.guard.judge(key.plane, named, self.clock.monotonic())


def _is_recorded(deployment: ProjectDeployment, hub_name: str) -> bool:
    """Whether finalizer and hub namespace are stored; the hub is written only then (step 5)."""
    has_finalizer = labels.FEDERATION_FINALIZER in deployment.metadata.finalizers
    return has_finalizer and read_recorded(deployment) == hub_name
