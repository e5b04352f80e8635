"""OpenAPI v3 documents of the served kinds, as far as `kubectl` reads them.

`kubectl explain` reads schemas, `kubectl apply` reads which patch types and parameters a path
accepts. One document per group and version; built-in kinds have no schema and are described as
objects with arbitrary fields.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Final

from compute_sim_planes.api_server.kinds.discovery import subresources_of
from compute_sim_planes.api_server.kinds.kind import Kind
from compute_sim_planes.json_copies import copy_json, copy_object
from compute_sim_planes.json_types import JsonArray, JsonObject, JsonValue, object_at

_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1"
_JSON: Final = "application/json"
_PATCH_TYPES: Final = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
)
_STRATEGIC: Final = "application/strategic-merge-patch+json"

_VERB_OF: Final = {"get": "get", "put": "update", "patch": "patch", "delete": "delete"}


def openapi_index(kinds: Iterable[Kind]) -> JsonObject:
    """`GET /openapi/v3`: the URLs of the documents, each with a hash for client-side caches."""
    by_version: dict[tuple[str, str], list[Kind]] = {}
    for kind in kinds:
        by_version.setdefault((kind.group, kind.version), []).append(kind)
    paths: JsonObject = {}
    for (group, version), served in sorted(by_version.items()):
        path = f"apis/{group}/{version}" if group else f"api/{version}"
        paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={_digest(served)}"}
    return {"paths": paths}


def openapi_document(kinds: Iterable[Kind], group: str, version: str) -> JsonObject | None:
    """`GET /openapi/v3/apis/<group>/<version>`; None when the version is not served."""
    served = [kind for kind in kinds if (kind.group, kind.version) == (group, version)]
    if not served:
        return None
    schemas: JsonObject = dict(_SHARED_SCHEMAS)
    paths: JsonObject = {}
    for kind in sorted(served, key=lambda kind: kind.plural):
        schemas[schema_name(kind)] = _object_schema(kind)
        schemas[f"{schema_name(kind)}List"] = _list_schema(kind)
        paths.update(_paths(kind))
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1.34.0"},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def schema_name(kind: Kind) -> str:
    """The name of a kind's schema: the group reversed, as on a real server."""
    if kind.built_in:
        group = kind.group.removesuffix(".k8s.io").partition(".")[0] or "core"
        return f"io.k8s.api.{group}.{kind.version}.{kind.kind}"
    return ".".join([*reversed(kind.group.split(".")), kind.version, kind.kind])


def _digest(kinds: list[Kind]) -> str:
    known = [
        [kind.plural, kind.kind, kind.has_status, kind.schema_document]
        for kind in sorted(kinds, key=lambda kind: kind.plural)
    ]
    text = json.dumps(known, sort_keys=True).encode()
    return hashlib.sha256(text).hexdigest()[:32].upper()


def _ref(name: str) -> JsonObject:
    return {"$ref": f"#/components/schemas/{name}"}


def _gvk(kind: Kind, suffix: str = "") -> JsonObject:
    return {"group": kind.group, "version": kind.version, "kind": f"{kind.kind}{suffix}"}


def _object_schema(kind: Kind) -> JsonObject:
    document = copy_object(kind.schema_document) if kind.schema_document else {}
    properties: JsonObject = {
        "apiVersion": {"type": "string", "description": _API_VERSION_TEXT},
        "kind": {"type": "string", "description": _KIND_TEXT},
        **object_at(document, "properties"),
        "metadata": {
            "description": _METADATA_TEXT,
            "allOf": [_ref(f"{_META}.ObjectMeta")],
            "default": {},
        },
    }
    if not kind.schema_document:
        document["x-kubernetes-preserve-unknown-fields"] = True
    return {
        **document,
        "type": "object",
        "properties": properties,
        "x-kubernetes-group-version-kind": [_gvk(kind)],
    }


def _list_schema(kind: Kind) -> JsonObject:
    return {
        "type": "object",
        "description": f"{kind.list_kind} is a list of {kind.kind}",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string", "description": _API_VERSION_TEXT},
            "kind": {"type": "string", "description": _KIND_TEXT},
            "metadata": {"allOf": [_ref(f"{_META}.ListMeta")], "default": {}},
            "items": {"type": "array", "items": _ref(schema_name(kind))},
        },
        "x-kubernetes-group-version-kind": [_gvk(kind, "List")],
    }


def _paths(kind: Kind) -> JsonObject:
    root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    collection = f"{root}/namespaces/{{namespace}}" if kind.namespaced else root
    paths: JsonObject = {}
    if kind.namespaced and "list" in kind.verbs:
        paths[f"{root}/{kind.plural}"] = {
            "get": _operation(kind, "list", f"{schema_name(kind)}List")
        }
    own = f"{collection}/{kind.plural}"
    paths[own] = _collection_path(kind)
    if "get" in kind.verbs:
        paths[f"{own}/{{name}}"] = _item_path(kind)
        for name in subresources_of(kind):
            paths[f"{own}/{{name}}/{name}"] = _item_path(kind, without=("delete",))
    return paths


