"""JSON patch (RFC 6902) as values: the way to change exactly the fields we own, under
tests the server makes. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from compute_operator_kit.wire import JsonValue


class PatchOp(StrEnum):
    """Operations of RFC 6902 that we use."""

    TEST = "test"
    ADD = "add"
    REPLACE = "replace"
    REMOVE = "remove"


@dataclass(frozen=True, slots=True)
class PatchStep:
    """One step of a JSON patch; `path` is a JSON pointer, built with `pointer`."""

    op: PatchOp
    path: str
    value: JsonValue = None

    def as_json(self) -> dict[str, JsonValue]:
        step: dict[str, JsonValue] = {"op": self.op.value, "path": self.path}
        return step if self.op is PatchOp.REMOVE else step | {"value": self.value}


def pointer(*parts: str | int) -> str:
    """A JSON pointer (RFC 6901); label keys carry `/` and are escaped here and nowhere else."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)
