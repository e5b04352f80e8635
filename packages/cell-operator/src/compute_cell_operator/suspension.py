"""Whether the deployment of an Instance is suspended, from caches (suspension.md 4).

The instance controller and quota decide from the same answer: read in two ways, one could remove a
gate while the other holds the claim. A deployment that cannot be read is no evidence, and the
Instance stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from compute_api_types import labels
from compute_cell_operator.indexes import OWNER, keys_by_index
from compute_cell_operator.planes import DEPLOYMENT, INSTANCE
from compute_operator_kit.cache.lister import CachedObject, Caches, Change
from compute_operator_kit.core.json import JsonObject, member_object
from compute_operator_kit.core.keys import ObjectKey
from compute_operator_kit.core.objects import Snapshot

SUSPENDED: Final = "suspended"
"""The member of a status, of WorkloadDeployment and Instance."""


def read_suspended(status: JsonObject) -> bool:
    """Whether a stored status is that of a suspended object; absent means false."""
    return status.get(SUSPENDED) is True


def observe_suspension(instance: Snapshot, body: JsonObject, caches: Caches) -> bool:
    """Of an Instance: whether the deployment that controls it is suspended; as its own status
    records it where that deployment is absent or unreadable.
    """
    owner = instance.metadata.controller
    lister = caches.lister(instance.key.plane, DEPLOYMENT)
    if owner is not None and owner.kind == DEPLOYMENT.kind and owner.name:
        deployment = lister.get(instance.key.namespace, owner.name)
        if isinstance(deployment, Snapshot) and deployment.metadata.uid == owner.uid:
            return labels.is_suspended(deployment.metadata.annotations)
    return read_suspended(member_object(body, "status"))


def is_transition(change: Change) -> bool:
    """Whether a change of a deployment suspends or resumes it."""
    return _is_suspended(change.before) != _is_suspended(change.after)


def map_deployment(change: Change, caches: Caches) -> Iterable[ObjectKey]:
    """A deployment that is suspended or resumes → its Instances."""
    entry = change.after
    if entry is None or not is_transition(change):
        return ()
    return keys_by_index(caches, INSTANCE, OWNER, entry.metadata.uid)


def _is_suspended(entry: CachedObject | None) -> bool:
    return entry is not None and labels.is_suspended(entry.metadata.annotations)
