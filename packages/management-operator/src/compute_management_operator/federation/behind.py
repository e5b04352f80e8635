"""Whether what the first lists show of a deployment and its copy says that something is to be done.
Pure.

Only a hint: it decides who is looked at first after a start, never what is done. What it does not
see waits for its turn.
"""

from __future__ import annotations

from compute_api_types import conditions, labels
from compute_management_operator.federation.observe import find_copies
from compute_management_operator.kinds import DEPLOYMENT
from compute_management_operator.plane_names import HUB
from compute_management_operator.showing import shown_of
from compute_operator_kit.cache import Caches, Entry
from compute_operator_kit.keys import ObjectKey
from compute_operator_kit.served import peek_status
from compute_operator_kit.wire import member_int


def is_behind(key: ObjectKey, caches: Caches) -> bool:
    """Going, never begun, without a copy, or with one that says something else."""
    entry = caches.view(key.plane, DEPLOYMENT).entry(key.namespace, key.name)
    if entry is None:
        return bool(find_copies(caches, key))  # they have outlived it
    found = entry.metadata
    if found.is_deleting or labels.FEDERATION_FINALIZER not in found.finalizers:
        return True
    recorded = found.annotations.get(labels.FEDERATION_NAMESPACE, "")
    copy = caches.view(HUB, DEPLOYMENT).entry(recorded, key.name)
    return copy is None or _differs(entry, copy)


def _differs(entry: Entry, copy: Entry) -> bool:
    stamped = copy.metadata.annotations.get(labels.PROJECT_GENERATION)
    if stamped != str(entry.metadata.generation) or copy.metadata.is_deleting:
        return True
    told = peek_status(copy.snapshot.raw)
    if member_int(told, "observedGeneration") != copy.metadata.generation:
        return True  # somebody has edited the copy, or its cells have not answered yet
    shown = peek_status(entry.snapshot.raw)
    return shown_of(told, but=conditions.CELLS_REPORTING) != shown_of(shown)
