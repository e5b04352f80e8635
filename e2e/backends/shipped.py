"""What ships in `deploy/`, as whoever installs a world reads it: objects, bindings, settings.

Rendered once per process, handed out as copies. What an installation says itself is laid over what
ships, member by member; so every world starts as what ships. Nothing here talks to a plane.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

import orjson
import yaml

from compute_api_types import names
from compute_api_types.wire import JsonObject
from compute_sim_planes.crds import Neighbour, load_crds
from e2e.manifests import DEPLOY, render
from e2e.objects import object_at, text_at

TEMPLATE_CELL: Final = "example"  # the name in the folders that are copied for each cell
TEMPLATE_CITY: Final = "CITY"  # and its city, as names have it


@cache
def _rendered(folder: Path) -> tuple[bytes, ...]:
    """Rendered once per process: reading takes longer than most scenarios."""
    return tuple(orjson.dumps(one) for one in render(folder))


def manifests(folder: str) -> list[JsonObject]:
    return [orjson.loads(raw) for raw in _rendered(DEPLOY / folder)]


@cache
def _loaded(*neighbours: Neighbour) -> tuple[bytes, ...]:
    return tuple(orjson.dumps(crd) for crd in load_crds(*neighbours))


def definitions(*neighbours: Neighbour) -> list[JsonObject]:
    """Our own CRDs, as shipped, and those of the neighbours named."""
    return [*manifests("crds"), *(neighbour_definitions(*neighbours) if neighbours else ())]


def neighbour_definitions(*neighbours: Neighbour) -> list[JsonObject]:
    return [orjson.loads(raw) for raw in _loaded(*neighbours)]


def cell_bindings(side: str, cell: str, city: str) -> list[JsonObject]:
    """What one cell has on the hub or at Milo's root, made from the template that ships."""
    raws = _rendered(DEPLOY / side / "cells" / TEMPLATE_CELL)
    put_in = ((TEMPLATE_CELL, cell), (TEMPLATE_CITY, names.sanitise(city)))
    return [orjson.loads(_replace(raw, put_in)) for raw in raws]


def _replace(raw: bytes, put_in: tuple[tuple[str, str], ...]) -> bytes:
    for word, value in put_in:
        raw = raw.replace(word.encode(), value.encode())
    return raw


def shipped_configuration(folder: str, name: str) -> JsonObject:
    """The configuration file in a ConfigMap of `deploy/`."""
    for one in manifests(folder):
        found = text_at(one, "metadata", "name")
        if text_at(one, "kind") == "ConfigMap" and found.startswith(name):
            data = object_at(one, "data")
            text = next(value for value in data.values() if isinstance(value, str))
            document: JsonObject = yaml.safe_load(text)
            return document
    raise LookupError(f"reading deploy/{folder}: no ConfigMap {name!r} with a configuration")


def lay_over(found: JsonObject, wanted: JsonObject) -> JsonObject:
    """`wanted` over `found`, member by member; None takes a member away."""
    laid = dict(found)
    for key, value in wanted.items():
        inner = laid.get(key)
        if value is None:
            laid.pop(key, None)
        elif isinstance(value, dict) and isinstance(inner, dict):
            laid[key] = lay_over(inner, value)
        else:
            laid[key] = value
    return laid
