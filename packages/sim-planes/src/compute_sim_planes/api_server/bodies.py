"""Request bodies: from bytes to one object, or a refusal in the server's words.

Nothing is assumed of a body; a server meets garbage, other formats and objects nested beyond
reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import orjson
import yaml

from compute_sim_planes.api_server import api_errors
from compute_sim_planes.api_server.call import Call
from compute_sim_planes.api_server.kinds import Kind
from compute_sim_planes.json_types import JsonObject, JsonValue, ensure_object, string_at

JSON: Final = "application/json"
YAML: Final = "application/yaml"
OBJECT_TYPES: Final = (JSON, YAML)
# Named in refusals as a real server does, though this one reads no protocol buffers.
_TOLD_TYPES: Final = (*OBJECT_TYPES, "application/vnd.kubernetes.protobuf")


def media_type(headers: Mapping[str, str]) -> str:
    """The content type without its parameters; JSON when none is named."""
    return headers.get("content-type", "").partition(";")[0].strip().lower() or JSON


def parse_json(body: bytes) -> JsonValue:
    try:
        parsed: JsonValue = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise api_errors.bad_request(f"json parse error: {error}") from error
    return parsed


def parse_yaml(body: bytes) -> JsonValue:
    """YAML, of which JSON is a part; what JSON cannot say (dates, other keys than texts) becomes
    text or is refused.
    """
    if body.lstrip()[:1] == b"{":
        # Most clients send JSON under this name, and its reader is fifty times quicker.
        with suppress(orjson.JSONDecodeError):
            quick: JsonValue = orjson.loads(body)
            return quick
    try:
        loaded: object = _JsonLikeLoader(body).get_single_data()
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise api_errors.bad_request(f"error decoding YAML: {error}") from error
    return parse_json(orjson.dumps(loaded, option=orjson.OPT_NON_STR_KEYS))


class _JsonLikeLoader(yaml.SafeLoader):
    """Reads times as the texts they are on the wire."""


def _keep_text(loader: yaml.SafeLoader, node: yaml.Node) -> object:
    del loader
    return node.value


_JsonLikeLoader.add_constructor("tag:yaml.org,2002:timestamp", _keep_text)


def parse_object(call: Call) -> JsonObject:
    """The object a create or an update carries, of the kind it was sent to."""
    content_type = media_type(call.headers)
    if content_type not in OBJECT_TYPES:
        raise api_errors.unsupported_media_type(_TOLD_TYPES)
    try:
        parsed = parse_json(call.body) if content_type == JSON else parse_yaml(call.body)
        if not isinstance(parsed, dict):
            raise api_errors.bad_request("json parse error: the value is no object")
    except api_errors.ApiError as error:
        raise api_errors.bad_request(
            f"the object provided is unrecognized (must be of type {call.kind.kind}): "
            f"couldn't get version/kind; {error.message} ({_summary(call.body)})"
        ) from error
    check_type(call.kind, parsed)
    return parsed


def _summary(body: bytes) -> str:
    """The beginning of a body, as it is or, if it is no text, in hexadecimal digits."""
    if not body:
        return "<empty>"
    start = body[:30]
    shown = start.decode() if start.isascii() and start.decode().isprintable() else start.hex()
    return f"{shown} ..." if len(body) > len(start) else shown


def check_type(kind: Kind, wanted: JsonObject) -> None:
    """Refuse what says to be of another kind; kinds built in may leave theirs out."""
    if kind.built_in:
        wanted.setdefault("apiVersion", kind.api_version)
        wanted.setdefault("kind", kind.kind)
    found_kind, api_version = string_at(wanted, "kind"), string_at(wanted, "apiVersion")
    if not found_kind:
        text = orjson.dumps(wanted)
        raise api_errors.bad_request(
            f"the object provided is unrecognized (must be of type {kind.kind}): Object 'Kind' is "
            f"missing in '{text.decode()[:512]}' ({_summary(text)})"
        )
    if api_version != kind.api_version:
        raise api_errors.bad_request(
            f"the API version in the data ({api_version}) does not match the expected API version "
            f"({kind.api_version})"
        )
    if found_kind != kind.kind and kind.built_in:
        raise api_errors.bad_request(
            f'{found_kind} in version "{kind.version}" cannot be handled as a {kind.kind}: '
            f"converting ({found_kind}) to ({kind.kind}): unknown conversion"
        )


def check_place(call: Call, wanted: JsonObject) -> None:
    """Have the object lie where the path says, and refuse one that says otherwise of itself."""
    metadata = ensure_object(wanted, "metadata")
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


def check_name(call: Call, wanted: JsonObject) -> None:
    name = string_at(wanted, "metadata", "name")
    if not name:
        raise api_errors.bad_request(
            f"the name of the object ({call.name} based on URL) was undeterminable: "
            "name must be provided"
        )
    if name != call.name:
        raise api_errors.bad_request(
            f"the name of the object ({name}) does not match the name on the URL ({call.name})"
        )
