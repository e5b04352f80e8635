"""What one list may be made of: pages, objects, bytes, and a token that is not the one before.

A server that answers every page with a token for the next one would otherwise be asked for ever,
and what it answers be kept. Used by everything that reads a list to its end.
"""

from __future__ import annotations

from typing import Final

from compute_operator_kit.errors import LimitExceededError
from compute_operator_kit.keys import Kind, PlaneName
from compute_operator_kit.kube import Page

LIST_TOO_LARGE: Final = "ListTooLarge"
# Each beyond what a hub of ten thousand deployments serves, with pages cut small by large objects.
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
        """One more page, asked for with `token`; `LimitExceededError` beyond the bounds."""
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
