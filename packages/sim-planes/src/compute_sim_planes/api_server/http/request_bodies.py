"""Request bodies: bytes to one object, or the error of a real server.

Bodies may be malformed, in an unsupported format or nested too deeply.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import orjson
import yaml

from compute_sim_planes.api_server import api_errors
from compute_sim_planes.api_server.http.request import ApiRequest
from compute_sim_planes.api_server.kinds.kind import Kind
from compute_sim_planes.json_types import JsonObject, JsonValue, ensure_object, string_at

JSON: Final = "application/json"
YAML: Final = "application/yaml"
OBJECT_TYPES: Final = (JSON, YAML)
# Error messages list protobuf as a real server does, though this server does not read it.
_ACCEPTED_TYPES: Final = (*OBJECT_TYPES, "application/vnd.kubernetes.protobuf")


def media_type(headers: Mapping[str, str]) -> str:
    """The content type without parameters; JSON when there is none."""
    return headers.get("content-type", "").partition(";")[0].strip().lower() or JSON


def parse_json(body: bytes) -> JsonValue:
    try:
        parsed: JsonValue = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise api_errors.bad_request(f"json parse error: {error}") from error
    return parsed


def parse_yaml(body: bytes) -> JsonValue:
    """YAML, of which JSON is a part; values that JSON lacks (dates, non-string keys) become text or
    are refused.
    """
    if body.lstrip()[:1] == b"{":
        # Most clients send JSON under this content type, and the JSON parser is fifty times faster.
        with suppress(orjson.JSONDecodeError):
            quick: JsonValue = orjson.loads(body)
            return quick
    try:
        loaded: object = _JsonLikeLoader(body).get_single_data()
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise api_errors.bad_request(f"error decoding YAML: {error}") from error
    return parse_json(orjson.dumps(loaded, option=orjson.OPT_NON_STR_KEYS))


class _JsonLikeLoader(yaml.SafeLoader):
    """Loads timestamps as strings."""


def _read_as_text(loader: yaml.SafeLoader, node: yaml.Node) -> object:
    del loader
    return node.value


_JsonLikeLoader.add_constructor("tag:yaml.org,2002:timestamp", _read_as_text)


def parse_object(call: ApiRequest) -> JsonObject:
    """The object in a create or update request, checked to be of the path's kind."""
    content_type = media_type(call.headers)
    if content_type not in OBJECT_TYPES:
        raise api_errors.unsupported_media_type(_ACCEPTED_TYPES)
    try:
        parsed = parse_json(call.body) if content_type == JSON else parse_yaml(call.body)
        if not isinstance(parsed, dict):
            raise api_errors.bad_request("json parse error: the value is no object")
    except api_errors.StatusError as error:
        raise api_errors.bad_request(
            f"the object provided is unrecognized (must be of type {call.kind.kind}): "
            f"couldn't get version/kind; {error.message} ({_summary(call.body)})"
        ) from error
    check_type(call.kind, parsed)
    return parsed


def _summary(body: bytes) -> str:
    """The beginning of a body as text or, if it is not printable, in hexadecimal."""
    if not body:
        return "<empty>"
    start = body[:30]
    shown = start.decode() if start.isascii() and start.decode().isprintable() else start.hex()
    return f"{shown} ..." if len(body) > len(start) else shown


def check_type(kind: Kind, desired: JsonObject) -> None:
    """Refuse an object of another kind; for built-in kinds both fields may be omitted."""
    if kind.built_in:
        desired.setdefault("apiVersion", kind.api_version)
        desired.setdefault("kind", kind.kind)
    object_kind, api_version = string_at(desired, "kind"), string_at(desired, "apiVersion")
    if not object_kind:
        text = orjson.dumps(desired)
        raise api_errors.bad_request(
            f"the object provided is unrecognized (must be of type {kind.kind}): Object 'Kind' is "
            f"missing in '{text.decode()[:512]}' ({_summary(text)})"
        )
    if api_version != kind.api_version:
        raise api_errors.bad_request(
            f"the API version in the data ({api_version}) does not match the expected API version "
            f"({kind.api_version})"
        )
    if object_kind != kind.kind and kind.built_in:
        raise api_errors.bad_request(
            f'{object_kind} in version "{kind.version}" cannot be handled as a {kind.kind}: '
            f"converting ({object_kind}) to ({kind.kind}): unknown conversion"
        )


def check_object_namespace(call: ApiRequest, desired: JsonObject) -> None:
    """Set the namespace of the path; refuse an object that names another."""
    metadata = ensure_object(desired, "metadata")
    namespace = string_at(metadata, "namespace")
    if not call.kind.namespaced:
        if namespace:
            raise api_errors.bad_request("namespace provided for a cluster-scoped object")
        metadata.pop("namespace", None)
        return
    if namespace and namespace != call.namespace:
        raise api_errors.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    metadata["namespace"] = call.namespace


def check_name(call: ApiRequest, desired: JsonObject) -> None:
    name = string_at(desired, "metadata", "name")
    if not name:
        raise api_errors.bad_request(
            f"the name of the object ({call.name} based on URL) was undeterminable: "
            "name must be provided"
        )
    if name != call.name:
        raise api_errors.bad_request(
            f"the name of the object ({name}) does not match the name on the URL ({call.name})"
        )
