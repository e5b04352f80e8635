"""The purge of a deleted Project's plane (neighbours.md 2.1).

All objects in the project are deleted and then waited for; objects with finalizers wait for their
controllers. The kinds are those of the root's CRDs and a few built-in ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from compute_sim_planes.client.errors import ConflictError, NotFoundError
from compute_sim_planes.client.rest import Client, Resource
from compute_sim_planes.json_types import JsonObject, objects_at, string_at, string_map_at
from compute_sim_planes.milo.kinds import DEFINITIONS, NAMESPACES

_RBAC: Final = "rbac.authorization.k8s.io"
BUILTIN: Final = (
    Resource("", "v1", "configmaps", "ConfigMap"),
    Resource("", "v1", "secrets", "Secret"),
    Resource("", "v1", "events", "Event"),
    Resource("coordination.k8s.io", "v1", "leases", "Lease"),
    Resource(_RBAC, "v1", "roles", "Role"),
    Resource(_RBAC, "v1", "rolebindings", "RoleBinding"),
    Resource(_RBAC, "v1", "clusterroles", "ClusterRole", is_namespaced=False),
    Resource(_RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", is_namespaced=False),
)
# A real API server keeps its own leases and settings in these and recreates them.
_SERVERS_NAMESPACES: Final = frozenset({"kube-public", "kube-system", "kube-node-lease"})
# API servers refuse to delete these, or recreate them.
_PERMANENT_NAMESPACES: Final = frozenset({"default"}) | _SERVERS_NAMESPACES
# kube-controller-manager publishes this ConfigMap into every namespace.
_PUBLISHED: Final = "kube-root-ca.crt"


def derive_resources(definitions: Iterable[JsonObject]) -> list[Resource]:
    """The kinds of CRDs, in their storage version."""
    resources: list[Resource] = []
    for definition in definitions:
        stored = [
            string_at(one, "name")
            for one in objects_at(definition, "spec", "versions")
            if one.get("storage") is True and one.get("served") is True
        ]
        if stored:
            resources.append(
                Resource(
                    string_at(definition, "spec", "group"),
                    stored[0],
                    string_at(definition, "spec", "names", "plural"),
                    string_at(definition, "spec", "names", "kind"),
                    is_namespaced=string_at(definition, "spec", "scope") == "Namespaced",
                )
            )
    return resources


def is_permanent(resource: Resource, existing: JsonObject) -> bool:
    """Whether an object belongs to the server and stays in an empty plane."""
    name = string_at(existing, "metadata", "name")
    if resource == NAMESPACES:
        return name in _PERMANENT_NAMESPACES
    if string_at(existing, "metadata", "namespace") in _SERVERS_NAMESPACES:
        return True
    labels = string_map_at(existing, "metadata", "labels")
    if labels.get("kubernetes.io/bootstrapping") == "rbac-defaults":
        return True
    return resource.plural == "configmaps" and name == _PUBLISHED


async def delete_all(root: Client, plane: Client) -> list[str]:
    """Delete everything that is not being deleted; returns descriptions of what is left."""
    definitions = (await root.list(DEFINITIONS)).items
    left: list[str] = []
    # Namespaces first: a terminating namespace accepts no new objects.
    for resource in (NAMESPACES, *BUILTIN, *derive_resources(definitions)):
        for existing in await _list(plane, resource):
            if not is_permanent(resource, existing):
                await _delete(plane, resource, existing)
                left.append(_describe(resource, existing))
    return left


async def _list(plane: Client, resource: Resource) -> list[JsonObject]:
    try:
        return (await plane.list(resource)).items
    except NotFoundError:
        # The kind is not served (any more), so it has no objects.
        return []


async def _delete(plane: Client, resource: Resource, existing: JsonObject) -> None:
    if string_at(existing, "metadata", "deletionTimestamp"):
        return
    with suppress(ConflictError):
        await plane.delete(
            resource,
            string_at(existing, "metadata", "name"),
            namespace=string_at(existing, "metadata", "namespace"),
            uid=string_at(existing, "metadata", "uid"),
            propagation="Background",
        )


def _describe(resource: Resource, existing: JsonObject) -> str:
    """The text for a namespace was observed, the others are ours."""
    name = string_at(existing, "metadata", "name")
    if resource == NAMESPACES:
        return f'namespace "{name}" is still terminating'
    group = f".{resource.group}" if resource.group else ""
    return f'{resource.plural}{group} "{name}" still exists'
