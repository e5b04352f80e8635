"""A cache of rendered discovery and OpenAPI documents, emptied when the served kinds change."""

from __future__ import annotations

from collections.abc import Callable

import orjson

from compute_sim_planes.json_types import JsonObject


class DocumentCache:
    """Document bytes by key, all of one epoch of the catalogue."""

    def __init__(self) -> None:
        self._epoch = -1
        self._documents: dict[tuple[str, bool], bytes] = {}

    def find(
        self, epoch: int, key: tuple[str, bool], make: Callable[[], JsonObject | None]
    ) -> bytes | None:
        """The document under `key`, rendered by `make` on first use in this epoch."""
        if epoch != self._epoch:
            self._epoch = epoch
            self._documents.clear()
        if key not in self._documents:
            document = make()
            if document is None:
                # Absent documents are not cached: clients can ask for any number of unknown paths.
                return None
            self._documents[key] = orjson.dumps(document)
        return self._documents[key]
