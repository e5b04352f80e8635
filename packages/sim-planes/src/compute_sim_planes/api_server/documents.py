"""Rendered documents, kept until what they tell of changes."""

from __future__ import annotations

from collections.abc import Callable

import orjson

from compute_sim_planes.json_types import JsonObject


class Documents:
    """Bytes by key, all of one epoch."""

    def __init__(self) -> None:
        self._epoch = -1
        self._found: dict[tuple[str, bool], bytes] = {}

    def find(
        self, epoch: int, key: tuple[str, bool], make: Callable[[], JsonObject | None]
    ) -> bytes | None:
        """The document under `key`, made when it is asked for the first time in this epoch."""
        if epoch != self._epoch:
            self._epoch = epoch
            self._found.clear()
        if key not in self._found:
            document = make()
            if document is None:
                # Not kept: anybody can ask for any number of paths that do not exist.
                return None
            self._found[key] = orjson.dumps(document)
        return self._found[key]
