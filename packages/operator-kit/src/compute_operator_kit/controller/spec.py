"""The specification of a controller as a value: watches, reconcile function, queue and retries.

```
watches    (plane role, kind) ─► mapping function ─► keys to enqueue
reconcile  (key) ─► Result: when to requeue
```

Mapping functions see the header and index values of an object before and after a change, read
caches and return keys; they send no request, so that no event waits for a plane. A reconcile does
not learn which event enqueued its key: a missed event is repaired by any later one. `manager.py`
runs controllers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, Protocol

from compute_operator_kit.cache.lister import Caches
from compute_operator_kit.client.interface import FieldOwner
from compute_operator_kit.controller.key_rate_limiter import KeyRateLimit
from compute_operator_kit.controller.mapping import DroppedChange, Mapper, enqueue_object
from compute_operator_kit.controller.reconcile import ReconcileContext, Result
from compute_operator_kit.core.backoff import RetryPolicy
from compute_operator_kit.core.keys import Kind, ObjectKey, PlaneName, Role

# Names of `mapping` are exported again for modules that build controllers.
__all__ = [
    "RESYNC_JITTER",
    "Controller",
    "DroppedChange",
    "Mapper",
    "Reconcile",
    "Watch",
    "enqueue_object",
    "fairness_by_plane",
    "no_keys",
]

RESYNC_JITTER: Final = 0.2  # management.md 2: ± 20 %


@dataclass(frozen=True, slots=True)
class Watch:
    """A kind on all planes of a role, with the function that maps its changes to keys."""

    role: Role
    kind: Kind
    map: Mapper = enqueue_object
    is_needed: bool = True  # no reconcile before its caches are complete


class Reconcile(Protocol):
    """The reconcile function of a controller."""

    async def __call__(self, key: ObjectKey, work: ReconcileContext) -> Result: ...


def fairness_by_plane(key: ObjectKey, _: Caches) -> str:
    return key.plane


def no_keys(plane: PlaneName, caches: Caches) -> Iterable[ObjectKey]:  # noqa: ARG001
    return ()


@dataclass(frozen=True, slots=True)
class Controller:
    """A root kind, its watches and its reconcile function."""

    name: str  # in metrics, logs and spans
    owner: FieldOwner
    watches: tuple[Watch, ...]
    reconcile: Reconcile
    # Groups keys for turns in the queue, so that no tenant delays another.
    fairness_key: Callable[[ObjectKey, Caches], str] = fairness_by_plane
    keys_on_engage: Callable[[PlaneName, Caches], Iterable[ObjectKey]] = no_keys
    # Whether the caches show after the first lists that a key needs a write: such keys go before
    # the rest. Pure and fast; it decides nothing but the order.
    is_out_of_date: Callable[[ObjectKey, Caches], bool] | None = None
    rate_limit: KeyRateLimit | None = None  # None: a key runs as often as it is enqueued
    resync: timedelta = timedelta(minutes=30)  # every key is enqueued again this often
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    deadline: timedelta = timedelta(seconds=60)
    workers: int | None = None  # at most so many reconciles at once; None: all workers
    dropped_metric: str = ""  # counter with the labels `controller` and `reason`
