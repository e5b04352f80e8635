"""CRDs of external systems, as far as the operators use them: Karmada, Milo, networking.

They have the fields that the operators and the simulations use, with the validation and defaults of
`docs/spec/neighbours.md` and of recordings of real planes. They are YAML files, so that real planes
can be given the same ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Final, Literal, TypeAlias

import orjson
import yaml

from compute_sim_planes.json_types import JsonObject, JsonValue

ExternalSystem: TypeAlias = Literal["karmada", "milo", "networking"]
EXTERNAL_SYSTEMS: Final[tuple[ExternalSystem, ...]] = ("karmada", "milo", "networking")


def load_crds(*systems: ExternalSystem) -> list[JsonObject]:
    """The CRDs of the given systems, by default of all, sorted by name."""
    selected = systems or EXTERNAL_SYSTEMS
    return [orjson.loads(crd) for system in selected for crd in _encoded(system)]


@cache
def _encoded(system: ExternalSystem) -> tuple[bytes, ...]:
    """Cached per process, which may have a hundred planes; each caller gets its own copies."""
    return tuple(orjson.dumps(crd) for crd in _read(system))


def _read(system: ExternalSystem) -> Iterator[JsonObject]:
    folder = files(__name__).joinpath(system)
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        if file.name.endswith(".yaml"):
            document: JsonValue = yaml.safe_load(file.read_text("utf-8"))
            if not isinstance(document, dict):
                raise TypeError(f"reading {system}/{file.name}: it holds no object")
            yield document
