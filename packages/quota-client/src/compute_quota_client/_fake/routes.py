"""Parses a request into a route: plane, resource, namespace, name; pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from compute_quota_client._exceptions import Operation

if TYPE_CHECKING:
    import httpx

_PROJECTS: Final = ["apis", "resourcemanager.miloapis.com", "v1alpha1", "projects"]
_QUOTA: Final = ["apis", "quota.miloapis.com", "v1alpha1"]
_CORE: Final = ["api", "v1"]
_QUOTA_RESOURCES: Final = frozenset(
    {"resourceclaims", "resourcegrants", "resourceregistrations", "allowancebuckets"}
)
_CORE_RESOURCES: Final = frozenset({"namespaces", "configmaps"})


@dataclass(frozen=True, slots=True)
class Route:
    """The target of a request: `plane` is a project, or "" for the root."""

    plane: str
    resource: str
    namespace: str | None
    name: str | None
    method: str
    watches: bool

    @property
    def operation(self) -> Operation | None:
        """The library's operation; None for a request that the library never sends."""
        if self.resource == "namespaces":
            return Operation.NAMESPACE if self.method == "GET" and self.name else None
        if self.resource != "resourceclaims":
            return None
        if self.method == "GET" and self.name is None:
            return Operation.WATCH if self.watches else Operation.LIST
        return {
            "GET": Operation.GET,
            "POST": Operation.CREATE,
            "PATCH": Operation.ADOPT,
            "DELETE": Operation.RELEASE,
        }.get(self.method)

    @property
    def verb(self) -> str:
        """The verb of RBAC."""
        verbs = {"POST": "create", "PATCH": "patch", "DELETE": "delete"}
        if self.method == "GET":
            return "watch" if self.watches else ("get" if self.name else "list")
        return verbs.get(self.method, self.method.lower())


def route(request: httpx.Request) -> Route | None:
    """The route of `request`, or None if nothing is served there."""
    path = [segment for segment in request.url.path.split("/") if segment]
    plane = ""
    if path[:4] == _PROJECTS and len(path) > 6 and path[5] == "control-plane":
        plane, path = path[4], path[6:]
    if path[:3] == _QUOTA:
        path, served = path[3:], _QUOTA_RESOURCES
    elif path[:2] == _CORE:
        path, served = path[2:], _CORE_RESOURCES
    else:
        return None
    namespace = None
    if path[:1] == ["namespaces"] and len(path) > 2:
        namespace, path = path[1], path[2:]
    if not path or path[0] not in served or len(path) > 2:
        return None
    name = path[1] if len(path) == 2 else None
    watches = request.url.params.get("watch") in {"true", "1"}
    return Route(plane, path[0], namespace, name, request.method, watches)
