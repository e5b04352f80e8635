"""What a controller folder hands to `wiring.py`, and what it is given to make it.

```
folder/controller.py:  build(tools: Tools) -> Part
wiring.py:             Parts ─► caches (merged) ─► Planes ─► Manager
```

A folder says which kinds it reads, with which indexes; several folders read the same kind, and the
store of a kind exists once, so the wishes are merged here. A folder is built before the planes and
the manager exist: `Reach` is what it may do with them later. Nothing here starts anything.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field

from compute_management_operator.settings import ManagementSettings
from compute_operator_kit.cache import Caches, Change, IndexFunction
from compute_operator_kit.clock import Clock, Random
from compute_operator_kit.controller import Controller
from compute_operator_kit.crew import Crew
from compute_operator_kit.errors import InvariantError
from compute_operator_kit.keys import Kind, ObjectKey, PlaneName, Role
from compute_operator_kit.kube import EVERYTHING, Kube, Writer
from compute_operator_kit.manager import Manager
from compute_operator_kit.measures import Measures, NoMeasures
from compute_operator_kit.planes import Listener, Planes, Watched


class Reach:
    """Planes and queues, for what a pass cannot do: lookups, and keys no watch leads to.

    Bound once, before any plane is engaged; used earlier it is a bug and raises.
    """

    def __init__(self) -> None:
        self._planes: Planes | None = None
        self._manager: Manager | None = None
        self._crew = Crew("management")

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

    def wake(self, controller: str, key: ObjectKey) -> None:
        if self._manager is None:
            raise InvariantError(f"waking {key}: the operator is not wired yet")
        self._manager.wake(controller, key)

    def start(self, work: Coroutine[object, object, None], name: str) -> None:
        """Runs beside passes until it ends or the operator does; it must end by itself on errors
        of planes, anything else is logged as a bug.
        """
        self._crew.start(work, name)

    async def close(self) -> None:
        await self._crew.stop()


@dataclass(frozen=True, slots=True)
class Tools:
    """What a folder is built with."""

    settings: ManagementSettings
    clock: Clock
    random: Random
    operator: ObjectKey  # our own Deployment at home: where events about ourselves go
    measures: Measures = field(default_factory=NoMeasures)
    reach: Reach = field(default_factory=Reach)


def ignore_change(_: Change) -> None:
    """For a listener that wants to know about planes, not about objects."""


def report_nothing() -> None:
    """For a folder without gauges of its own."""


@dataclass(frozen=True, slots=True)
class Part:
    """One controller and what it needs around it; without one, only what stands around."""

    controller: Controller | None = None
    watched: tuple[Watched, ...] = ()
    listeners: tuple[Listener, ...] = ()
    report: Callable[[], None] = report_nothing  # sets gauges from caches, every few seconds


def controllers_of(parts: Iterable[Part]) -> tuple[Controller, ...]:
    return tuple(part.controller for part in parts if part.controller is not None)


def merge_watched(parts: Iterable[Part]) -> tuple[Watched, ...]:
    """One cache per role and kind, with the indexes of everybody who reads it."""
    merged: dict[tuple[Role, Kind], Watched] = {}
    for part in parts:
        for wish in part.watched:
            place = (wish.role, wish.kind)
            merged[place] = _merge(merged[place], wish) if place in merged else wish
    return tuple(merged.values())


def _merge(found: Watched, wish: Watched) -> Watched:
    if found.selector != EVERYTHING or wish.selector != EVERYTHING:
        # One would see objects the other has ruled out, or miss some it counts on.
        raise InvariantError(f"caching {wish.kind.kind}: two readers, and one selects")
    return Watched(
        role=found.role,
        kind=found.kind,
        indexes=_merge_indexes(found, wish),
        is_optional=found.is_optional and wish.is_optional,
    )


def _merge_indexes(found: Watched, wish: Watched) -> Mapping[str, IndexFunction]:
    for name in found.indexes.keys() & wish.indexes.keys():
        if found.indexes[name] is not wish.indexes[name]:
            raise InvariantError(f"caching {wish.kind.kind}: two indexes are called {name!r}")
    return {**found.indexes, **wish.indexes}
