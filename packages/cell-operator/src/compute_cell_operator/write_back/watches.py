"""Index and mapping functions of write-back: changed object to write-back keys. Pure (cell.md 2).

A write-back key is the key of an Instance of the cell, whether it exists or not. One name has one
key, so that a copy is never written and deleted at the same time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from compute_cell_operator.indexes import (
    NAMESPACE,
    OWNER,
    index_by_namespace,
    index_by_owner,
    keys_by_index,
)
from compute_cell_operator.planes import CELL, INSTANCE
from compute_cell_operator.write_back.observe import read_deployment_uid
from compute_operator_kit.cache.indexers import IndexFunction
from compute_operator_kit.cache.store import CachedObject, Caches, Change
from compute_operator_kit.core.keys import ObjectKey

INSTANCE_INDEXES: Final[Mapping[str, IndexFunction]] = {
    OWNER: index_by_owner,
    NAMESPACE: index_by_namespace,
}


def map_copy(change: Change, _: Caches) -> Iterable[ObjectKey]:
    return (derive_key(change.key),)


def derive_key(copy: ObjectKey) -> ObjectKey:
    """The write-back key of a copy."""
    return ObjectKey(CELL, INSTANCE, copy.namespace, copy.name)


def map_deployment(change: Change, caches: Caches) -> Iterable[ObjectKey]:
    """Its Instances, where the owner of their copies on the hub has changed: every update of its
    status would enqueue all of them otherwise.
    """
    before, after = change.before, change.after
    if before is not None and after is not None and _read(before) == _read(after):
        return ()
    owners = dict.fromkeys(entry.metadata.uid for entry in change.entries)
    return [key for uid in owners for key in keys_by_index(caches, INSTANCE, OWNER, uid)]


def _read(deployment: CachedObject) -> tuple[str, str]:
    """The values that a copy takes from a deployment of the cell."""
    return (deployment.metadata.uid, read_deployment_uid(deployment.metadata))


def map_namespace(change: Change, caches: Caches) -> Iterable[ObjectKey]:
    """The Instances in it: its labels are the identity of their copies."""
    return keys_by_index(caches, INSTANCE, NAMESPACE, change.key.name)
