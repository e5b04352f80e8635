"""Reads of kinds that a plane may not serve, such as networking kinds (operations.md 1.4).

Three results that must not be confused: a complete `Lister`; `Off`, after which the kind counts in
no decision; and `Unreadable`, from which nothing may be concluded and nothing deleted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from compute_operator_kit.cache.lister import Caches, Lister, ServingState
from compute_operator_kit.core.keys import Kind, PlaneName
from compute_operator_kit.core.objects import Unreadable


class OptionalKindsMode(StrEnum):
    """The setting."""

    AUTO = "auto"  # by what each plane serves
    ON = "on"  # a kind that is not served is unreadable
    OFF = "off"  # not watched, not read


@dataclass(frozen=True, slots=True)
class Off:
    """The kind does not count on this plane."""


def never_uncertain(_: PlaneName, __: Kind) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class OptionalKindsReader:
    """Reads optional kinds from caches, by the setting."""

    mode: OptionalKindsMode
    # Whether "not served" was reported once and is not confirmed yet (`planes/optional_kinds.py`).
    is_uncertain: Callable[[PlaneName, Kind], bool] = never_uncertain

    def read(self, caches: Caches, plane: PlaneName, kind: Kind) -> Lister | Unreadable | Off:
        if self.mode is OptionalKindsMode.OFF:
            return Off()
        lister = caches.lister(plane, kind)
        if lister.is_synced:
            return lister
        is_unserved = lister.serving is ServingState.NOT_SERVED
        if self.mode is OptionalKindsMode.AUTO and is_unserved:
            return Unreadable("NotSynced") if self.is_uncertain(plane, kind) else Off()
        return Unreadable("NotSynced")

    def has_answer(self, caches: Caches, plane: PlaneName, kind: Kind) -> bool:
        """Whether the server has answered a list of the kind since it is watched. Without an answer
        the kind may be closed, or just opened on demand, and a live read can tell.
        """
        return caches.lister(plane, kind).serving is not ServingState.UNKNOWN
