"""Bounds of one list: pages, objects, bytes, and a continue token that changes.

Without them, a server that answers every page with a continue token is listed forever and fills the
memory. Used by all code that reads a list to its end.
"""

from __future__ import annotations

from typing import Final

from compute_operator_kit.client.interface import Page
from compute_operator_kit.core.errors import LimitExceededError
from compute_operator_kit.core.keys import Kind, PlaneName

LIST_TOO_LARGE: Final = "ListTooLarge"
# Each is more than a hub of ten thousand deployments needs, also with small pages of large objects.
MOST_PAGES: Final = 4_000
MOST_OBJECTS: Final = 200_000
MOST_BYTES: Final = 1024 * 1024 * 1024


class ListBounds:
    """Counts one list as its pages arrive."""

    __slots__ = ("_bytes", "_kind", "_objects", "_pages", "_plane")

    def __init__(self, plane: PlaneName, kind: Kind) -> None:
        self._plane = plane
        self._kind = kind
        self._pages = 0
        self._objects = 0
        self._bytes = 0

    def count(self, page: Page, token: str) -> None:
        """Counts a page that was requested with `token`; `LimitExceededError` beyond the bounds."""
        self._pages += 1
        self._objects += len(page.items) + page.unreadable
        self._bytes += page.length
        if self._pages > MOST_PAGES and page.continue_token:
            self._refuse(f"more than {MOST_PAGES} pages")
        if self._objects > MOST_OBJECTS:
            self._refuse(f"more than {MOST_OBJECTS} objects")
        if self._bytes > MOST_BYTES:
            self._refuse(f"more than {MOST_BYTES} bytes")
        if token and page.continue_token == token:
            self._refuse("a page that continues with itself")

    def _refuse(self, what: str) -> None:
        raise LimitExceededError(
            LIST_TOO_LARGE,
            f"listing {self._kind.plural} on {self._plane!r}: {what}",
            plane=self._plane,
        )
