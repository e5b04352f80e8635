"""JSON patches (RFC 6902) as values: they change exactly the owned fields. Pure.

A `test` operation makes the server refuse the patch if the object has changed, so that no write is
lost.
"""

from __future__ import annotations

from enum import StrEnum
from functools import lru_cache
from typing import Final

import msgspec

from compute_operator_kit.core.json import JsonValue

_REMEMBERED: Final = 512  # pointers: kinds have few, and each reconcile builds them


class PatchOp(StrEnum):
    """The operations of RFC 6902 that are used."""

    TEST = "test"
    ADD = "add"
    REPLACE = "replace"
    REMOVE = "remove"


class PatchStep(msgspec.Struct, frozen=True, gc=False):
    """One step of a JSON patch; `path` is a JSON pointer, built with `pointer`."""

    op: PatchOp
    path: str
    value: JsonValue = None

    def as_json(self) -> dict[str, JsonValue]:
        if self.op is PatchOp.REMOVE:
            return {"op": self.op, "path": self.path}
        return {"op": self.op, "path": self.path, "value": self.value}


@lru_cache(maxsize=_REMEMBERED)
def pointer(*segments: str | int) -> str:
    """A JSON pointer (RFC 6901); `/` in label keys is escaped here and nowhere else."""
    return "".join("/" + str(segment).replace("~", "~0").replace("/", "~1") for segment in segments)
