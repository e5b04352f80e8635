"""Which resources a patch is for, and which of the two forms it has. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from compute_api_types.wire import JsonObject, JsonValue
from e2e.kustomization.documents import parse_objects, parse_values
from e2e.kustomization.errors import KustomizationError
from e2e.kustomization.json_patch import json_patch
from e2e.kustomization.model import Patch, Selector
from e2e.kustomization.resources import Identity, Resource, identity_of
from e2e.kustomization.strategic_merge import is_deletion, strategic_merge


def apply_patch(resources: list[Resource], patch: Patch, text: str) -> list[Resource]:
    """All resources, those that are meant patched; one a patch deletes is gone."""
    operations = parse_values(text)
    if len(operations) == 1 and isinstance(operations[0], list):
        if patch.target is None:
            raise KustomizationError("patching: a JSON patch needs a target")
        return _apply_json_patch(resources, patch.target, operations[0])
    wanted = parse_objects(text)
    if patch.target is not None:
        if len(wanted) != 1:
            raise KustomizationError("patching: a target goes with exactly one patch")
        meant = [one for one in resources if _is_selected(one, patch.target)]
        return _merge_into(resources, meant, wanted[0])
    for one in wanted:
        resources = _merge_into(resources, [_find(resources, identity_of(one))], one)
    return resources


def _find(resources: Iterable[Resource], wanted: Identity) -> Resource:
    found = [one for one in resources if any(wanted.is_same(name) for name in one.identities)]
    if len(found) != 1:
        count = "no resource matches" if not found else "several resources match"
        raise KustomizationError(f"patching {wanted.kind} {wanted.name!r}: {count}")
    return found[0]


def _is_selected(resource: Resource, target: Selector) -> bool:
    names = resource.identities
    return (
        _matches(target.group, [names[-1].group])
        and _matches(target.version, [names[-1].version])
        and _matches(target.kind, [names[-1].kind])
        and _matches(target.name, [name.name for name in names])
        and _matches(target.namespace, [name.effective_namespace for name in names])
    )


def _matches(pattern: str, values: Iterable[str]) -> bool:
    return not pattern or any(re.fullmatch(pattern, value) for value in values)


def _merge_into(
    resources: Iterable[Resource], meant: list[Resource], patch: JsonObject
) -> list[Resource]:
    if is_deletion(patch):
        return [one for one in resources if one not in meant]
    return [one.become(strategic_merge(one, patch)) if one in meant else one for one in resources]


def _apply_json_patch(
    resources: Iterable[Resource], target: Selector, operations: list[JsonValue]
) -> list[Resource]:
    return [
        one.become(json_patch(one.document, operations)) if _is_selected(one, target) else one
        for one in resources
    ]
