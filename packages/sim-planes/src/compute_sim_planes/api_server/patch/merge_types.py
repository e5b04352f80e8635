"""Merge types: whether a value is merged and owned by field, by item, or as a whole.

They come from the schema where there is one (`x-kubernetes-list-type`, `-map-type`); otherwise
objects are merged by field and arrays as a whole, as on a real server. Metadata has its own fixed
types for every kind.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from compute_sim_planes.api_server.patch.field_sets import key_step, value_step
from compute_sim_planes.api_server.schema.model import Schema
from compute_sim_planes.json_types import JsonArray, JsonObject, JsonValue

_STRING: Final = Schema(types=("string",))
_BOOLEAN: Final = Schema(types=("boolean",))
_INTEGER: Final = Schema(types=("integer",))
_STRINGS: Final = Schema(types=("object",), additional=_STRING)
_OWNER_REFERENCE: Final = Schema(
    types=("object",),
    # A reference without all its fields is invalid, so it is replaced as a whole.
    map_type="atomic",
    properties={
        "apiVersion": _STRING,
        "blockOwnerDeletion": _BOOLEAN,
        "controller": _BOOLEAN,
        "kind": _STRING,
        "name": _STRING,
        "uid": _STRING,
    },
)

OBJECT_META: Final = Schema(
    types=("object",),
    properties={
        "annotations": _STRINGS,
        "creationTimestamp": _STRING,
        "deletionGracePeriodSeconds": _INTEGER,
        "deletionTimestamp": _STRING,
        "finalizers": Schema(types=("array",), items=_STRING, list_type="set"),
        "generateName": _STRING,
        "generation": _INTEGER,
        "labels": _STRINGS,
        "managedFields": Schema(types=("array",), list_type="atomic"),
        "name": _STRING,
        "namespace": _STRING,
        "ownerReferences": Schema(
            types=("array",), items=_OWNER_REFERENCE, list_type="map", list_map_keys=("uid",)
        ),
        "resourceVersion": _STRING,
        "selfLink": _STRING,
        "uid": _STRING,
    },
)
# Fields that the server sets; they have no owner.
UNOWNED_METADATA: Final = frozenset(
    {
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "generation",
        "managedFields",
        "name",
        "namespace",
        "resourceVersion",
        "selfLink",
        "uid",
    }
)


def derive_root(schema: Schema | None, *samples: JsonObject) -> Schema:
    """The type of whole objects of a kind. Without a schema, its top-level fields are those of the
    samples.
    """
    known = {} if schema is None else schema.properties
    if schema is None:
        known = {key: DEDUCED for sample in samples for key in sample}
    properties = {**known, "apiVersion": _STRING, "kind": _STRING, "metadata": OBJECT_META}
    preserves_unknown = schema is None or schema.preserves_unknown
    return Schema(types=("object",), properties=properties, preserves_unknown=preserves_unknown)


DEDUCED: Final = Schema(preserves_unknown=True)


def child_type(schema: Schema, key: str) -> Schema:
    """The type of a field; undeclared fields get the type that their value implies."""
    child = schema.child(key)
    return DEDUCED if child is None else child


def is_granular(value: JsonValue, schema: Schema) -> bool:
    """Whether the value is owned by its parts; all other values are leaves."""
    if isinstance(value, dict):
        return schema.map_type != "atomic"
    if isinstance(value, list):
        return schema.list_type in {"map", "set"}
    return False


def children(value: JsonValue, schema: Schema) -> Iterator[tuple[str, JsonValue, Schema]]:
    """Step, value and type of each part of a granular value, in order."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield f"f:{key}", inner, child_type(schema, key)
    elif isinstance(value, list):
        items = schema.items or DEDUCED
        for item in value:
            yield item_step(item, schema), item, items


def item_step(item: JsonValue, schema: Schema) -> str:
    """The step that names an item of a list-type map or set."""
    if schema.list_type == "set":
        return value_step(item)
    return key_step(item_key(item, schema))


def item_key(item: JsonValue, schema: Schema) -> JsonObject:
    """The key fields of an item; an absent one has its default."""
    if not isinstance(item, dict):
        return {}
    key: JsonObject = {}
    for name in schema.list_map_keys:
        declared = schema.items.child(name) if schema.items is not None else None
        if name in item:
            key[name] = item[name]
        elif declared is not None and declared.has_default:
            key[name] = declared.default
    return key


def index_items(values: JsonArray, schema: Schema) -> dict[str, JsonValue]:
    """Items by step; of duplicates the first counts."""
    indexed: dict[str, JsonValue] = {}
    for item in values:
        indexed.setdefault(item_step(item, schema), item)
    return indexed
