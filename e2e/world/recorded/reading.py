"""Reader of the recorded documents, by plane and kind."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import orjson

from compute_api_types.wire import JsonObject
from e2e.world.kinds import Kind
from e2e.world.objects import name_of, objects_at, text_at

FOLDER: Final = Path(__file__).parent / "go-operators"
# The recording's plane names; the cell has its own name.
PROJECT_PLANE: Final = "project"
HUB_PLANE: Final = "hub"
CELL_PLANE: Final = "dfw-1"
RUNNING: Final = "running"
DELETING: Final = "deleting"


@dataclass(frozen=True, slots=True)
class RecordedObjects:
    """Every recorded object of one project on its three planes."""

    objects: dict[str, list[JsonObject]]

    def of(self, plane: str, kind: Kind) -> list[JsonObject]:
        return [one for one in self.objects[plane] if text_at(one, "kind") == kind.name]


def read_recording(name: str) -> RecordedObjects:
    """`running`; or `deleting`, which is `running` with the differing objects replaced."""
    base: JsonObject = orjson.loads((FOLDER / f"{RUNNING}.json").read_bytes())
    objects = {plane: objects_at(base, plane) for plane in base}
    if name != RUNNING:
        changed: JsonObject = orjson.loads((FOLDER / f"{name}.json").read_bytes())
        for plane in changed:
            objects[plane] = _replace(objects[plane], objects_at(changed, plane))
    return RecordedObjects(objects)


def _replace(all_of_them: list[JsonObject], changed: list[JsonObject]) -> list[JsonObject]:
    newer = {(text_at(one, "kind"), name_of(one)): one for one in changed}
    return [newer.get((text_at(one, "kind"), name_of(one)), one) for one in all_of_them]
