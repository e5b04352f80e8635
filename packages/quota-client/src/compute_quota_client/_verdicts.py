"""What a claim is found to be, as values; and the other expected answers of an operation.

Every verdict carries the claim it was made on, so a caller may keep one longer than the tracker
that delivered it. Only `Granted` means that anything may start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from compute_quota_client._models import Allocation, FoundClaim

MismatchField: TypeAlias = Literal["subject", "requests", "consumer", "resource", "allocations"]


@dataclass(frozen=True, slots=True)
class Foreign:
    """Somebody else's: `owner` holds what the claim carries under each wanted key, None where
    absent.
    """

    found: FoundClaim
    owner: Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class Releasing:
    """Being deleted: what it holds is about to be free again."""

    found: FoundClaim


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Ours, but `fields` differ from what is wanted; ("subject",) alone is the case for `adopt`.

    `allocations` means that the spec was changed after its evaluation, which Milo accepts without
    looking again.
    """

    found: FoundClaim
    fields: tuple[MismatchField, ...]


@dataclass(frozen=True, slots=True)
class Granted:
    """Every request is reserved with exactly its amount."""

    found: FoundClaim
    message: str


@dataclass(frozen=True, slots=True)
class Pending:
    """Not evaluated yet, since its creation."""

    found: FoundClaim
    since: datetime


@dataclass(frozen=True, slots=True)
class Invalid:
    """The quota service calls the claim invalid; it will not look again."""

    found: FoundClaim
    message: str


@dataclass(frozen=True, slots=True)
class Denied:
    """Final: a raised grant does not flip it. Parts that fitted stay reserved until the claim is
    released.
    """

    found: FoundClaim
    reason: str
    message: str
    allocations: tuple[Allocation, ...]


Verdict: TypeAlias = Foreign | Releasing | Mismatch | Granted | Pending | Invalid | Denied


@dataclass(frozen=True, slots=True)
class Absent:
    """There is nothing of that name."""


@dataclass(frozen=True, slots=True)
class Released:
    """The claim was recognised and its deletion accepted; `found` is its last state."""

    found: FoundClaim


@dataclass(frozen=True, slots=True)
class NotOurs:
    """The claim was not recognised, or kept changing; it was left alone. `found` is what was read
    last.
    """

    found: FoundClaim


class ClaimKey(NamedTuple):
    """Where a claim stands inside its project."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Synced:
    """All that exists has been told by `Changed`; from here on changes follow."""


@dataclass(frozen=True, slots=True)
class Changed:
    """A claim that is new, or not as it was last told."""

    found: FoundClaim


@dataclass(frozen=True, slots=True)
class Gone:
    """A claim that was told and exists no more; `found` is its last known state."""

    found: FoundClaim


WatchEvent: TypeAlias = Synced | Changed | Gone
