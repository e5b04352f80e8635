"""How a change becomes keys: the signature of mapping functions, and what they answer. Pure.

Apart from `controller.py`, so that an `observe` that holds them stays as pure as the decisions that
build on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from compute_operator_kit.cache import Caches, Change
from compute_operator_kit.keys import ObjectKey


@dataclass(frozen=True, slots=True)
class Dropped:
    """A change that leads to no key, and why; counted, never an error."""

    reason: str


Mapper: TypeAlias = Callable[[Change, Caches], Iterable[ObjectKey | Dropped]]


def map_to_itself(change: Change, _: Caches) -> Iterable[ObjectKey]:
    """For the kind the controller is about."""
    return (change.key,)
