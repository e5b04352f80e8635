"""Says which write-back keys a change concerns. Pure (cell.md 2).

A write-back key is the key of an Instance of the cell, whether there is one or not: per name there
is one, so that a copy is never written and removed at the same time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from compute_cell_operator.deployment.observe import OWNER, index_by_owner
from compute_cell_operator.instance.mapping import NAMESPACE, index_by_namespace
from compute_cell_operator.kinds import INSTANCE
from compute_cell_operator.plane_names import CELL
from compute_cell_operator.write_back.observe import read_deployment_uid
from compute_operator_kit.cache import Caches, Change, Entry
from compute_operator_kit.indexing import IndexFunction
from compute_operator_kit.keys import ObjectKey

INSTANCE_INDEXES: Final[Mapping[str, IndexFunction]] = {
    OWNER: index_by_owner,
    NAMESPACE: index_by_namespace,
}


def map_copy(change: Change, _: Caches) -> Iterable[ObjectKey]:
    return (derive_key(change.key),)


def derive_key(copy: ObjectKey) -> ObjectKey:
    """The key that looks after a copy."""
    return ObjectKey(CELL, INSTANCE, copy.namespace, copy.name)


def map_deployment(change: Change, caches: Caches) -> Iterable[ObjectKey]:
    """Its Instances, where it no longer says the same about which deployment of the hub owns their
    copies: with every word of its status it would wake as many of them as it has.
    """
    before, after = change.before, change.after
    if before is not None and after is not None and _read(before) == _read(after):
        return ()
    owners = dict.fromkeys(entry.metadata.uid for entry in change.entries)
    return [key for uid in owners for key in _instances(caches, OWNER, uid)]


def _read(deployment: Entry) -> tuple[str, str]:
    """All that a copy takes from a deployment of the cell."""
    return (deployment.metadata.uid, read_deployment_uid(deployment.metadata))


def map_namespace(change: Change, caches: Caches) -> Iterable[ObjectKey]:
    """The Instances in it: whose they are is written on it."""
    return _instances(caches, NAMESPACE, change.key.name)


def _instances(caches: Caches, index: str, value: str) -> Iterator[ObjectKey]:
    for entry in caches.view(CELL, INSTANCE).entries_by_index(index, value):
        yield entry.key
