"""Verdicts on a claim, and the other expected results of an operation, as values.

Every verdict carries its claim, so a caller may keep one longer than the tracker that delivered it.
Only `Granted` allows the subject to start.
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
    """A claim of another owner: `owner` has its value of each wanted key, None where absent."""

    found: FoundClaim
    owner: Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class Releasing:
    """Being deleted: what it reserves is about to be free again."""

    found: FoundClaim


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Ours, but `fields` differ from what is wanted; ("subject",) alone is the case for `adopt`.

    `allocations` means that the spec was changed after its evaluation, which Milo accepts without
    evaluating again.
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
    """The quota service calls the claim invalid, and does not evaluate it again."""

    found: FoundClaim
    message: str


@dataclass(frozen=True, slots=True)
class Denied:
    """Final: a raised grant does not change it. Requests that fitted stay reserved until the claim
    is released.
    """

    found: FoundClaim
    reason: str
    message: str
    allocations: tuple[Allocation, ...]


Verdict: TypeAlias = Foreign | Releasing | Mismatch | Granted | Pending | Invalid | Denied


@dataclass(frozen=True, slots=True)
class Absent:
    """There is no object of that name."""


@dataclass(frozen=True, slots=True)
class Released:
    """The claim was recognised and its deletion accepted; `found` is its last state."""

    found: FoundClaim


@dataclass(frozen=True, slots=True)
class NotOurs:
    """The claim was not recognised, or kept changing, and was not deleted; `found` is its last
    state.
    """

    found: FoundClaim


class ClaimKey(NamedTuple):
    """Namespace and name of a claim in its project."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Synced:
    """Every existing claim was reported by `Changed`; from here on changes follow."""


@dataclass(frozen=True, slots=True)
class Changed:
    """A claim that is new or differs from its last report."""

    found: FoundClaim


@dataclass(frozen=True, slots=True)
class Gone:
    """A claim that was reported and no longer exists; `found` is its last known state."""

    found: FoundClaim


WatchEvent: TypeAlias = Synced | Changed | Gone
