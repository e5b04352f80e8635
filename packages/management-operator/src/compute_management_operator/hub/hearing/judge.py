"""Which cells are dark: neither their Lease is renewed nor does Karmada reach them. Pure
(dark-sites.md 2).

```
Lease renewed   Cluster Ready   state
yes             yes             heard
yes             no              undelivered     Karmada cannot deliver
no              yes             silent          the operator is down or cut off
no              no              dark, or withheld where too many would be dark at once
never           any             unmonitored
```

All times are of one monotonic clock of one process; no times of two machines are compared. A read
that failed or did not take place begins every count anew: then our own view is broken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum
from typing import Final

from compute_operator_kit.core.clock import ZERO

LONGEST_PATIENCE: Final = timedelta(minutes=10)  # whatever a Lease states as its duration
LONGEST_GAP: Final = timedelta(seconds=30)  # between two looks; after a longer one counts restart
OVERDUE: Final = 0.5  # of its patience; at the shipped settings two renewals
RENEWALS_TO_RETURN: Final = 2
READY_TO_RETURN: Final = timedelta(seconds=10)  # Karmada has read the cell again
FLAPPING_AFTER: Final = 3  # darknesses within `FLAPPING_WINDOW`
FLAPPING_WINDOW: Final = timedelta(hours=1)
STEADY_TO_RETURN: Final = timedelta(minutes=5)  # renewals of a cell that flaps


class CellState(StrEnum):
    """What is known of one cell: label `state` of the gauge."""

    HEARD = "heard"
    UNDELIVERED = "undelivered"
    SILENT = "silent"
    DARK = "dark"
    WITHHELD = "withheld"
    UNMONITORED = "unmonitored"
    UNDECIDED = "undecided"  # since the start of this process, or of its leadership


class Order(StrEnum):
    """The annotation of a person on a Cluster."""

    NONE = ""
    DARK = "true"
    NEVER_DARK = "false"


@dataclass(frozen=True, slots=True)
class CellLease:
    """The Lease of a cell, of which only a change counts."""

    version: str
    duration: timedelta = ZERO
    is_renewed: bool = True  # at least once


@dataclass(frozen=True, slots=True)
class CellCluster:
    """The Cluster of a cell."""

    is_ready: bool  # its condition Ready is True
    order: Order = Order.NONE
    city_code: str = ""


@dataclass(frozen=True, slots=True)
class Look:
    """Leases and Clusters, by the name of the cell, as one look at the hub shows them."""

    sent: timedelta
    received: timedelta
    leases: Mapping[str, CellLease]
    clusters: Mapping[str, CellCluster]


@dataclass(frozen=True, slots=True)
class CellRecord:
    """What this process has seen of one cell."""

    state: CellState = CellState.UNDECIDED
    is_dark: bool | None = None  # None: no verdict, what is shown stays as it is
    version: str = ""
    changed_at: timedelta | None = None  # the Lease, or when counting began
    renewals: int = 0  # without a gap
    renewing_since: timedelta = ZERO
    ready_since: timedelta | None = None
    dark_at: tuple[timedelta, ...] = ()  # within `FLAPPING_WINDOW`
    city_code: str = ""
    is_ordered: bool = False  # dark by the annotation of a person


@dataclass(frozen=True, slots=True)
class Records:
    """All cells with a Cluster, after one look."""

    cells: Mapping[str, CellRecord] = field(default_factory=dict[str, CellRecord])
    seen_at: timedelta | None = None  # None: the last read failed, or there was none


def without_times(records: Records) -> Records:
    """After a failed read: verdicts stay, and every count begins anew."""
    cells = {
        name: replace(record, changed_at=None, renewals=0, ready_since=None)
        for name, record in records.cells.items()
    }
    return Records(cells, None)


def note(records: Records, look: Look, unreachable_after: timedelta) -> Records:
    """The records with what a look shows, and no verdict yet."""
    if records.seen_at is None or look.sent - records.seen_at > LONGEST_GAP:
        records = without_times(records)
    cells = {
        name: _note_cell(records.cells.get(name, CellRecord()), name, look, unreachable_after)
        for name in look.clusters
    }
    return Records(cells, look.received)


def _note_cell(
    record: CellRecord, name: str, look: Look, unreachable_after: timedelta
) -> CellRecord:
    cluster, lease = look.clusters[name], look.leases.get(name)
    ready_since = record.ready_since if record.ready_since is not None else look.received
    record = replace(
        record,
        city_code=cluster.city_code,
        ready_since=ready_since if cluster.is_ready else None,
        dark_at=tuple(at for at in record.dark_at if look.received - at <= FLAPPING_WINDOW),
    )
    if lease is None or not lease.is_renewed:
        return replace(record, version="", changed_at=None, renewals=0)
    if record.changed_at is None or not record.version:
        return replace(record, version=lease.version, changed_at=look.received, renewals=0)
    is_silent = look.sent - record.changed_at >= derive_patience(lease, unreachable_after)
    if lease.version == record.version:
        return replace(record, renewals=0) if is_silent else record
    is_first = is_silent or record.renewals == 0
    return replace(
        record,
        version=lease.version,
        changed_at=look.received,
        renewals=1 if is_first else record.renewals + 1,
        renewing_since=look.received if is_first else record.renewing_since,
    )


def derive_patience(lease: CellLease, unreachable_after: timedelta) -> timedelta:
    """How long a Lease may stay unchanged."""
    return min(max(unreachable_after, lease.duration), LONGEST_PATIENCE)


def find_suspects(records: Records, look: Look, unreachable_after: timedelta) -> frozenset[str]:
    """Cells that neither witness hears and that are not dark yet; none where too many would be.
    Each needs a fresh read of its Cluster before it is dark.
    """
    suspects = frozenset(_unheard(records, look, unreachable_after))
    may_be = _may_all_be_dark(records, look, suspects, unreachable_after)
    return suspects if may_be else frozenset()


def _unheard(records: Records, look: Look, unreachable_after: timedelta) -> Iterator[str]:
    if unreachable_after <= ZERO:
        return
    for name, record in records.cells.items():
        cluster = look.clusters[name]
        is_asked = cluster.order is Order.NONE and not cluster.is_ready and not record.is_dark
        if is_asked and _is_silent(name, record, look, unreachable_after):
            yield name


def _is_silent(name: str, record: CellRecord, look: Look, unreachable_after: timedelta) -> bool:
    lease = look.leases.get(name)
    if lease is None or not lease.is_renewed or record.changed_at is None:
        return False
    return look.sent - record.changed_at >= derive_patience(lease, unreachable_after)


def _may_all_be_dark(
    records: Records, look: Look, suspects: AbstractSet[str], unreachable_after: timedelta
) -> bool:
    """One cell, or at most half of those with a Lease: all sites at once is our own view.

    Renewals are spread over an interval, so that sites lost at once become suspects one after the
    other: one that is overdue counts with them, or the first half of all would be dark.
    """
    monitored = [name for name in records.cells if _is_monitored(name, look)]
    dark = [
        name
        for name in monitored
        if records.cells[name].is_dark
        or name in suspects
        or (suspects and _is_overdue(name, records.cells[name], look, unreachable_after))
    ]
    return len(dark) <= 1 or 2 * len(dark) <= len(monitored)


def _is_overdue(name: str, record: CellRecord, look: Look, unreachable_after: timedelta) -> bool:
    """Whether both witnesses miss a cell for half of its patience."""
    cluster, lease = look.clusters[name], look.leases.get(name)
    is_asked = cluster.order is Order.NONE and not cluster.is_ready
    if not is_asked or lease is None or record.changed_at is None:
        return False
    patience = derive_patience(lease, unreachable_after)
    return look.sent - record.changed_at >= patience * OVERDUE


def _is_monitored(name: str, look: Look) -> bool:
    lease = look.leases.get(name)
    return lease is not None and lease.is_renewed


def judge(
    records: Records, look: Look, unreachable_after: timedelta, confirmed: AbstractSet[str]
) -> Records:
    """The records with their verdicts. `confirmed` are suspects of which a fresh read has shown
    that Karmada does not reach them.
    """
    unheard = frozenset(_unheard(records, look, unreachable_after))
    new = find_suspects(records, look, unreachable_after) & confirmed
    may_be = _may_all_be_dark(records, look, unheard, unreachable_after)
    withheld = frozenset[str]() if may_be else unheard
    cells: dict[str, CellRecord] = {}
    for name, record in records.cells.items():
        is_dark = _decide(name, record, look, unreachable_after, is_new=name in new)
        state = _state_of(name, record, look, unreachable_after, is_dark=is_dark)
        if name in withheld and state is CellState.SILENT:
            state = CellState.WITHHELD
        counted = _count_darkness(record, look.received) if name in new else record
        is_ordered = look.clusters[name].order is Order.DARK
        cells[name] = replace(counted, state=state, is_dark=is_dark, is_ordered=is_ordered)
    return Records(cells, records.seen_at)


def _count_darkness(record: CellRecord, now: timedelta) -> CellRecord:
    """Of a darkness that was seen; what a person orders is none, and ends at once."""
    return replace(record, renewals=0, dark_at=(*record.dark_at, now)[-FLAPPING_AFTER:])


def _decide(
    name: str, record: CellRecord, look: Look, unreachable_after: timedelta, *, is_new: bool
) -> bool | None:
    order = look.clusters[name].order
    if order is Order.DARK:
        return True
    if order is Order.NEVER_DARK or unreachable_after <= ZERO:
        return False
    if not _is_monitored(name, look):
        # An order that was taken back ends at once; without a Lease nothing else could end it.
        return False if record.is_ordered or record.is_dark is False else None
    if is_new:
        return True
    if record.is_dark is False:
        return False
    return False if _is_back(record, look) else record.is_dark


def _is_back(record: CellRecord, look: Look) -> bool:
    """Renewals were seen and Karmada has read the cell; of a cell that flaps for longer."""
    if record.renewals < RENEWALS_TO_RETURN or record.ready_since is None:
        return False
    if look.received - record.ready_since < READY_TO_RETURN:
        return False
    is_flapping = len(record.dark_at) >= FLAPPING_AFTER
    return not is_flapping or look.received - record.renewing_since >= STEADY_TO_RETURN


def _state_of(
    name: str,
    record: CellRecord,
    look: Look,
    unreachable_after: timedelta,
    *,
    is_dark: bool | None,
) -> CellState:
    if is_dark:
        return CellState.DARK
    if not _is_monitored(name, look):
        return CellState.UNMONITORED
    if _is_silent(name, record, look, max(unreachable_after, ZERO)):
        return CellState.SILENT
    if not look.clusters[name].is_ready:
        return CellState.UNDELIVERED
    return CellState.UNDECIDED if is_dark is None else CellState.HEARD
