"""What a kustomization does to every resource: namespace, labels, annotations, images. Pure."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final

from compute_api_types.wire import JsonObject, JsonValue
from e2e.kustomization.documents import elements, ensure_inner, inner, text_at
from e2e.kustomization.model import Image, Kustomization, Labels
from e2e.kustomization.resources import Resource, identity_of

# Kinds that make pods, and where their templates are.
_TEMPLATES: Final[dict[str, tuple[tuple[str, ...], ...]]] = {
    **dict.fromkeys(
        ("DaemonSet", "Deployment", "Job", "ReplicaSet", "StatefulSet"), (("spec", "template"),)
    ),
    "CronJob": (("spec", "jobTemplate"), ("spec", "jobTemplate", "spec", "template")),
}
# Where a kind selects pods; the first list is made where it is missing.
_MADE_SELECTORS: Final = {
    "Service": ("spec", "selector"),
    **dict.fromkeys(
        ("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"),
        ("spec", "selector", "matchLabels"),
    ),
}
_FOUND_SELECTORS: Final = {
    "Job": ("spec", "selector", "matchLabels"),
    "NetworkPolicy": ("spec", "podSelector", "matchLabels"),
    "PodDisruptionBudget": ("spec", "selector", "matchLabels"),
}
_IMAGE: Final = re.compile(r"(?P<name>.+?)(:(?P<tag>[\w.{}-]*))?(@(?P<digest>sha256:[\w.{}-]*))?")


def transform(resources: Iterable[Resource], wanted: Kustomization) -> list[Resource]:
    """All resources, in kustomize's order of steps."""
    steps: list[Callable[[JsonObject], None]] = []
    if wanted.namespace:
        steps.append(partial(set_namespace, namespace=wanted.namespace))
    steps += [partial(add_labels, labels=labels) for labels in wanted.labels]
    if wanted.common_annotations:
        steps.append(partial(add_annotations, annotations=wanted.common_annotations))
    steps += [partial(set_image, image=image) for image in wanted.images]
    return [_after(resource, steps) for resource in resources]


def _after(resource: Resource, steps: Iterable[Callable[[JsonObject], None]]) -> Resource:
    for step in steps:
        document = copy.deepcopy(resource.document)
        step(document)
        resource = resource.become(document)
    return resource


def set_namespace(found: JsonObject, namespace: str) -> None:
    """Puts the object there; a Namespace is renamed, and so is what an object says of itself."""
    identity = identity_of(found)
    if identity.kind == "Namespace" and not identity.group:
        ensure_inner(found, "metadata")["name"] = namespace
    elif not identity.is_cluster_scoped:
        ensure_inner(found, "metadata")["namespace"] = namespace
    if identity.kind in {"RoleBinding", "ClusterRoleBinding"}:
        for subject in elements(found, "subjects"):
            if subject.get("name") == "default":
                subject["namespace"] = namespace
    if identity.kind == "APIService":
        ensure_inner(found, "spec", "service")["namespace"] = namespace
    conversion = inner(found, "spec", "conversion", "webhook", "clientConfig", "service")
    if identity.kind == "CustomResourceDefinition" and "namespace" in conversion:
        conversion["namespace"] = namespace


def add_labels(found: JsonObject, labels: Labels) -> None:
    pairs: JsonObject = {**labels.pairs}
    ensure_inner(found, "metadata", "labels").update(pairs)
    if labels.include_templates or labels.include_selectors:
        for path in _TEMPLATES.get(text_at(found, "kind"), ()):
            ensure_inner(found, *path, "metadata", "labels").update(pairs)
    if labels.include_selectors:
        for selector in _selectors(found):
            selector.update(pairs)


def _selectors(found: JsonObject) -> Iterator[JsonObject]:
    kind = text_at(found, "kind")
    if path := _MADE_SELECTORS.get(kind):
        yield ensure_inner(found, *path)
    if path := _FOUND_SELECTORS.get(kind):
        # Unattached where it is missing: a selector for all pods stays one.
        yield inner(found, *path)
    for spread in elements(found, "spec", "template", "spec", "topologySpreadConstraints"):
        yield inner(spread, "labelSelector", "matchLabels")
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for rule in elements(found, "spec", direction):
            for peer in elements(rule, peers):
                yield inner(peer, "podSelector", "matchLabels")


def add_annotations(found: JsonObject, annotations: dict[str, str]) -> None:
    pairs: JsonObject = {**annotations}
    ensure_inner(found, "metadata", "annotations").update(pairs)
    for path in _TEMPLATES.get(text_at(found, "kind"), ()):
        ensure_inner(found, *path, "metadata", "annotations").update(pairs)


def set_image(found: JsonObject, image: Image) -> None:
    """In every list of containers, wherever it is; a CRD only describes some."""
    if text_at(found, "kind") == "CustomResourceDefinition":
        return
    for container in _containers(found):
        if current := text_at(container, "image"):
            container["image"] = derive_image(current, image)


def _containers(found: JsonValue) -> Iterator[JsonObject]:
    if isinstance(found, list):
        for one in found:
            yield from _containers(one)
    if isinstance(found, dict):
        for name, value in found.items():
            if name in {"containers", "initContainers"}:
                yield from elements(value)
            else:
                yield from _containers(value)


def derive_image(current: str, image: Image) -> str:
    """The reference after the change: a new tag or digest replaces both; others stay as is."""
    parts = _IMAGE.fullmatch(current)
    if parts is None or parts["name"] != image.name:
        return current
    tag, digest = parts["tag"], parts["digest"]
    if image.new_tag or image.digest:
        tag, digest = image.new_tag, image.digest
    name = image.new_name or parts["name"]
    return name + (f":{tag}" if tag else "") + (f"@{digest}" if digest else "")
