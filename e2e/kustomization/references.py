"""Fields that name another resource, once that one has its final name and namespace. Pure.

A ConfigMap gets its hash and a resource its namespace late, so whoever names it is told last.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from typing import Final

from compute_api_types.wire import JsonObject, JsonValue
from e2e.kustomization.documents import elements, inner, text_at
from e2e.kustomization.resources import Resource

_POD_SPECS: Final = {
    "Pod": ("spec",),
    "CronJob": ("spec", "jobTemplate", "spec", "template", "spec"),
    **dict.fromkeys(
        ("DaemonSet", "Deployment", "Job", "ReplicaSet", "StatefulSet"),
        ("spec", "template", "spec"),
    ),
}


def fix_references(resources: list[Resource]) -> list[Resource]:
    """All resources, each naming the others as they are now."""
    return [_fixed(resource, resources) for resource in resources]


def _fixed(resource: Resource, resources: list[Resource]) -> Resource:
    document = copy.deepcopy(resource.document)
    for holder in _config_map_names(document):
        if found := _referred("ConfigMap", text_at(holder, "name"), resource, resources):
            holder["name"] = found.identity.name
    for rule in elements(document, "rules"):
        _fix_resource_names(rule, resource, resources)
    for kind, holder in _whole_references(document):
        _fix_whole(kind, holder, resource, resources)
    return resource.become(document)


def _config_map_names(document: JsonObject) -> Iterator[JsonObject]:
    path = _POD_SPECS.get(text_at(document, "kind"))
    pod = inner(document, *path) if path else {}
    for volume in elements(pod, "volumes"):
        yield inner(volume, "configMap")
        for source in elements(volume, "projected", "sources"):
            yield inner(source, "configMap")
    for container in (*elements(pod, "containers"), *elements(pod, "initContainers")):
        for variable in elements(container, "env"):
            yield inner(variable, "valueFrom", "configMapKeyRef")
        for source in elements(container, "envFrom"):
            yield inner(source, "configMapRef")


def _fix_resource_names(rule: JsonObject, by: Resource, resources: list[Resource]) -> None:
    names = rule.get("resourceNames")
    if isinstance(names, list):
        rule["resourceNames"] = [_fixed_name(name, by, resources) for name in names]


def _fixed_name(name: JsonValue, by: Resource, resources: list[Resource]) -> JsonValue:
    found = _referred("ConfigMap", str(name), by, resources)
    return found.identity.name if found else name


def _whole_references(document: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    """Objects with name and namespace, and the kind they name."""
    match text_at(document, "kind"):
        case "RoleBinding" | "ClusterRoleBinding":
            for subject in elements(document, "subjects"):
                yield "ServiceAccount", subject
        case "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration":
            for webhook in elements(document, "webhooks"):
                yield "Service", inner(webhook, "clientConfig", "service")
        case _:
            return


def _fix_whole(kind: str, holder: JsonObject, by: Resource, resources: list[Resource]) -> None:
    candidates = _in_namespace(resources, text_at(holder, "namespace"))
    found = _referred(kind, text_at(holder, "name"), by, candidates)
    if found and found.identity.namespace:
        holder["name"], holder["namespace"] = found.identity.name, found.identity.namespace


def _in_namespace(resources: list[Resource], namespace: str) -> list[Resource]:
    """Those that were there when they were written, or, if there are none, that are there now."""
    if not namespace:
        return resources
    written = [r for r in resources if r.identities[0].effective_namespace == namespace]
    return written or [r for r in resources if r.identity.effective_namespace == namespace]


def _referred(kind: str, name: str, by: Resource, among: Iterable[Resource]) -> Resource | None:
    """The resource that was called so; None when there is none, or more than one could be meant."""
    found = [
        one
        for one in among
        if any((known.kind, known.name) == (kind, name) for known in one.identities)
        and _may_refer(by, one)
    ]
    return found[0] if len(found) == 1 else None


def _may_refer(by: Resource, to: Resource) -> bool:
    mine, theirs = by.identity, to.identity
    anywhere = mine.is_cluster_scoped or theirs.is_cluster_scoped or theirs.kind == "ServiceAccount"
    return anywhere or mine.effective_namespace == theirs.effective_namespace
