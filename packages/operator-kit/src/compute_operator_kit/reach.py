"""Planes and queues for those who are built before them."""

from __future__ import annotations

from collections.abc import Coroutine

from compute_operator_kit.cache import Caches
from compute_operator_kit.crew import Crew
from compute_operator_kit.errors import InvariantError
from compute_operator_kit.keys import ObjectKey, PlaneName
from compute_operator_kit.kube import Kube, Writer
from compute_operator_kit.manager import Manager
from compute_operator_kit.planes import Planes
from compute_operator_kit.workqueue import Priority


class Reach:
    """Planes and queues, for what a pass cannot do: lookups, and keys no watch leads to.

    Bound once, before any plane is engaged; used earlier it is a bug and raises.
    """

    def __init__(self) -> None:
        self._planes: Planes | None = None
        self._manager: Manager | None = None
        self._crew = Crew("reach")

    def bind(self, planes: Planes, manager: Manager) -> None:
        self._planes, self._manager = planes, manager

    @property
    def planes(self) -> Planes:
        if self._planes is None:
            raise InvariantError("reaching for planes: the operator is not wired yet")
        return self._planes

    @property
    def caches(self) -> Caches:
        return self.planes

    def kube(self, plane: PlaneName, writer: Writer) -> Kube:
        """The plane's client in this writer's name; `PlaneGoneError` where it is not engaged."""
        return self.planes.get(plane).kube.acting_as(writer)

    def wake(self, controller: str, key: ObjectKey, priority: Priority = Priority.FRESH) -> None:
        if self._manager is None:
            raise InvariantError(f"waking {key}: the operator is not wired yet")
        self._manager.wake(controller, key, priority)

    def start(self, work: Coroutine[object, object, None], name: str) -> None:
        """Runs beside passes until it ends or the operator does; it must survive errors of planes,
        anything else is logged as a bug.
        """
        self._crew.start(work, name)

    async def close(self) -> None:
        await self._crew.stop()
