"""The operator context: planes and queues for components that are built before them.

Controllers are built first, because their setups name the kinds that planes cache; used before
`bind`, the context raises instead of failing later with None.
"""

from __future__ import annotations

from collections.abc import Coroutine

from compute_operator_kit.cache.lister import Caches
from compute_operator_kit.client.interface import FieldOwner, KubeClient
from compute_operator_kit.controller.manager import Manager
from compute_operator_kit.controller.workqueue import Priority
from compute_operator_kit.core.errors import InvariantError
from compute_operator_kit.core.keys import ObjectKey, PlaneName
from compute_operator_kit.core.tasks import SupervisedTasks
from compute_operator_kit.planes.registry import Planes


class OperatorContext:
    """Planes and queues for lookups outside a reconcile and for keys without a watch event.

    Bound once, before any plane is engaged.
    """

    def __init__(self) -> None:
        self._planes: Planes | None = None
        self._managers: tuple[Manager, ...] = ()
        self._tasks = SupervisedTasks("reach")

    def bind(self, planes: Planes, *managers: Manager) -> None:
        """Each controller is in one of the managers."""
        self._planes, self._managers = planes, managers

    @property
    def planes(self) -> Planes:
        if self._planes is None:
            raise InvariantError("reaching for planes: the operator is not wired yet")
        return self._planes

    @property
    def caches(self) -> Caches:
        return self.planes

    def kube(self, plane: PlaneName, writer: FieldOwner) -> KubeClient:
        """The plane's client under this field owner; `PlaneGoneError` if it is not engaged."""
        return self.planes.get(plane).kube.as_owner(writer)

    def enqueue(self, controller: str, key: ObjectKey, priority: Priority = Priority.HIGH) -> None:
        if not self._managers:
            raise InvariantError(f"waking {key}: the operator is not wired yet")
        first, *others = self._managers
        manager = next((each for each in others if each.has_controller(controller)), first)
        manager.enqueue(controller, key, priority)

    def start(self, work: Coroutine[object, object, None], name: str) -> None:
        """Runs a task beside the reconciles until it or the operator ends. It must handle errors of
        planes itself; any other error is logged as a bug.
        """
        self._tasks.start(work, name)

    async def close(self) -> None:
        await self._tasks.stop()
