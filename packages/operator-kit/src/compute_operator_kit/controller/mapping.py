"""Mapping functions: from a changed object to the keys to enqueue (`EnqueueRequestsFromMapFunc`).

Separate from `spec.py`, so that an `observe` module with mapping functions imports no client. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from compute_operator_kit.cache.lister import Caches, Change
from compute_operator_kit.core.keys import ObjectKey


@dataclass(frozen=True, slots=True)
class DroppedChange:
    """A change without a key to enqueue, with the reason; counted, not an error."""

    reason: str


Mapper: TypeAlias = Callable[[Change, Caches], Iterable[ObjectKey | DroppedChange]]


def enqueue_object(change: Change, _: Caches) -> Iterable[ObjectKey]:
    """Maps a change of the controller's root kind to its own key."""
    return (change.key,)
