"""UIDs of project namespaces: read from the project when needed, remembered while in use.

A hub namespace is named `ns-<UID of the project namespace>`, so every access across planes needs
the UID. Namespaces of projects are not watched; one GET per namespace replaces the watch. A
remembered UID may be out of date (a namespace can be recreated under its name with another UID), so
writes that depend on it and every deletion read it again (management.md 4).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from compute_api_types import names
from compute_management_operator.hub import indexes
from compute_management_operator.hub.identity import ProjectNamespace
from compute_management_operator.planes import DEPLOYMENT, INSTANCE, NAMESPACE
from compute_operator_kit.cache.store import Caches, Lister
from compute_operator_kit.client.interface import KubeClient
from compute_operator_kit.core.keys import ObjectKey, PlaneName, Uid
from compute_operator_kit.core.objects import Absent, Metadata

FindKube: TypeAlias = Callable[[PlaneName], KubeClient]


@dataclass(frozen=True, slots=True)
class _Anchor:
    """An object that was in a namespace when the UID of the namespace was read."""

    name: str
    uid: Uid


class NamespaceUids:
    """Known UIDs by namespace, and namespaces by UID."""

    def __init__(self, kube_of: FindKube) -> None:
        self._kube_of = kube_of
        self._uids: dict[ProjectNamespace, Uid] = {}
        self._places: dict[Uid, ProjectNamespace] = {}
        self._anchors: dict[ProjectNamespace, _Anchor] = {}

    def __len__(self) -> int:
        return len(self._uids)

    def find_uid(self, place: ProjectNamespace) -> Uid | None:
        return self._uids.get(place)

    def find_namespace(self, uid: str) -> ProjectNamespace | None:
        return self._places.get(Uid(uid))

    async def read(self, place: ProjectNamespace) -> Uid | Absent:
        """The UID by a live read; remembered."""
        key = ObjectKey(place.plane, NAMESPACE, "", place.namespace)
        namespace = await self._kube_of(place.plane).get(key)
        uid = Absent() if isinstance(namespace, Absent) else namespace.metadata.uid
        if self._uids.get(place) != uid:
            self.forget(place)
        if not isinstance(uid, Absent):
            self._uids[place] = uid
            self._places[uid] = place
        return uid

    def confirmed(self, metadata: Metadata, deployments: Lister) -> Uid | None:
        """The UID of the namespace that contains this object, if it is certain.

        A namespace is deleted after all objects in it, so two objects that exist at the same time
        are in the same namespace: while the anchor exists, its UID holds for this object, too.
        """
        if not deployments.has_reached(metadata.resource_version):
            return None
        return self.cached_if_anchored(metadata.namespace, deployments)

    def cached_if_anchored(self, namespace: str, deployments: Lister) -> Uid | None:
        """The UID, if its anchor is still cached. A mapping function, which runs while a change is
        stored, can know no more.
        """
        place = ProjectNamespace(deployments.plane, namespace)
        anchor = self._anchors.get(place)
        entry = None if anchor is None else deployments.entry(namespace, anchor.name)
        is_there = entry is not None and anchor is not None and entry.metadata.uid == anchor.uid
        return self._uids.get(place) if is_there else None

    def find_hub_namespace(self, namespace: str, deployments: Lister) -> str:
        """What a deployment that is created now most likely records; "" where it is unknown.

        The cache may lag behind a namespace that was recreated. Federation confirms the UID for
        the deployment itself before it writes to the hub, and then records another.
        """
        uid = self.cached_if_anchored(namespace, deployments)
        return "" if uid is None else names.derive_hub_namespace(uid)

    async def read_for(self, metadata: Metadata, plane: PlaneName) -> Uid | Absent:
        """The UID by a live read, with this object of the namespace as its anchor."""
        place = ProjectNamespace(plane, metadata.namespace)
        uid = await self.read(place)
        if not isinstance(uid, Absent):
            self._anchors[place] = _Anchor(metadata.name, metadata.uid)
        return uid

    async def find_or_read(self, place: ProjectNamespace) -> Uid | Absent:
        uid = self.find_uid(place)
        return await self.read(place) if uid is None else uid

    def forget_unused(self, place: ProjectNamespace, caches: Caches) -> None:
        """Forgets a namespace of which neither deployments nor Instances are cached."""
        for kind in (DEPLOYMENT, INSTANCE):
            view = caches.lister(place.plane, kind)
            if view.entries_by_index(indexes.NAMESPACE_OF, place.namespace):
                return
        self.forget(place)

    def forget(self, place: ProjectNamespace) -> None:
        self._anchors.pop(place, None)
        uid = self._uids.pop(place, None)
        if uid is not None:
            del self._places[uid]

    def forget_plane(self, plane: PlaneName) -> None:
        for place in [place for place in self._uids if place.plane == plane]:
            self.forget(place)
