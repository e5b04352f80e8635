"""CRDs of the neighbours' kinds, as far as we touch them: Karmada, Milo, networking.

The fields our code and the simulated neighbours use, with the validation and defaults that
`docs/spec/neighbours.md` and the recordings of real planes show, and nothing more. Files are the
source; this module only reads them, so that real planes can be given the same files.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Final, Literal, TypeAlias

import orjson
import yaml

from compute_sim_planes.json_types import JsonObject, JsonValue

Neighbour: TypeAlias = Literal["karmada", "milo", "networking"]
NEIGHBOURS: Final[tuple[Neighbour, ...]] = ("karmada", "milo", "networking")


def load_crds(*neighbours: Neighbour) -> list[JsonObject]:
    """The CRDs of the neighbours, of all of them by default, in the order of their names."""
    found = neighbours or NEIGHBOURS
    return [orjson.loads(crd) for neighbour in found for crd in _encoded(neighbour)]


@cache
def _encoded(neighbour: Neighbour) -> tuple[bytes, ...]:
    """Read once per process, which may have a hundred planes; each gets documents of its own."""
    return tuple(orjson.dumps(crd) for crd in _read(neighbour))


def _read(neighbour: Neighbour) -> Iterator[JsonObject]:
    folder = files(__name__).joinpath(neighbour)
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        if file.name.endswith(".yaml"):
            document: JsonValue = yaml.safe_load(file.read_text("utf-8"))
            if not isinstance(document, dict):
                raise TypeError(f"reading {neighbour}/{file.name}: it holds no object")
            yield document
