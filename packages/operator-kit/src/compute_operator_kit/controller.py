"""What a controller is, as a value: what wakes it, what one pass does, and how patient it is.

```
watches   (plane role, kind) ─► mapping function ─► keys to look at
reconcile (key) ─► Result: when to look again
```

Mapping functions are pure: they see the header and the index values of an object before and after a
change, read caches, and return keys. They never ask a plane. A pass never learns what woke it.
Running all this is `manager.py`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, Protocol

from compute_operator_kit.backoff import RetryPolicy
from compute_operator_kit.cache import Caches
from compute_operator_kit.keys import Kind, ObjectKey, PlaneName, Role
from compute_operator_kit.kube import Writer
from compute_operator_kit.mapping import Dropped, Mapper, map_to_itself
from compute_operator_kit.pacing import Tempo
from compute_operator_kit.reconcile import Pass, Result

# What a mapping function needs comes from `mapping`; here for whoever builds controllers anyway.
__all__ = [
    "RESYNC_JITTER",
    "Controller",
    "Dropped",
    "Mapper",
    "Reconcile",
    "Watch",
    "map_to_itself",
    "share_by_plane",
    "wake_nobody",
]

RESYNC_JITTER: Final = 0.2  # management.md 2: ± 20 %


@dataclass(frozen=True, slots=True)
class Watch:
    """Changes of a kind, on every plane of a role, and whom they concern."""

    role: Role
    kind: Kind
    map: Mapper = map_to_itself
    is_needed: bool = True  # no pass before its caches are complete


class Reconcile(Protocol):
    """One pass over one key."""

    async def __call__(self, key: ObjectKey, work: Pass) -> Result: ...


def share_by_plane(key: ObjectKey, _: Caches) -> str:
    return key.plane


def wake_nobody(plane: PlaneName, caches: Caches) -> Iterable[ObjectKey]:  # noqa: ARG001
    return ()


@dataclass(frozen=True, slots=True)
class Controller:
    """One kind of root, and everything that is done about it."""

    name: str  # in metrics, logs and spans
    writer: Writer
    watches: tuple[Watch, ...]
    reconcile: Reconcile
    share: Callable[[ObjectKey, Caches], str] = share_by_plane  # who takes turns with whom
    on_engaged: Callable[[PlaneName, Caches], Iterable[ObjectKey]] = wake_nobody
    # Whether what the first lists show of a key says that something is to be done: such keys go
    # before the rest. Pure, quick, and never decides more than the order.
    is_behind: Callable[[ObjectKey, Caches], bool] | None = None
    tempo: Tempo | None = None  # how often one key may be looked at; None: as often as it is woken
    resync: timedelta = timedelta(minutes=30)  # every key is looked at again this often
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    deadline: timedelta = timedelta(seconds=60)
    workers: int | None = None  # at most so many passes at once; None: as many as there are workers
    dropped_metric: str = ""  # counter with the labels `controller` and `reason`
