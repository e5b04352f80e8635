"""Handlers of paths without objects: health, version, discovery, OpenAPI.

Documents are derived from the catalogue and cached as bytes until it changes, because every client
reads them when it starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from compute_sim_planes.api_server.http.responses import JSON_HEADERS, json_response, text_response
from compute_sim_planes.api_server.http.transport import BytesResponse, Response
from compute_sim_planes.api_server.kinds import discovery, openapi
from compute_sim_planes.api_server.state import PlaneState
from compute_sim_planes.json_types import JsonObject

_HEALTH: Final = frozenset({"healthz", "livez", "readyz"})
_AGGREGATED: Final = "as=APIGroupDiscoveryList"
_NEWEST: Final = "v=v2"


def serve_path(state: PlaneState, path: str, headers: Mapping[str, str]) -> Response | None:
    """The response to a path without objects; None for an unknown path."""
    parts = path.strip("/").split("/")
    if parts[0] in _HEALTH:
        return text_response("ok")
    if parts == ["version"]:
        return json_response(_version(state.version))
    aggregated = len(parts) == 1 and wants_aggregated(headers.get("accept", ""))
    key = (path.strip("/"), aggregated)
    existing = state.documents.find(
        state.catalog.epoch, key, lambda: _document(state, parts, aggregated=aggregated)
    )
    if existing is None:
        return None
    return BytesResponse(200, _AGGREGATED_HEADERS if aggregated else JSON_HEADERS, existing)


_AGGREGATED_HEADERS: Final = {"Content-Type": discovery.AGGREGATED_TYPE, "Vary": "Accept"}


def wants_aggregated(accept: str) -> bool:
    """Whether a client prefers aggregated discovery in the version that is served."""
    first = accept.partition(",")[0]
    return _AGGREGATED in first and _NEWEST in first.split(";")


def _document(state: PlaneState, parts: list[str], *, aggregated: bool) -> JsonObject | None:
    kinds = tuple(state.catalog)
    match parts:
        case ["api" | "apis" as root] if aggregated:
            return discovery.aggregated_discovery(kinds, core=root == "api")
        case ["api"]:
            return discovery.api_versions("")
        case ["apis"]:
            return discovery.api_group_list(kinds)
        case ["apis", group]:
            return discovery.api_group(kinds, group)
        case ["api", version]:
            return discovery.api_resource_list(kinds, "", version)
        case ["apis", group, version]:
            return discovery.api_resource_list(kinds, group, version)
        case ["openapi", "v3"]:
            return openapi.openapi_index(kinds)
        case ["openapi", "v3", "api", version]:
            return openapi.openapi_document(kinds, "", version)
        case ["openapi", "v3", "apis", group, version]:
            return openapi.openapi_document(kinds, group, version)
        case _:
            return None


def _version(version: str) -> JsonObject:
    major, minor, _ = version.removeprefix("v").split(".", 2)
    return {
        "major": major,
        "minor": minor,
        "gitVersion": version,
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "",
        "platform": "linux/amd64",
    }
