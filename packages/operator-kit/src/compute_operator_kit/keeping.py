"""How much of each object one store keeps: all of it, its packed body, or its header alone.

Decides by the accounts that the object is charged to (`budget.py`) and charges them, so that a
store neither grows beyond its budget nor forgets what it holds. Pure.
"""

from __future__ import annotations

from typing import TypeAlias

from compute_operator_kit.budget import (
    HEADER_BYTES,
    LONG_BODY,
    Accounts,
    Meter,
    weigh_header,
)
from compute_operator_kit.indexing import Indexing
from compute_operator_kit.objects import Snapshot

_Place: TypeAlias = tuple[str, str]  # namespace, name


class Keeping:
    """For one store; several stores may share a meter."""

    def __init__(self, meter: Meter, *, bodies: bool = True) -> None:
        """Without `bodies`, only headers are kept: of kinds that are read by their indexes."""
        self._meter = meter
        self._bodies = bodies
        self._heavy: dict[_Place, int] = {}  # what headers take beyond the usual, where they do
        self._without_body = 0  # for want of room

    @property
    def refuses(self) -> bool:
        return self._meter.refuses

    @property
    def lacks_bodies(self) -> bool:
        return self._without_body > 0 and self._meter.is_roomy

    def keep(
        self, place: _Place, held: Snapshot | None, arrived: Snapshot, indexing: Indexing
    ) -> Snapshot | None:
        """Charges as much of an object as there is room for, in place of the version that is held;
        None where not even the header of a new one fits.
        """
        if held is not None:
            self.release(place, held)
        accounts = self._meter.accounts_of(arrived.metadata)
        header = self._weigh_header(arrived)
        kept = self._fit(accounts, arrived, header) if self._bodies else arrived.without_body()
        if kept is None:
            kept = arrived.without_body(indexing.outline(arrived))
        if held is None and not self._fits_as_header(accounts, kept, header):
            return None
        if header > HEADER_BYTES:
            self._heavy[place] = header - HEADER_BYTES
        self._charge(accounts, kept, header)
        return kept

    def release(self, place: _Place, kept: Snapshot) -> None:
        """What was charged for an object that is no longer held in this form."""
        size = HEADER_BYTES + self._heavy.pop(place, 0) + len(kept.kept) + len(kept.outlined)
        is_whole = kept.has_body or not self._bodies
        self._without_body -= not is_whole
        for account in self._meter.accounts_of(kept.metadata):
            account.take(size, has_body=is_whole)

    def replace(self, before: Snapshot, after: Snapshot) -> None:
        """The same version in fewer bytes."""
        saved = len(before.kept) - len(after.kept)
        if saved:
            for account in self._meter.accounts_of(after.metadata):
                account.shrink(saved)

    def _weigh_header(self, snapshot: Snapshot) -> int:
        if len(snapshot.kept) <= LONG_BODY:
            return HEADER_BYTES
        return HEADER_BYTES + weigh_header(snapshot)

    def _fit(self, accounts: Accounts, snapshot: Snapshot, header: int) -> Snapshot | None:
        """The object, packed where room is short; None where its body does not fit."""
        for account in accounts:
            if account.is_half_full:
                snapshot = snapshot.packed()
                break
        size = header + len(snapshot.kept)
        for account in accounts:
            if not account.has_room(size):
                return None
        return snapshot

    def _fits_as_header(self, accounts: Accounts, kept: Snapshot, header: int) -> bool:
        if kept.has_body:
            return True
        size = header + len(kept.outlined)
        return not any(account.is_exhausted(size) for account in accounts)

    def _charge(self, accounts: Accounts, kept: Snapshot, header: int) -> None:
        size = header + len(kept.kept) + len(kept.outlined)
        is_whole = kept.has_body or not self._bodies
        self._without_body += not is_whole
        for account in accounts:
            account.add(size, has_body=is_whole)
