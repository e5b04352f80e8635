"""JSON patch (RFC 6902) as values: the way to change exactly the fields we own, under
tests the server makes. Pure.
"""

from __future__ import annotations

from enum import StrEnum
from functools import lru_cache
from typing import Final

import msgspec

from compute_operator_kit.wire import JsonValue

_REMEMBERED: Final = 512  # places in objects: kinds have few, and a pass names them all


class PatchOp(StrEnum):
    """Operations of RFC 6902 that we use."""

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
def pointer(*parts: str | int) -> str:
    """A JSON pointer (RFC 6901); label keys carry `/` and are escaped here and nowhere else."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)
