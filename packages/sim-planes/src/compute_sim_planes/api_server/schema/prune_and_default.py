"""Pruning and defaulting of objects before validation.

Both return new values and do not change their argument, which may be in storage. A value of the
wrong type passes through unchanged, so that validation can report it.
"""

from __future__ import annotations

from compute_sim_planes.api_server.schema.model import ANYTHING, Schema
from compute_sim_planes.json_copies import copy_json
from compute_sim_planes.json_types import JsonObject, JsonValue

# Present in every resource regardless of its schema, and validated separately.
META_FIELDS = frozenset({"apiVersion", "kind", "metadata"})


def prune(document: JsonObject, schema: Schema) -> tuple[JsonObject, list[str]]:
    """The object without undeclared fields, and the paths of those."""
    dropped: list[str] = []
    pruned = _prune_object(document, schema, path="", is_resource=True, dropped=dropped)
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
    document: JsonObject, schema: Schema | None, *, path: str, is_resource: bool, dropped: list[str]
) -> JsonObject:
    kept: JsonObject = {}
    for key, value in document.items():
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


def apply_defaults(document: JsonObject, schema: Schema) -> JsonObject:
    """The object with defaults for values that are absent or, where not nullable, null.

    A null without a default is dropped: in these APIs an optional field is absent, never null.
    """
    filled: JsonObject = {}
    for key, value in document.items():
        child = schema.child(key)
        if value is None and _forbids_null(child):
            if child is not None and child.has_default:
                filled[key] = _apply_defaults(copy_json(child.default), child)
        else:
            filled[key] = _apply_defaults(value, child)
    for key, child in schema.properties.items():
        if child.has_default and key not in document:
            filled[key] = _apply_defaults(copy_json(child.default), child)
    return filled


def _forbids_null(schema: Schema | None) -> bool:
    """Whether null is replaced: in declared fields that are not nullable."""
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
