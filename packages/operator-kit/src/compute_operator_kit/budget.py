"""What cached objects may occupy, counted per plane or per share of a plane as they come and go.

Without it one tenant's objects take the memory of every other. An account counts bytes and objects
in O(1) per event. Beyond its budget, an object is kept by its header alone and its body is asked of
the plane when a pass needs it; far beyond, not even headers fit, and the account is exhausted.
Pure: no clock, no I/O.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol, TypeAlias

import msgspec

from compute_operator_kit.objects import Metadata, Snapshot

# Key, entry, index values and the usual header of one object, measured over Instances of 3 KB.
HEADER_BYTES: Final = 1024
# A body shorter than this cannot hold a header much longer than the usual one.
LONG_BODY: Final = 4 * 1024
# Headers alone are let in up to so many times the budget: deletions and finalizers go on by them.
EXHAUSTED_AT: Final = 4


class Budget(msgspec.Struct, frozen=True):
    """What one account may hold; `objects` counts those with a body."""

    bytes: int
    objects: int


class Account:
    """What is held for one plane, or for one share of it."""

    __slots__ = ("_budget", "bytes", "objects", "without_body")

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self.bytes = 0
        self.objects = 0
        self.without_body = 0  # of these objects: their headers alone are held

    @property
    def is_over(self) -> bool:
        return self.without_body > 0

    @property
    def is_half_full(self) -> bool:
        """What arrives is packed at once: the room is worth more than the time."""
        return self.bytes * 2 > self._budget.bytes

    @property
    def is_roomy(self) -> bool:
        """Bodies that were left out may be asked for again: a quarter of the budget is free."""
        budget, whole = self._budget, self.objects - self.without_body
        return self.bytes * 4 <= budget.bytes * 3 and whole * 4 <= budget.objects * 3

    def has_room(self, size: int) -> bool:
        """For one more object of this size."""
        return (
            self.bytes + size <= self._budget.bytes
            and self.objects - self.without_body < self._budget.objects
        )

    def is_exhausted(self, size: int) -> bool:
        """Whether not even a header of this size fits."""
        return (
            self.bytes + size > self._budget.bytes * EXHAUSTED_AT
            or self.objects >= self._budget.objects * EXHAUSTED_AT
        )

    def add(self, size: int, *, has_body: bool) -> None:
        self.bytes += size
        self.objects += 1
        self.without_body += not has_body

    def take(self, size: int, *, has_body: bool) -> None:
        self.bytes -= size
        self.objects -= 1
        self.without_body -= not has_body

    def shrink(self, size: int) -> None:
        """An object that stays has become smaller by so many bytes."""
        self.bytes -= size


Accounts: TypeAlias = tuple[Account, ...]


class Meter(Protocol):
    """Finds the accounts that an object is charged to."""

    @property
    def refuses(self) -> bool:
        """Whether a plane that exhausts an account is not served; else the object is left out."""
        ...

    @property
    def is_roomy(self) -> bool:
        """Whether bodies that were left out would fit now."""
        ...

    def accounts_of(self, metadata: Metadata) -> Accounts: ...


class PlaneMeter:
    """One account for all that is cached of a plane."""

    __slots__ = ("_accounts", "account")

    refuses = True

    def __init__(self, budget: Budget) -> None:
        self.account = Account(budget)
        self._accounts = (self.account,)

    @property
    def is_roomy(self) -> bool:
        return self.account.is_over and self.account.is_roomy

    def accounts_of(self, metadata: Metadata) -> Accounts:  # noqa: ARG002
        return self._accounts


# The shares that an object belongs to, each with its budget.
FindShares: TypeAlias = Callable[[Metadata], tuple[tuple[str, Budget], ...]]


class ShareMeter:
    """Accounts by share, for a plane on which many write: none of them may take it all."""

    __slots__ = ("_accounts", "_find_shares")

    refuses = False

    def __init__(self, find_shares: FindShares) -> None:
        self._find_shares = find_shares
        self._accounts: dict[str, Account] = {}

    @property
    def is_roomy(self) -> bool:
        return any(one.is_over and one.is_roomy for one in self._accounts.values())

    def accounts_of(self, metadata: Metadata) -> Accounts:
        return tuple([self._account(*share) for share in self._find_shares(metadata)])

    def _account(self, share: str, budget: Budget) -> Account:
        found = self._accounts.get(share)
        if found is None:
            found = self._accounts[share] = Account(budget)
        return found

    def over(self) -> tuple[str, ...]:
        """Shares that are over their budget, sorted; accounts that hold nothing are dropped."""
        for share in [name for name, one in self._accounts.items() if not one.objects]:
            del self._accounts[share]
        return tuple(sorted(name for name, one in self._accounts.items() if one.is_over))


def weigh_header(snapshot: Snapshot) -> int:
    """What a header takes beyond the usual one; asked of long objects alone."""
    found = snapshot.metadata
    texts = sum(map(len, found.labels)) + sum(map(len, found.labels.values()))
    texts += sum(map(len, found.annotations)) + sum(map(len, found.annotations.values()))
    texts += sum(map(len, found.finalizers))
    entries = len(found.labels) + len(found.annotations) + len(found.finalizers)
    # A text takes some 60 bytes beside its characters, a place in a map as much again.
    return max(0, texts + 120 * (entries + 2 * len(found.owners)) - HEADER_BYTES)
