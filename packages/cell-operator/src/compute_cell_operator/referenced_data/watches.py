"""Index and mapping functions of referenced data: changed object to deployment and Instance keys.
Pure (cell.md 2).

Copies are cached by a label selector and as metadata; a change of their values changes the version
they were made from, which is in their metadata.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from compute_api_types import labels
from compute_api_types.referenced_data.references import references
from compute_cell_operator.indexes import OWNER, keys_by_index
from compute_cell_operator.planes import CELL, CONFIG_MAP, DEPLOYMENT, INSTANCE, SECRET
from compute_cell_operator.referenced_data.judgement import DataMode
from compute_cell_operator.settings import CellSettings
from compute_operator_kit.cache.lister import CachedObject
from compute_operator_kit.cache.store import Caches, Change
from compute_operator_kit.client.interface import EVERYTHING, Selector
from compute_operator_kit.core.json import JsonObject, member_object
from compute_operator_kit.core.keys import ObjectKey, Role
from compute_operator_kit.core.objects import Metadata
from compute_operator_kit.planes.engaged_plane import CachedKind

REFERENCE: Final = "reference"
"""Index of deployments: `namespace/Kind/name` of each object that the template names."""

KINDS: Final = (CONFIG_MAP, SECRET)
COPIES: Final = Selector(labels=f"{labels.REFERENCED_DATA}={labels.IS_REFERENCED_DATA}")


def derive_mode(settings: CellSettings) -> DataMode:
    if not settings.delivers_data:
        return DataMode.OFF
    return DataMode.COPIES if settings.is_federated else DataMode.SOURCES


def cached_kinds(mode: DataMode) -> tuple[CachedKind, ...]:
    """ConfigMaps and Secrets as metadata; none while Instances do not wait for them."""
    if mode is DataMode.OFF:
        return ()
    selector = COPIES if mode is DataMode.COPIES else EVERYTHING
    return tuple(CachedKind(Role.HOME, kind, selector=selector) for kind in KINDS)


def index_by_reference(metadata: Metadata, body: JsonObject) -> Iterable[str]:
    template = member_object(member_object(body, "spec"), "template")
    return tuple(f"{metadata.namespace}/{one.token}" for one in references(template))


def map_to_deployments(change: Change, caches: Caches) -> Iterator[ObjectKey]:
    """A ConfigMap or Secret → the deployments whose template names it."""
    return keys_by_index(caches, DEPLOYMENT, REFERENCE, _reference(change))


def map_to_instances(change: Change, caches: Caches) -> Iterator[ObjectKey]:
    """A ConfigMap or Secret → the Instances of those deployments."""
    for entry in caches.lister(CELL, DEPLOYMENT).entries_by_index(REFERENCE, _reference(change)):
        yield from keys_by_index(caches, INSTANCE, OWNER, entry.metadata.uid)


def map_deployment(change: Change, caches: Caches) -> Iterable[ObjectKey]:
    """A deployment whose template, or what it expects of its data, has changed → its Instances."""
    entry = change.after
    if entry is None or not entry.index_values.get(REFERENCE):
        return ()
    if _expectation(change.before) == _expectation(entry):
        return ()
    return keys_by_index(caches, INSTANCE, OWNER, entry.metadata.uid)


def _expectation(entry: CachedObject | None) -> tuple[object, ...]:
    if entry is None:
        return ()
    annotations = entry.metadata.annotations
    expected = (annotations.get(name) for name in labels.REFERENCED_DATA_ANNOTATIONS)
    return (entry.metadata.uid, entry.metadata.generation, *expected)


def _reference(change: Change) -> str:
    return f"{change.key.namespace}/{change.key.kind.kind}/{change.key.name}"
