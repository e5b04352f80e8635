"""What a claim was found to be, in our own values. Pure (quota.md B3).

The planner stands on these, so that it can be read, and tested, without the quota client.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias

from compute_cell_operator.quota_gate.findings import Shortage
from compute_operator_kit.keys import Uid


class Holder(StrEnum):
    """Who the recorded UID of a claim is."""

    NOBODY = "nobody"  # it records none, nor this slot's namespace
    UNRECORDED = "unrecorded"  # it names this very slot, and no UID: the Go operators record none
    OURSELVES = "ourselves"
    GONE = "gone"  # proven: another lives in its place, or none
    LIVE = "live"
    UNKNOWN = "unknown"  # the cell could not be asked


@dataclass(frozen=True, slots=True)
class Nothing:
    """There is no claim of the name."""


@dataclass(frozen=True, slots=True)
class Strange:
    """Not this cell's; `cell` is "" where it names none, as a tenant's does."""

    uid: str
    namespace: str
    name: str
    cell: str


@dataclass(frozen=True, slots=True)
class OtherService:
    """Asks for `resource_type`, which is not compute's: never touched, whatever it is labelled."""

    namespace: str
    name: str
    resource_type: str


@dataclass(frozen=True, slots=True)
class Leaving:
    """Being deleted."""


@dataclass(frozen=True, slots=True)
class Different:
    """This cell's, but not what is wanted."""

    uid: str
    holder: Holder
    is_same_size: bool  # False: requests, consumer, resource or allocations differ


@dataclass(frozen=True, slots=True)
class Waiting:
    """As wanted, and not evaluated yet."""

    since: datetime


@dataclass(frozen=True, slots=True)
class Holding:
    """As wanted, and granted."""

    message: str


@dataclass(frozen=True, slots=True)
class Refused:
    """As wanted, and denied or invalid; parts of it may be reserved."""

    uid: str
    message: str
    is_invalid: bool = False
    shortages: tuple[Shortage, ...] = ()


Found: TypeAlias = (
    Nothing | Strange | OtherService | Leaving | Different | Waiting | Holding | Refused
)


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a claim records of its subject."""

    namespace: str
    uid: str


@dataclass(frozen=True, slots=True)
class Lookup:
    """What a live read of the recorded Instance said: its UID, or None for nobody of that name."""

    uid: Uid | None


def derive_holder(recorded: Recorded, namespace: str, uid: Uid, looked_up: Lookup | None) -> Holder:
    """Who the recorded UID is, seen from the Instance `uid` in `namespace` with the claim's name.

    In our own namespace it is ourselves or gone: two Instances cannot bear one name there.
    Elsewhere only a live read tells, and `looked_up` is None where that could not be made.
    """
    if not recorded.uid:
        return Holder.UNRECORDED if recorded.namespace == namespace else Holder.NOBODY
    if recorded.namespace == namespace:
        return Holder.OURSELVES if recorded.uid == uid else Holder.GONE
    if looked_up is None:
        return Holder.UNKNOWN
    return Holder.LIVE if looked_up.uid == recorded.uid else Holder.GONE
