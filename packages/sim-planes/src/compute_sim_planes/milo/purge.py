"""Emptying the plane of a Project that is deleted (neighbours.md 2.1).

Everything that can lie in a project is deleted and then waited for; objects with finalizers wait
for whoever set them. Over the neighbours' client port: the kinds are the root's definitions and a
few that every server has.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from compute_sim_planes.client import Client, Resource
from compute_sim_planes.client_errors import ConflictError, NotFoundError
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
# A real API server keeps leases and settings of its own in them and writes them again at once.
_SERVERS_NAMESPACES: Final = frozenset({"kube-public", "kube-system", "kube-node-lease"})
# API servers refuse to delete these, or make them again by themselves.
_LASTING_NAMESPACES: Final = frozenset({"default"}) | _SERVERS_NAMESPACES
# What kube-controller-manager publishes into every namespace, again and again.
_PUBLISHED: Final = "kube-root-ca.crt"


def derive_resources(definitions: Iterable[JsonObject]) -> list[Resource]:
    """The kinds of definitions, in the version they are stored in."""
    found: list[Resource] = []
    for definition in definitions:
        stored = [
            string_at(one, "name")
            for one in objects_at(definition, "spec", "versions")
            if one.get("storage") is True and one.get("served") is True
        ]
        if stored:
            found.append(
                Resource(
                    string_at(definition, "spec", "group"),
                    stored[0],
                    string_at(definition, "spec", "names", "plural"),
                    string_at(definition, "spec", "names", "kind"),
                    is_namespaced=string_at(definition, "spec", "scope") == "Namespaced",
                )
            )
    return found


def is_lasting(resource: Resource, found: JsonObject) -> bool:
    """Whether an object is the server's own and stays in an empty plane."""
    name = string_at(found, "metadata", "name")
    if resource == NAMESPACES:
        return name in _LASTING_NAMESPACES
    if string_at(found, "metadata", "namespace") in _SERVERS_NAMESPACES:
        return True
    labels = string_map_at(found, "metadata", "labels")
    if labels.get("kubernetes.io/bootstrapping") == "rbac-defaults":
        return True
    return resource.plural == "configmaps" and name == _PUBLISHED


async def delete_all(root: Client, plane: Client) -> list[str]:
    """Deletes what is not going already; what is left afterwards, in words."""
    definitions = (await root.list(DEFINITIONS)).items
    left: list[str] = []
    # Namespaces first: nothing new comes into one that is terminating.
    for resource in (NAMESPACES, *BUILTIN, *derive_resources(definitions)):
        for found in await _list(plane, resource):
            if not is_lasting(resource, found):
                await _delete(plane, resource, found)
                left.append(_describe(resource, found))
    return left


async def _list(plane: Client, resource: Resource) -> list[JsonObject]:
    try:
        return (await plane.list(resource)).items
    except NotFoundError:
        # Not served here (any more): nothing can lie there.
        return []


async def _delete(plane: Client, resource: Resource, found: JsonObject) -> None:
    if string_at(found, "metadata", "deletionTimestamp"):
        return
    with suppress(ConflictError):
        await plane.delete(
            resource,
            string_at(found, "metadata", "name"),
            namespace=string_at(found, "metadata", "namespace"),
            uid=string_at(found, "metadata", "uid"),
            propagation="Background",
        )


def _describe(resource: Resource, found: JsonObject) -> str:
    """Of a namespace the words were observed, of the rest they are ours."""
    name = string_at(found, "metadata", "name")
    if resource == NAMESPACES:
        return f'namespace "{name}" is still terminating'
    group = f".{resource.group}" if resource.group else ""
    return f'{resource.plural}{group} "{name}" still exists'
