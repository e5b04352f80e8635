"""The UIDs of project namespaces: read from the project when needed, remembered while in use.

A hub namespace is called `ns-<UID of the project namespace>`, so nobody can cross planes without
that UID. Namespaces are not watched on projects; one GET per namespace is all this costs. What is
remembered may be out of date (a namespace can be back under its name with another UID), so writes
that rest on it and everything destructive ask again (management.md 4).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from compute_management_operator.identities import Place
from compute_management_operator.kinds import NAMESPACE
from compute_operator_kit.keys import ObjectKey, PlaneName, Uid
from compute_operator_kit.kube import Kube
from compute_operator_kit.objects import Absent

FindKube: TypeAlias = Callable[[PlaneName], Kube]


class ProjectNamespaces:
    """What is known, both ways round."""

    def __init__(self, kube_of: FindKube) -> None:
        self._kube_of = kube_of
        self._uids: dict[Place, Uid] = {}
        self._places: dict[Uid, Place] = {}
        self._proven: dict[Place, set[Uid]] = {}

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

    async def prove(self, place: Place, inhabitant: Uid) -> Uid | Absent:
        """The UID of the namespace in which this very object lives, asked for once per object.

        An object never outlives its namespace: once read beside it, the UID holds for its life.
        """
        found = self.find_uid(place)
        if found is not None and inhabitant in self._proven.get(place, ()):
            return found
        return await self.read_beside(place, inhabitant)

    async def read_beside(self, place: Place, inhabitant: Uid) -> Uid | Absent:
        """As the project says now, while this object lives there."""
        uid = await self.read(place)
        if not isinstance(uid, Absent):
            self._proven.setdefault(place, set()).add(inhabitant)
        return uid

    def disown(self, place: Place, inhabitant: Uid) -> None:
        """The object is gone: what was proven for it is no longer kept."""
        self._proven.get(place, set()).discard(inhabitant)

    async def find_or_read(self, place: Place) -> Uid | Absent:
        found = self.find_uid(place)
        return await self.read(place) if found is None else found

    def forget(self, place: Place) -> None:
        self._proven.pop(place, None)
        uid = self._uids.pop(place, None)
        if uid is not None:
            del self._places[uid]

    def forget_plane(self, plane: PlaneName) -> None:
        for place in [place for place in self._uids if place.plane == plane]:
            self.forget(place)
