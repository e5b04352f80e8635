"""Controller setups: a controller with the kinds it caches, its plane listeners and its gauges.

```
<folder>/controller.py:  build(dependencies) -> ControllerSetup
wiring.py:               setups ─► cached kinds (merged) ─► Planes ─► Manager
```

Several controllers read the same kind, and a plane has one store per kind: without the merge here,
the indexes of one controller would be missing from the store that another one declared.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass

from compute_operator_kit.cache.indexers import IndexFunction
from compute_operator_kit.client.interface import EVERYTHING
from compute_operator_kit.controller.manager import Workers
from compute_operator_kit.controller.spec import Controller
from compute_operator_kit.core.errors import InvariantError
from compute_operator_kit.core.keys import Kind, Role
from compute_operator_kit.planes.engaged_plane import CachedKind
from compute_operator_kit.planes.registry import PlaneListener


def update_no_gauges() -> None:
    """Default of `ControllerSetup.update_gauges`."""


async def run_nothing() -> None:
    """Default of `ControllerSetup.run_as_leader`."""


@dataclass(frozen=True, slots=True)
class ControllerSetup:
    """One controller and what the process runs beside it; the controller itself is optional."""

    controller: Controller | None = None
    # Kinds with indexes, a selector or a decoder, and kinds that are read without a watch.
    cached_kinds: tuple[CachedKind, ...] = ()
    listeners: tuple[PlaneListener, ...] = ()
    # Sets gauges from caches, every few seconds.
    update_gauges: Callable[[], None] = update_no_gauges
    # Runs beside the reconciles of the leader and is cancelled with them: probes and sweeps.
    run_as_leader: Callable[[], Coroutine[object, object, None]] = run_nothing
    # Workers of its own, in a Manager of its own, for reconciles that wait seconds for an answer
    # and must not delay those of other controllers; None: the operator's workers.
    workers: Workers | None = None


def controllers_of(setups: Iterable[ControllerSetup]) -> tuple[Controller, ...]:
    return tuple(setup.controller for setup in setups if setup.controller is not None)


def merge_cached_kinds(setups: Iterable[ControllerSetup]) -> tuple[CachedKind, ...]:
    """One cache per role and kind, with the indexes of all controllers that read it; a kind that is
    only watched is cached whole, without indexes.
    """
    setups = tuple(setups)
    merged: dict[tuple[Role, Kind], CachedKind] = {}
    for setup in setups:
        for added in setup.cached_kinds:
            place = (added.role, added.kind)
            merged[place] = _merge(merged[place], added) if place in merged else added
    for controller in controllers_of(setups):
        for watch in controller.watches:
            merged.setdefault((watch.role, watch.kind), CachedKind(watch.role, watch.kind))
    return tuple(merged.values())


def _merge(existing: CachedKind, added: CachedKind) -> CachedKind:
    if existing.selector != EVERYTHING or added.selector != EVERYTHING:
        # One controller would see objects that it excluded, or miss objects that it needs.
        raise InvariantError(f"caching {added.kind.kind}: two readers, and one selects")
    if existing.decoder is not added.decoder:
        # The index functions of one would miss members that only the other's decoder reads.
        raise InvariantError(f"caching {added.kind.kind}: two readers with different outlines")
    is_always_watched = existing.on_demand is None or added.on_demand is None
    if not is_always_watched and existing.on_demand != added.on_demand:
        # One controller would wait for a kind that only the other's triggers open.
        raise InvariantError(f"caching {added.kind.kind}: two readers with different triggers")
    return CachedKind(
        role=existing.role,
        kind=existing.kind,
        indexes=_merge_indexes(existing, added),
        is_optional=existing.is_optional and added.is_optional,
        decoder=existing.decoder,
        keeps_bodies=existing.keeps_bodies or added.keeps_bodies,
        on_demand=None if is_always_watched else existing.on_demand,
    )


def _merge_indexes(existing: CachedKind, added: CachedKind) -> Mapping[str, IndexFunction]:
    for name in existing.indexes.keys() & added.indexes.keys():
        if existing.indexes[name] is not added.indexes[name]:
            raise InvariantError(f"caching {added.kind.kind}: two indexes are called {name!r}")
    return {**existing.indexes, **added.indexes}
