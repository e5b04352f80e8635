"""Says which Instances a change concerns, and under which values they are found. Pure (cell.md 2).

Every mapping function sees an object before and after the change: what it no longer says must wake
somebody too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from compute_api_types import conditions, labels, reasons
from compute_cell_operator.deployment.observe import OWNER, index_by_owner
from compute_cell_operator.instance.observe import read_gates
from compute_cell_operator.kinds import INSTANCE
from compute_cell_operator.network.observe import OWNER as BINDINGS_BY_OWNER
from compute_cell_operator.plane_names import CELL
from compute_cell_operator.quota_gate.status import DENIALS, FAILURES
from compute_cell_operator.told import read_conditions
from compute_operator_kit.cache import Caches, Change
from compute_operator_kit.indexing import IndexFunction
from compute_operator_kit.keys import ObjectKey
from compute_operator_kit.objects import Metadata
from compute_operator_kit.wire import JsonObject, member_object

NAMESPACE: Final = "namespace"
WAITING: Final = "waiting-for-quota"
"""Index of Instances behind a Quota gate: the reason of their `QuotaGranted`."""

REASONS: Final = frozenset(
    {
        *FAILURES,
        *DENIALS,
        reasons.PENDING_EVALUATION,
        reasons.QUOTA_AVAILABLE,
        reasons.QUOTA_DISABLED,
        reasons.UNKNOWN,
    }
)
"""All that a metric may name; whatever else somebody wrote there is Unknown."""


def index_by_namespace(metadata: Metadata, _: JsonObject) -> Iterable[str]:
    return (metadata.namespace,)


def index_by_wait(_: Metadata, body: JsonObject) -> Iterable[str]:
    if labels.QUOTA_GATE not in read_gates(member_object(body, "spec")):
        return ()
    told = read_conditions(member_object(body, "status"))
    quota = conditions.find(told, conditions.QUOTA_GRANTED)
    is_known = quota is not None and quota.reason in REASONS
    return (quota.reason if quota is not None and is_known else reasons.UNKNOWN,)


INDEXES: Final[Mapping[str, IndexFunction]] = {
    OWNER: index_by_owner,
    NAMESPACE: index_by_namespace,
    WAITING: index_by_wait,
}


# --- whom a change concerns -----------------------------------------------------------------------


def map_namespace(change: Change, caches: Caches) -> Iterable[ObjectKey]:
    """All in it: whose quota they use is written on it."""
    return _instances(caches, NAMESPACE, change.key.name)


def map_binding(change: Change, caches: Caches) -> Iterable[ObjectKey]:
    """The Instances of its deployment: they tell of a network that was refused."""
    for entry in change.entries:
        for uid in entry.values.get(BINDINGS_BY_OWNER, ()):
            yield from _instances(caches, OWNER, uid)


def wake_all(caches: Caches) -> Iterator[ObjectKey]:
    """Every Instance of the cell."""
    for namespace in caches.view(CELL, INSTANCE).index_values(NAMESPACE):
        yield from _instances(caches, NAMESPACE, namespace)


def _instances(caches: Caches, index: str, value: str) -> Iterator[ObjectKey]:
    for entry in caches.view(CELL, INSTANCE).entries_by_index(index, value):
        yield entry.key
