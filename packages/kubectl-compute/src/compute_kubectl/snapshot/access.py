"""How a read of one kind on one plane ended; only a complete read proves that an object is absent.

Without the five states an empty answer of a plane that is away, or of a caller without rights,
would read as "there is none".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final, Generic, Never, TypeVar


class Access(StrEnum):
    """The state of a read."""

    READ = "read"
    REFUSED = "refused"
    NOT_SERVED = "not served"
    UNREACHABLE = "unreachable"
    NOT_ASKED = "not asked"


T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Listing(Generic[T_co]):
    """The objects of one kind that a read returned, and how the read ended.

    `is_partial` marks a read that was cut at a limit: what is missing from it is not absent.
    """

    access: Access = Access.NOT_ASKED
    items: tuple[T_co, ...] = ()
    at: datetime | None = None
    detail: str = ""
    is_partial: bool = False

    def __iter__(self) -> Iterator[T_co]:
        return iter(self.items)

    @property
    def proves_absence(self) -> bool:
        """Whether an object that is not listed does not exist."""
        return self.access is Access.READ and not self.is_partial

    @property
    def is_served(self) -> bool:
        """Whether the plane may have the kind; an optional kind may be missing there."""
        return self.access is not Access.NOT_SERVED


NOT_LISTED: Final[Listing[Never]] = Listing()
"""The listing of a kind that was not asked for."""
