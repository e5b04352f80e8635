"""Pruning and defaulting: what the server does to an object before it looks whether it is valid.

Both build new values and leave what they were given alone; the caller may hold it in storage.
Neither judges: a value of the wrong type passes through untouched, so that validation can name it.
"""

from __future__ import annotations

from compute_sim_planes.api_server.schema_model import ANYTHING, Schema
from compute_sim_planes.json_copies import copy_json
from compute_sim_planes.json_types import JsonObject, JsonValue

# Present in every resource, whatever its schema says, and checked by rules of their own.
META_FIELDS = frozenset({"apiVersion", "kind", "metadata"})


def prune(found: JsonObject, schema: Schema) -> tuple[JsonObject, list[str]]:
    """The object without fields its schema does not know, and the paths of those."""
    dropped: list[str] = []
    pruned = _prune_object(found, schema, path="", is_resource=True, dropped=dropped)
    return pruned, sorted(dropped)


def _prune(value: JsonValue, schema: Schema | None, path: str, dropped: list[str]) -> JsonValue:
    if isinstance(value, dict):
        is_resource = schema is not None and schema.is_embedded_resource
        return _prune_object(value, schema, path=path, is_resource=is_resource, dropped=dropped)
    if isinstance(value, list):
        items = _item_schema(schema)
        return [_prune(item, items, f"{path}[{at}]", dropped) for at, item in enumerate(value)]
    return value


def _item_schema(schema: Schema | None) -> Schema | None:
    if schema is None:
        return None
    if schema.items is None and schema.preserves_unknown:
        return ANYTHING
    return schema.items


def _prune_object(
    found: JsonObject, schema: Schema | None, *, path: str, is_resource: bool, dropped: list[str]
) -> JsonObject:
    kept: JsonObject = {}
    for key, value in found.items():
        child_path = f"{path}.{key}" if path else key
        child = schema.child(key) if schema is not None else None
        if is_resource and key in META_FIELDS:
            kept[key] = copy_json(value)
        elif child is not None:
            kept[key] = _prune(value, child, child_path, dropped)
        elif schema is not None and schema.preserves_unknown:
            kept[key] = copy_json(value)
        else:
            dropped.append(child_path)
    return kept


def apply_defaults(found: JsonObject, schema: Schema) -> JsonObject:
    """The object with the schema's defaults for what is absent or, where not nullable, null.

    A null nobody has a default for is dropped: "optional" means absent in these APIs, never null.
    """
    filled: JsonObject = {}
    for key, value in found.items():
        child = schema.child(key)
        if value is None and _forbids_null(child):
            if child is not None and child.has_default:
                filled[key] = _apply_defaults(copy_json(child.default), child)
        else:
            filled[key] = _apply_defaults(value, child)
    for key, child in schema.properties.items():
        if child.has_default and key not in found:
            filled[key] = _apply_defaults(copy_json(child.default), child)
    return filled


def _forbids_null(schema: Schema | None) -> bool:
    """A declared field is null only where it says so; of what nobody declared nothing is known."""
    return schema is not None and schema is not ANYTHING and not schema.nullable


def _apply_defaults(value: JsonValue, schema: Schema | None) -> JsonValue:
    if schema is None:
        return copy_json(value)
    if isinstance(value, dict):
        return apply_defaults(value, schema)
    if isinstance(value, list):
        return [_default_item(item, schema.items) for item in value]
    return value


def _default_item(item: JsonValue, schema: Schema | None) -> JsonValue:
    if item is None and schema is not None and not schema.nullable and schema.has_default:
        item = copy_json(schema.default)
    return _apply_defaults(item, schema)
