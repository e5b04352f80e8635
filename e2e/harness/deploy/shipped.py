"""The shipped manifests for installing them on planes: objects, bindings, configuration.

They are parsed once per process and returned as copies. Values of an installation are merged over
the shipped ones, so that every backend starts as shipped. Nothing here connects to a plane.
"""

from __future__ import annotations

from functools import cache
from typing import Final

import orjson
import yaml

from compute_api_types import names
from compute_api_types.wire import JsonObject
from compute_sim_planes.crds import ExternalSystem, load_crds
from e2e.harness.deploy.manifests import load_overlay
from e2e.world.objects import object_at, text_at

TEMPLATE_CELL: Final = "example"  # the placeholder name in folders that are copied for each cell
TEMPLATE_CITY: Final = "CITY"  # and its placeholder city


@cache
def _loaded_overlay(overlay: str) -> tuple[bytes, ...]:
    """Cached, because parsing takes longer than most scenarios."""
    return tuple(orjson.dumps(one) for one in load_overlay(overlay))


def manifests(overlay: str) -> list[JsonObject]:
    return [orjson.loads(raw) for raw in _loaded_overlay(overlay)]


@cache
def _loaded(*systems: ExternalSystem) -> tuple[bytes, ...]:
    return tuple(orjson.dumps(crd) for crd in load_crds(*systems))


def definitions(*systems: ExternalSystem) -> list[JsonObject]:
    """Our shipped CRDs, and those of the named external systems."""
    return [*manifests("crds"), *(external_definitions(*systems) if systems else ())]


def external_definitions(*systems: ExternalSystem) -> list[JsonObject]:
    return [orjson.loads(raw) for raw in _loaded(*systems)]


def cell_bindings(side: str, cell: str, city: str) -> list[JsonObject]:
    """The objects of one cell on the hub or at Milo's root, from the shipped template."""
    raws = _loaded_overlay(f"{side}/cells/{TEMPLATE_CELL}")
    put_in = ((TEMPLATE_CELL, cell), (TEMPLATE_CITY, names.sanitise(city)))
    return [orjson.loads(_replace(raw, put_in)) for raw in raws]


def _replace(raw: bytes, put_in: tuple[tuple[str, str], ...]) -> bytes:
    for word, value in put_in:
        raw = raw.replace(word.encode(), value.encode())
    return raw


def shipped_configuration(folder: str, name: str) -> JsonObject:
    """The configuration file in a ConfigMap of `deploy/`."""
    for one in manifests(folder):
        object_name = text_at(one, "metadata", "name")
        if text_at(one, "kind") == "ConfigMap" and object_name.startswith(name):
            data = object_at(one, "data")
            text = next(value for value in data.values() if isinstance(value, str))
            document: JsonObject = yaml.safe_load(text)
            return document
    raise LookupError(f"reading deploy/{folder}: no ConfigMap {name!r} with a configuration")


def merge_over(base: JsonObject, wanted: JsonObject) -> JsonObject:
    """Merges `wanted` over `base`, member by member; None removes a member."""
    overrides = dict(base)
    for key, value in wanted.items():
        inner = overrides.get(key)
        if value is None:
            overrides.pop(key, None)
        elif isinstance(value, dict) and isinstance(inner, dict):
            overrides[key] = merge_over(inner, value)
        else:
            overrides[key] = value
    return overrides
