"""Our CRDs of Milo and the network services, compared with the original ones field by field.

The original schemas are recorded in `observed/`: Milo v0.32.5, network-services-operator at
41b6db2. Without this comparison a simulated plane could accept what a real one refuses.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from compute_sim_planes.crds import ExternalSystem, load_crds
from compute_sim_planes.json_types import JsonObject, JsonValue, object_at, objects_at, string_at

OBSERVED: Final = Path(__file__).parent.parent / "observed"
SYSTEMS: Final[tuple[ExternalSystem, ...]] = ("milo", "networking")
CRDS: Final = load_crds(*SYSTEMS)

NETWORK_ADDRESSES: Final = "addresses are the network services' own; nothing here reads them"
# CRD and field; fields below it are left out too.
LEFT_OUT: Final[dict[tuple[str, str], str]] = {
    ("networks.networking.datumapis.com", ".status.ipam"): NETWORK_ADDRESSES,
    ("networkcontexts.networking.datumapis.com", ".status.ipam"): NETWORK_ADDRESSES,
}

# Keywords that are not rules of the value; `description` has no effect, and the recording has no
# map keys.
_STRUCTURE: Final = frozenset(
    {"properties", "items", "additionalProperties", "description", "x-kubernetes-list-map-keys"}
)
_RECORDED_AS: Final = {"x-kubernetes-list-type": "listType"}


def recorded_schemas() -> dict[str, JsonObject]:
    files = [OBSERVED / f"{system}-crds.json" for system in SYSTEMS]
    return {
        name: schema
        for file in files
        for name, schema in json.loads(file.read_text("utf-8")).items()
    }


RECORDED: Final = recorded_schemas()


def name_of(crd: JsonObject) -> str:
    return string_at(crd, "metadata", "name")


def flatten(schema: JsonObject, path: str = "") -> Iterator[tuple[str, JsonObject]]:
    """Every field with its rules in the format of the recording: `[]` an item, `{}` a map value."""
    rules = {
        _RECORDED_AS.get(key, key): value for key, value in schema.items() if key not in _STRUCTURE
    }
    yield path or ".", {key: _sorted_members(key, value) for key, value in rules.items()}
    for name in object_at(schema, "properties"):
        yield from flatten(object_at(schema, "properties", name), f"{path}.{name}")
    for key, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if key in schema:
            yield from flatten(object_at(schema, key), f"{path}{mark}")


def _sorted_members(key: str, value: JsonValue) -> JsonValue:
    return sorted(value, key=str) if key == "required" and isinstance(value, list) else value


def is_at_or_below(path: str, field: str) -> bool:
    return path == field or path.startswith((f"{field}.", f"{field}[]", f"{field}{{}}"))


def left_out_fields(crd_name: str, fields: JsonObject) -> set[str]:
    left_out = [field for name, field in LEFT_OUT if name == crd_name]
    return {path for path in fields if any(is_at_or_below(path, field) for field in left_out)}


@pytest.mark.spec("OU-01")
@pytest.mark.parametrize("crd", CRDS, ids=name_of)
def test_a_definition_equals_the_original_field_by_field(crd: JsonObject) -> None:
    (version,) = objects_at(crd, "spec", "versions")
    recorded = RECORDED[f"{name_of(crd)}/{string_at(version, 'name')}"]
    fields = object_at(recorded, "fields")
    left_out = left_out_fields(name_of(crd), fields)

    assert string_at(crd, "spec", "scope") == recorded["scope"]
    assert sorted(object_at(version, "subresources")) == recorded["subresources"]
    assert dict(flatten(object_at(version, "schema", "openAPIV3Schema"))) == {
        path: rules for path, rules in fields.items() if path not in left_out
    }


@pytest.mark.spec("OU-01")
@pytest.mark.parametrize(("crd_name", "field"), LEFT_OUT)
def test_a_field_that_is_left_out_exists_only_in_the_original(crd_name: str, field: str) -> None:
    (crd,) = (crd for crd in CRDS if name_of(crd) == crd_name)
    (version,) = objects_at(crd, "spec", "versions")
    recorded = RECORDED[f"{crd_name}/{string_at(version, 'name')}"]

    assert field in object_at(recorded, "fields")
    assert field not in dict(flatten(object_at(version, "schema", "openAPIV3Schema")))
