"""Cached autoscalers, and mapping functions from them to deployments. Pure (autoscaling.md 3).

Apart from `observe`, which plans import: a plan must not depend on the planes registry.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from compute_api_types import labels
from compute_cell_operator.indexes import OWNER, index_by_owner, keys_by_index
from compute_cell_operator.planes import AUTOSCALER, DEPLOYMENT
from compute_operator_kit.cache.store import Caches, Change
from compute_operator_kit.client.interface import Selector
from compute_operator_kit.core.keys import ObjectKey, Role
from compute_operator_kit.planes.engaged_plane import CachedKind

UID: Final = "uid"
"""Index of deployments, which their own controller defines."""

# Optional: a cell that does not serve the kind starts, and shows that it is missing.
CACHED: Final = CachedKind(
    Role.HOME,
    AUTOSCALER,
    indexes={OWNER: index_by_owner},
    selector=Selector(labels=f"{labels.SERVICE_NAME}={labels.OUR_SERVICE}"),
    is_optional=True,
)


def map_autoscaler(change: Change, caches: Caches) -> Iterable[ObjectKey]:
    """The deployment that controls it, and the one that needs its name."""
    owners = {uid for entry in change.entries for uid in entry.index_values.get(OWNER, ())}
    keys = [key for uid in sorted(owners) for key in keys_by_index(caches, DEPLOYMENT, UID, uid)]
    named = caches.lister(change.key.plane, DEPLOYMENT).entry(change.key.namespace, change.key.name)
    if named is not None:
        keys.append(named.key)
    return dict.fromkeys(keys)


def map_to_none(_: Change, __: Caches) -> Iterable[ObjectKey]:
    """Of a kind that is read, and whose changes decide nothing."""
    return ()
