"""Whether the first lists show a Workload that is out of date and is reconciled first. Pure.

Without it, after a start, an edited Workload waits behind all that are up to date. It only orders
keys: an out-of-date Workload that it misses, such as one with an edited deployment, is reconciled
in its turn.
"""

from __future__ import annotations

from compute_api_types import labels
from compute_management_operator.planes import DEPLOYMENT, WORKLOAD
from compute_management_operator.workload.observe import DEPLOYMENTS_BY_WORKLOAD
from compute_operator_kit.cache.store import Caches
from compute_operator_kit.core.json import member_int
from compute_operator_kit.core.keys import ObjectKey
from compute_operator_kit.core.object_decoder import peek_status


def is_out_of_date(key: ObjectKey, caches: Caches) -> bool:
    """Deleting, without finalizer, edited since its status was written, or lacking deployments."""
    entry = caches.lister(key.plane, WORKLOAD).entry(key.namespace, key.name)
    if entry is None:
        return False  # deleted, and its finalizer has removed what it owned
    metadata = entry.metadata
    if metadata.is_deleting or labels.WORKLOAD_FINALIZER not in metadata.finalizers:
        return True
    status = peek_status(entry.snapshot.raw)
    if member_int(status, "observedGeneration") != metadata.generation:
        return True
    owned = caches.lister(key.plane, DEPLOYMENT).entries_by_index(
        DEPLOYMENTS_BY_WORKLOAD, metadata.uid
    )
    return member_int(status, "deployments") != len(owned)
