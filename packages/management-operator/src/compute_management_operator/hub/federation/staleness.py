"""Whether the first lists show a deployment that is out of date and is reconciled first. Pure.

Without it, after a start, an edited deployment waits behind all that are up to date. It only orders
keys: an out-of-date deployment that it misses is reconciled in its turn.
"""

from __future__ import annotations

from compute_api_types import conditions, labels
from compute_management_operator.hub.federation.observe import find_copies
from compute_management_operator.hub.status_compare import comparable_status
from compute_management_operator.planes import DEPLOYMENT, HUB
from compute_operator_kit.cache.store import CachedObject, Caches
from compute_operator_kit.core.json import member_int
from compute_operator_kit.core.keys import ObjectKey
from compute_operator_kit.core.object_decoder import peek_status


def is_out_of_date(key: ObjectKey, caches: Caches) -> bool:
    """Deleting, without finalizer or copy, or with a copy that differs."""
    entry = caches.lister(key.plane, DEPLOYMENT).entry(key.namespace, key.name)
    if entry is None:
        return bool(find_copies(caches, key))  # orphans
    metadata = entry.metadata
    if metadata.is_deleting or labels.FEDERATION_FINALIZER not in metadata.finalizers:
        return True
    recorded = metadata.annotations.get(labels.FEDERATION_NAMESPACE, "")
    copy = caches.lister(HUB, DEPLOYMENT).entry(recorded, key.name)
    return copy is None or _differs(entry, copy)


def _differs(entry: CachedObject, copy: CachedObject) -> bool:
    stamped = copy.metadata.annotations.get(labels.PROJECT_GENERATION)
    if stamped != str(entry.metadata.generation) or copy.metadata.is_deleting:
        return True
    reported = peek_status(copy.snapshot.raw)
    if member_int(reported, "observedGeneration") != copy.metadata.generation:
        return True  # the copy was edited, or its cells have not answered yet
    shown = peek_status(entry.snapshot.raw)
    return comparable_status(reported, but=conditions.CELLS_REPORTING) != comparable_status(shown)