def _collection_path(kind: Kind) -> JsonObject:
    path: JsonObject = {}
    if "list" in kind.verbs:
        path["get"] = _operation(kind, "list", f"{schema_name(kind)}List")
    if "create" in kind.verbs:
        path["post"] = _operation(kind, "post", schema_name(kind), body=(_JSON,))
    path["parameters"] = _path_parameters(kind, item=False)
    return path


def _item_path(kind: Kind, without: tuple[str, ...] = ()) -> JsonObject:
    path: JsonObject = {}
    for method, verb in _VERB_OF.items():
        if verb not in kind.verbs or method in without:
            continue
        body: tuple[str, ...] = ()
        if method == "put":
            body = (_JSON,)
        elif method == "patch":
            body = (*_PATCH_TYPES, _STRATEGIC) if kind.built_in else _PATCH_TYPES
        path[method] = _operation(kind, method, schema_name(kind), body=body)
    path["parameters"] = _path_parameters(kind, item=True)
    return path


def _operation(kind: Kind, action: str, answer: str, body: tuple[str, ...] = ()) -> JsonObject:
    operation: JsonObject = {
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": _gvk(kind),
        "responses": {
            "200": {"description": "OK", "content": {_JSON: {"schema": _ref(answer)}}},
        },
    }
    if body:
        content: JsonObject = {media: {"schema": _ref(answer)} for media in body}
        operation["requestBody"] = {"required": True, "content": content}
        operation["parameters"] = copy_json(_WRITE_PARAMETERS)
    return operation


def _parameter(name: str, where: str, kind_of_value: str = "string") -> JsonObject:
    parameter: JsonObject = {
        "name": name,
        "in": where,
        "schema": {"type": kind_of_value, "uniqueItems": True},
    }
    if where == "path":
        parameter["required"] = True
    return parameter


def _path_parameters(kind: Kind, *, item: bool) -> JsonArray:
    names = [*(["name"] if item else []), *(["namespace"] if kind.namespaced else [])]
    return [_parameter(name, "path") for name in names]


# `kubectl` checks that these are declared before it sends them.
_WRITE_PARAMETERS: Final[JsonArray] = [
    _parameter("dryRun", "query"),
    _parameter("fieldManager", "query"),
    _parameter("fieldValidation", "query"),
    _parameter("force", "query", "boolean"),
]
_API_VERSION_TEXT: Final = "The version of the schema this object is written in."
_KIND_TEXT: Final = "The kind of this object, in CamelCase."
_METADATA_TEXT: Final = "Standard object metadata."
_STRINGS: Final[JsonValue] = {"type": "object", "additionalProperties": {"type": "string"}}
_TIME: Final[JsonValue] = {"type": "string", "format": "date-time"}
_STRING: Final[JsonValue] = {"type": "string"}
_SHARED_SCHEMAS: Final[JsonObject] = {
    f"{_META}.ObjectMeta": {
        "type": "object",
        "description": "ObjectMeta is metadata that all persisted resources must have.",
        "properties": {
            "annotations": _STRINGS,
            "creationTimestamp": _TIME,
            "deletionGracePeriodSeconds": {"type": "integer", "format": "int64"},
            "deletionTimestamp": _TIME,
            "finalizers": {
                "type": "array",
                "items": _STRING,
                "x-kubernetes-list-type": "set",
            },
            "generateName": _STRING,
            "generation": {"type": "integer", "format": "int64"},
            "labels": _STRINGS,
            "managedFields": {
                "type": "array",
                "items": {"type": "object"},
                "x-kubernetes-list-type": "atomic",
            },
            "name": _STRING,
            "namespace": _STRING,
            "ownerReferences": {
                "type": "array",
                "items": _ref(f"{_META}.OwnerReference"),
                "x-kubernetes-list-map-keys": ["uid"],
                "x-kubernetes-list-type": "map",
            },
            "resourceVersion": _STRING,
            "selfLink": _STRING,
            "uid": _STRING,
        },
    },
    f"{_META}.OwnerReference": {
        "type": "object",
        "description": "OwnerReference names an owner of an object in the same plane.",
        "required": ["apiVersion", "kind", "name", "uid"],
        "properties": {
            "apiVersion": _STRING,
            "blockOwnerDeletion": {"type": "boolean"},
            "controller": {"type": "boolean"},
            "kind": _STRING,
            "name": _STRING,
            "uid": _STRING,
        },
        "x-kubernetes-map-type": "atomic",
    },
    f"{_META}.ListMeta": {
        "type": "object",
        "description": "ListMeta describes metadata of lists.",
        "properties": {
            "continue": _STRING,
            "remainingItemCount": {"type": "integer", "format": "int64"},
            "resourceVersion": _STRING,
            "selfLink": _STRING,
        },
    },
}
