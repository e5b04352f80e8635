"""The retention of object bodies in one store: whole, compressed, or the header alone.

It decides by the usage accounts of an object (`budget.py`) and charges them, so that a store does
not grow beyond its budget. Pure.
"""

from __future__ import annotations

from typing import TypeAlias

from compute_operator_kit.cache.budget import (
    HEADER_BYTES,
    LONG_BODY,
    Accounts,
    UsageMeter,
    weigh_header,
)
from compute_operator_kit.cache.indexers import Indexers
from compute_operator_kit.core.objects import Snapshot

_ObjectName: TypeAlias = tuple[str, str]  # namespace, name


class BodyRetention:
    """The retention of one store; several stores may share a meter."""

    def __init__(self, meter: UsageMeter, *, bodies: bool = True) -> None:
        """Without `bodies`, only headers are kept: for kinds that are read by index values."""
        self._meter = meter
        self._bodies = bodies
        self._extra_bytes: dict[_ObjectName, int] = {}  # of headers above the usual size
        self._without_body = 0  # objects that did not fit

    @property
    def refuses(self) -> bool:
        return self._meter.refuses

    @property
    def lacks_bodies(self) -> bool:
        return self._without_body > 0 and self._meter.is_roomy

    def retain(
        self, name: _ObjectName, held: Snapshot | None, received: Snapshot, indexers: Indexers
    ) -> Snapshot | None:
        """Charges as much of a received object as fits, instead of the held version; None if not
        even the header of a new object fits.
        """
        if held is not None:
            self.release(name, held)
        accounts = self._meter.accounts_of(received.metadata)
        header = self._weigh_header(received)
        kept = self._fit(accounts, received, header) if self._bodies else received.without_body()
        if kept is None:
            kept = received.without_body(indexers.cut_partial(received))
        if held is None and not self._fits_as_header(accounts, kept, header):
            return None
        if header > HEADER_BYTES:
            self._extra_bytes[name] = header - HEADER_BYTES
        self._charge(accounts, kept, header)
        return kept

    def release(self, name: _ObjectName, kept: Snapshot) -> None:
        """Takes back the charge for an object that is not held any more."""
        size = HEADER_BYTES + self._extra_bytes.pop(name, 0) + len(kept.kept) + len(kept.partial)
        is_whole = kept.has_body or not self._bodies
        self._without_body -= not is_whole
        for account in self._meter.accounts_of(kept.metadata):
            account.take(size, has_body=is_whole)

    def replace(self, before: Snapshot, after: Snapshot) -> None:
        """Adapts the charge after compression."""
        saved = len(before.kept) - len(after.kept)
        if saved:
            for account in self._meter.accounts_of(after.metadata):
                account.shrink(saved)

    def _weigh_header(self, snapshot: Snapshot) -> int:
        if len(snapshot.kept) <= LONG_BODY:
            return HEADER_BYTES
        return HEADER_BYTES + weigh_header(snapshot)

    def _fit(self, accounts: Accounts, snapshot: Snapshot, header: int) -> Snapshot | None:
        """The object, compressed if an account is half full; None if its body does not fit."""
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
        size = header + len(kept.partial)
        return not any(account.is_exhausted(size) for account in accounts)

    def _charge(self, accounts: Accounts, kept: Snapshot, header: int) -> None:
        size = header + len(kept.kept) + len(kept.partial)
        is_whole = kept.has_body or not self._bodies
        self._without_body += not is_whole
        for account in accounts:
            account.add(size, has_body=is_whole)
