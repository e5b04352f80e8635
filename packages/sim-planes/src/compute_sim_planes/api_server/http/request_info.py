"""Request paths and verbs: resource, namespace, name and subresource from method and path.

Authorization and routing use the same result, so they cannot disagree. It does not depend on which
kinds a plane serves.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final
from urllib.parse import unquote

_VERBS: Final = {
    "GET": "get",
    "HEAD": "get",
    "POST": "create",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}
# `namespaces/x/status` is a subresource of the Namespace, `namespaces/x/pods` are objects in it.
_NAMESPACE_SUBRESOURCES: Final = frozenset({"status", "finalize"})


@dataclass(frozen=True, slots=True)
class ResourcePath:
    """A path to objects of one resource."""

    group: str
    version: str
    resource: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""


@lru_cache(maxsize=8192)
def parse_path(path: str) -> ResourcePath | None:
    """The resource of a path; None for other paths (discovery, health)."""
    # Decoded first, as Go does: an escaped slash in a name separates path segments.
    parts = unquote(path).strip("/").split("/")
    if len(parts) >= 3 and parts[0] == "api":
        return _parse_resource("", parts[1], parts[2:])
    if len(parts) >= 4 and parts[0] == "apis":
        return _parse_resource(parts[1], parts[2], parts[3:])
    return None


def _parse_resource(group: str, version: str, parts: list[str]) -> ResourcePath | None:
    if parts[0] == "namespaces" and len(parts) > 1:
        in_namespace = len(parts) > 2 and parts[2] not in _NAMESPACE_SUBRESOURCES
        if in_namespace:
            return _parse_named(ResourcePath(group, version, parts[2], parts[1]), parts[3:])
        subresource = parts[2] if len(parts) > 2 else ""
        # A Namespace is in the namespace of its own name: permissions inside it cover the object
        # too.
        return ResourcePath(group, version, "namespaces", parts[1], parts[1], subresource)
    return _parse_named(ResourcePath(group, version, parts[0]), parts[1:])


def _parse_named(collection: ResourcePath, rest: list[str]) -> ResourcePath | None:
    if len(rest) > 2:
        return None
    name = rest[0] if rest else ""
    subresource = rest[1] if len(rest) > 1 else ""
    return ResourcePath(
        collection.group,
        collection.version,
        collection.resource,
        collection.namespace,
        name,
        subresource,
    )


def derive_verb(method: str, path: ResourcePath, *, watching: bool) -> str:
    """The verb for authorization; empty for an unknown method."""
    verb = _VERBS.get(method, "")
    if path.name:
        # A single object cannot be watched by its path, only with a field selector on a list.
        return verb
    if verb == "get":
        return "watch" if watching else "list"
    return "deletecollection" if verb == "delete" else verb
