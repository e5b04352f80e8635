"""Index functions of the cell's caches that several controllers share, and lookups by them. Pure.

The kit keeps one store per kind and merges the indexes of all its readers; two functions under one
index name stop the operator at start, so a shared index has one definition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from compute_cell_operator.planes import CELL
from compute_operator_kit.cache.store import Caches
from compute_operator_kit.core.json import JsonObject
from compute_operator_kit.core.keys import Kind, ObjectKey
from compute_operator_kit.core.objects import Metadata

OWNER: Final = "owner"
"""UID of an object's controller."""
NAMESPACE: Final = "namespace"
"""Namespace of an object."""


def index_by_owner(metadata: Metadata, _: JsonObject) -> Iterable[str]:
    controller = metadata.controller
    return (controller.uid,) if controller is not None else ()


def index_by_namespace(metadata: Metadata, _: JsonObject) -> Iterable[str]:
    return (metadata.namespace,)


def keys_by_index(caches: Caches, kind: Kind, index: str, value: str) -> Iterator[ObjectKey]:
    """Keys of the cell's objects of a kind under one value of an index."""
    for entry in caches.lister(CELL, kind).entries_by_index(index, value):
        yield entry.key


def keys_of_kind(caches: Caches, kind: Kind) -> Iterator[ObjectKey]:
    """Keys of all the cell's objects of a kind, which has the index `NAMESPACE`."""
    for namespace in caches.lister(CELL, kind).index_values(NAMESPACE):
        yield from keys_by_index(caches, kind, NAMESPACE, namespace)
