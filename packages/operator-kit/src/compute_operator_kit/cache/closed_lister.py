"""The lister of a kind that is watched on demand and is closed now: nothing is known of it.

Without it a closed kind would look like one without objects, and a reconcile would delete what
stands for them. Reads answer `Unreadable`; lookups for mapping functions find nothing, as before a
first list.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from compute_operator_kit.cache.lister import CachedObject, Listing, ServingState
from compute_operator_kit.core.keys import Kind, PlaneName
from compute_operator_kit.core.objects import Absent, Snapshot, Unreadable

NOT_WATCHED: Final = "NotWatched"


@dataclass(frozen=True, slots=True)
class ClosedLister:
    """A `Lister` without a store."""

    plane: PlaneName
    kind: Kind

    @property
    def serving(self) -> ServingState:
        return ServingState.UNKNOWN

    @property
    def listing(self) -> Listing | None:
        return None

    @property
    def is_synced(self) -> bool:
        return False

    def get(self, namespace: str, name: str) -> Snapshot | Absent | Unreadable:  # noqa: ARG002
        return Unreadable(NOT_WATCHED)

    def entry(self, namespace: str, name: str) -> CachedObject | None:  # noqa: ARG002
        return None

    def snapshots(self, namespace: str = "") -> tuple[Snapshot, ...] | Unreadable:  # noqa: ARG002
        return Unreadable(NOT_WATCHED)

    def by_index(self, index: str, value: str) -> tuple[Snapshot, ...] | Unreadable:  # noqa: ARG002
        return Unreadable(NOT_WATCHED)

    def entries_by_index(self, index: str, value: str) -> tuple[CachedObject, ...]:  # noqa: ARG002
        return ()

    def index_values(self, index: str) -> tuple[str, ...]:  # noqa: ARG002
        return ()

    def has_reached(self, resource_version: str) -> bool:  # noqa: ARG002
        return False
