"""Whether the first lists show an Instance with a projection that is out of date and is reconciled
first. Pure.

Without it, after a start, a changed Instance waits behind all that are up to date. It only orders
keys: an out-of-date projection that it misses is reconciled in its turn.
"""

from __future__ import annotations

from compute_management_operator.hub.identity import read_project_namespace
from compute_management_operator.hub.projection.observe import is_engaged
from compute_management_operator.hub.status_compare import comparable_status
from compute_management_operator.planes import HUB, INSTANCE
from compute_operator_kit.cache.store import Caches
from compute_operator_kit.core.keys import ObjectKey
from compute_operator_kit.core.object_decoder import peek_status


def is_out_of_date(key: ObjectKey, caches: Caches) -> bool:
    """Deleting, without a projection, or with one of another status."""
    entry = (
        caches.lister(HUB, INSTANCE).entry(key.namespace, key.name) if key.plane == HUB else None
    )
    place = None if entry is None else read_project_namespace(entry.metadata)
    if entry is None or place is None or not is_engaged(caches, place.plane):
        return False  # its project is found by a reconcile only
    shown = caches.lister(place.plane, INSTANCE).entry(place.namespace, key.name)
    if shown is None or entry.metadata.is_deleting or shown.metadata.is_deleting:
        return True
    reported = peek_status(entry.snapshot.raw)
    return comparable_status(reported) != comparable_status(peek_status(shown.snapshot.raw))
