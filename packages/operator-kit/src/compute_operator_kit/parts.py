"""What a controller folder hands to its operator's `wiring.py`.

```
folder/controller.py:  build(tools) -> Part
wiring.py:             Parts ─► caches (merged) ─► Planes ─► Manager
```

A folder says which kinds it reads, with which indexes; several folders read the same kind, and the
store of a kind exists once, so the wishes are merged here. Nothing here starts anything.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass

from compute_operator_kit.cache import Change
from compute_operator_kit.controller import Controller
from compute_operator_kit.errors import InvariantError
from compute_operator_kit.indexing import IndexFunction
from compute_operator_kit.keys import Kind, Role
from compute_operator_kit.kube import EVERYTHING
from compute_operator_kit.planes import Listener, Watched


def ignore_change(_: Change) -> None:
    """For a listener that wants to know about planes, not about objects."""


def report_nothing() -> None:
    """For a folder without gauges of its own."""


async def attend_nothing() -> None:
    """For a folder without work of its own beside passes."""


@dataclass(frozen=True, slots=True)
class Part:
    """One controller and what it needs around it; without one, only what stands around."""

    controller: Controller | None = None
    watched: tuple[Watched, ...] = ()
    listeners: tuple[Listener, ...] = ()
    report: Callable[[], None] = report_nothing  # sets gauges from caches, every few seconds
    # Runs beside the passes of the leader and is cancelled with them: workers and sweeps.
    attend: Callable[[], Coroutine[object, object, None]] = attend_nothing


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
    if found.outline is not wish.outline:
        # The index functions of one would miss what only the other's outline has.
        raise InvariantError(f"caching {wish.kind.kind}: two readers with different outlines")
    return Watched(
        role=found.role,
        kind=found.kind,
        indexes=_merge_indexes(found, wish),
        is_optional=found.is_optional and wish.is_optional,
        outline=found.outline,
        keeps_bodies=found.keeps_bodies or wish.keeps_bodies,
    )


def _merge_indexes(found: Watched, wish: Watched) -> Mapping[str, IndexFunction]:
    for name in found.indexes.keys() & wish.indexes.keys():
        if found.indexes[name] is not wish.indexes[name]:
            raise InvariantError(f"caching {wish.kind.kind}: two indexes are called {name!r}")
    return {**found.indexes, **wish.indexes}
