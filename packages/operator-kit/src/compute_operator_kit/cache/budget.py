"""The memory budget of caches: bytes and objects per plane, or per tenant of a shared plane.

Without it the objects of one tenant take the memory of all others. An account counts in O(1) per
event. Beyond its budget only the header of an object is cached and the body is read from the plane
when a reconcile needs it; at four times the budget not even headers are. Pure: no clock, no I/O.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol, TypeAlias

import msgspec

from compute_operator_kit.core.objects import Metadata, Snapshot

# Key, entry, index values and the usual header of one object, measured with Instances of 3 KB.
HEADER_BYTES: Final = 1024
# A body shorter than this cannot hold a header much longer than the usual one.
LONG_BODY: Final = 4 * 1024
# Headers are cached up to this multiple of the budget: deletions and finalizers need only them.
EXHAUSTED_AT: Final = 4


class Budget(msgspec.Struct, frozen=True):
    """The limit of one account; `objects` counts objects with a body."""

    bytes: int
    objects: int


class UsageAccount:
    """The cache usage of one plane, or of one tenant of it."""

    __slots__ = ("_budget", "bytes", "objects", "without_body")

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self.bytes = 0
        self.objects = 0
        self.without_body = 0  # of these objects: only the header is cached

    @property
    def is_over(self) -> bool:
        return self.without_body > 0

    @property
    def is_half_full(self) -> bool:
        """Received objects are compressed at once: memory is scarcer than time."""
        return self.bytes * 2 > self._budget.bytes

    @property
    def is_roomy(self) -> bool:
        """A quarter of the budget is free: bodies that were left out may be listed again."""
        budget, with_body = self._budget, self.objects - self.without_body
        return self.bytes * 4 <= budget.bytes * 3 and with_body * 4 <= budget.objects * 3

    def has_room(self, size: int) -> bool:
        """Whether one more object of this size fits."""
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
        """A cached object was compressed by this many bytes."""
        self.bytes -= size


Accounts: TypeAlias = tuple[UsageAccount, ...]


class UsageMeter(Protocol):
    """Finds the accounts that an object is charged to."""

    @property
    def refuses(self) -> bool:
        """Whether a plane that exhausts an account is refused as a whole; else the object is left
        out.
        """
        ...

    @property
    def is_roomy(self) -> bool:
        """Whether bodies that were left out fit now."""
        ...

    def accounts_of(self, metadata: Metadata) -> Accounts: ...


class PlaneUsageMeter:
    """One account for all caches of a plane."""

    __slots__ = ("_accounts", "account")

    refuses = True

    def __init__(self, budget: Budget) -> None:
        self.account = UsageAccount(budget)
        self._accounts = (self.account,)

    @property
    def is_roomy(self) -> bool:
        return self.account.is_over and self.account.is_roomy

    def accounts_of(self, metadata: Metadata) -> Accounts:  # noqa: ARG002
        return self._accounts


# The tenants (shares of a plane) that an object is charged to, each with its budget.
FindShares: TypeAlias = Callable[[Metadata], tuple[tuple[str, Budget], ...]]


class ShareUsageMeter:
    """One account per tenant, for a plane that many tenants write to, such as the hub."""

    __slots__ = ("_accounts", "_find_shares")

    refuses = False

    def __init__(self, find_shares: FindShares) -> None:
        self._find_shares = find_shares
        self._accounts: dict[str, UsageAccount] = {}

    @property
    def is_roomy(self) -> bool:
        return any(one.is_over and one.is_roomy for one in self._accounts.values())

    def accounts_of(self, metadata: Metadata) -> Accounts:
        return tuple([self._account(*name) for name in self._find_shares(metadata)])

    def _account(self, name: str, budget: Budget) -> UsageAccount:
        account = self._accounts.get(name)
        if account is None:
            account = self._accounts[name] = UsageAccount(budget)
        return account

    def over(self) -> tuple[str, ...]:
        """Tenants over their budget, sorted; empty accounts are dropped."""
        for name in [name for name, one in self._accounts.items() if not one.objects]:
            del self._accounts[name]
        return tuple(sorted(name for name, one in self._accounts.items() if one.is_over))


def weigh_header(snapshot: Snapshot) -> int:
    """The bytes of a header beyond the usual size; computed for long objects only."""
    metadata = snapshot.metadata
    texts = sum(map(len, metadata.labels)) + sum(map(len, metadata.labels.values()))
    texts += sum(map(len, metadata.annotations)) + sum(map(len, metadata.annotations.values()))
    texts += sum(map(len, metadata.finalizers))
    entries = len(metadata.labels) + len(metadata.annotations) + len(metadata.finalizers)
    # A string takes about 60 bytes besides its characters, an entry of a dict as much again.
    return max(0, texts + 120 * (entries + 2 * len(metadata.owners)) - HEADER_BYTES)
