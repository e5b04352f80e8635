"""The UIDs of project namespaces: read from the project when needed, remembered while in use.

A hub namespace is called `ns-<UID of the project namespace>`, so nobody can cross planes without
that UID. Namespaces are not watched on projects; one GET per namespace is all this costs. What is
remembered may be out of date (a namespace can be back under its name with another UID), so writes
that rest on it and everything destructive ask again (management.md 4).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from compute_api_types import names
from compute_management_operator.identities import Place
from compute_management_operator.kinds import NAMESPACE
from compute_operator_kit.cache import View
from compute_operator_kit.keys import ObjectKey, PlaneName, Uid
from compute_operator_kit.kube import Kube
from compute_operator_kit.objects import Absent, Metadata

FindKube: TypeAlias = Callable[[PlaneName], Kube]


@dataclass(frozen=True, slots=True)
class _Witness:
    """An object that lived in a namespace when its UID was read."""

    name: str
    uid: Uid


class ProjectNamespaces:
    """What is known, both ways round."""

    def __init__(self, kube_of: FindKube) -> None:
        self._kube_of = kube_of
        self._uids: dict[Place, Uid] = {}
        self._places: dict[Uid, Place] = {}
        self._witnesses: dict[Place, _Witness] = {}

    def __len__(self) -> int:
        return len(self._uids)

    def find_uid(self, place: Place) -> Uid | None:
        return self._uids.get(place)

    def find_place(self, uid: str) -> Place | None:
        return self._places.get(Uid(uid))

    async def read(self, place: Place) -> Uid | Absent:
        """As the project says now; remembered."""
        key = ObjectKey(place.plane, NAMESPACE, "", place.namespace)
        found = await self._kube_of(place.plane).get(key)
        uid = Absent() if isinstance(found, Absent) else found.metadata.uid
        if self._uids.get(place) != uid:
            self.forget(place)
        if not isinstance(uid, Absent):
            self._uids[place] = uid
            self._places[uid] = place
        return uid

    def find_proven(self, inhabitant: Metadata, beside: View) -> Uid | None:
        """The UID of the namespace in which this very object lives, if that is known for sure.

        A namespace goes after all that lives in it, so what lives in one at the same time lives in
        the same: where the object that was read beside the UID is still there, both do.
        """
        if not beside.has_reached(inhabitant.resource_version):
            return None
        return self.find_witnessed(inhabitant.namespace, beside)

    def find_witnessed(self, namespace: str, beside: View) -> Uid | None:
        """The UID, if the object that was read beside it is still there: all that a change which
        is only just being told can know.
        """
        place = Place(beside.plane, namespace)
        witness = self._witnesses.get(place)
        entry = None if witness is None else beside.entry(namespace, witness.name)
        is_there = entry is not None and witness is not None and entry.metadata.uid == witness.uid
        return self._uids.get(place) if is_there else None

    def find_hub_namespace(self, namespace: str, beside: View) -> str:
        """What a deployment that is made now most likely records; "" where nobody can tell.

        The view may lag behind a namespace that is back under its name. Federation, which proves
        the UID for the very deployment before it writes anything on the hub, then records another.
        """
        uid = self.find_witnessed(namespace, beside)
        return "" if uid is None else names.derive_hub_namespace(uid)

    async def read_beside(self, inhabitant: Metadata, plane: PlaneName) -> Uid | Absent:
        """As the project says now, while this object lives there."""
        place = Place(plane, inhabitant.namespace)
        uid = await self.read(place)
        if not isinstance(uid, Absent):
            self._witnesses[place] = _Witness(inhabitant.name, inhabitant.uid)
        return uid

    async def find_or_read(self, place: Place) -> Uid | Absent:
        found = self.find_uid(place)
        return await self.read(place) if found is None else found

    def forget(self, place: Place) -> None:
        self._witnesses.pop(place, None)
        uid = self._uids.pop(place, None)
        if uid is not None:
            del self._places[uid]

    def forget_plane(self, plane: PlaneName) -> None:
        for place in [place for place in self._uids if place.plane == plane]:
            self.forget(place)
