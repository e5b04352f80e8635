"""Whether what the first list shows of a Workload says that something is to be done. Pure.

Only a hint: it decides who is looked at first after a start, never what is done. What it does not
see, such as an edit of a deployment, waits for its turn.
"""

from __future__ import annotations

from compute_api_types import labels
from compute_management_operator.kinds import DEPLOYMENT, WORKLOAD
from compute_management_operator.workload.observe import DEPLOYMENTS_BY_WORKLOAD
from compute_operator_kit.cache import Caches
from compute_operator_kit.keys import ObjectKey
from compute_operator_kit.served import peek_status
from compute_operator_kit.wire import member_int


def is_behind(key: ObjectKey, caches: Caches) -> bool:
    """Going, never begun, edited since its status was written, or short of a deployment."""
    entry = caches.view(key.plane, WORKLOAD).entry(key.namespace, key.name)
    if entry is None:
        return False  # gone, and nothing that it owned waits for us
    found = entry.metadata
    if found.is_deleting or labels.WORKLOAD_FINALIZER not in found.finalizers:
        return True
    status = peek_status(entry.snapshot.raw)
    if member_int(status, "observedGeneration") != found.generation:
        return True
    owned = caches.view(key.plane, DEPLOYMENT).entries_by_index(DEPLOYMENTS_BY_WORKLOAD, found.uid)
    return member_int(status, "deployments") != len(owned)
