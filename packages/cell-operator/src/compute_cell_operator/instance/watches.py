"""Index and mapping functions of the instance controller: changed object to Instance keys. Pure
(cell.md 2).

A mapping function reads the object before and after the change, so that an Instance which a change
detaches is enqueued too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from compute_api_types import conditions, labels, reasons
from compute_cell_operator.conditions import read_conditions
from compute_cell_operator.indexes import (
    NAMESPACE,
    OWNER,
    index_by_namespace,
    index_by_owner,
    keys_by_index,
)
from compute_cell_operator.instance_facts import read_gates
from compute_cell_operator.planes import INSTANCE
from compute_cell_operator.quota.status import DENIALS, FAILURES
from compute_operator_kit.cache.indexers import IndexFunction
from compute_operator_kit.cache.store import Caches, Change
from compute_operator_kit.core.json import JsonObject, member_object
from compute_operator_kit.core.keys import ObjectKey
from compute_operator_kit.core.objects import Metadata

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
"""Reasons that a metric label may have; any other is counted as Unknown, since a label value that
tenants choose would create series without bound.
"""


def index_by_wait(_: Metadata, body: JsonObject) -> Iterable[str]:
    if labels.QUOTA_GATE not in read_gates(member_object(body, "spec")):
        return ()
    stored = read_conditions(member_object(body, "status"))
    quota = conditions.find(stored, conditions.QUOTA_GRANTED)
    is_known = quota is not None and quota.reason in REASONS
    return (quota.reason if quota is not None and is_known else reasons.UNKNOWN,)


INDEXES: Final[Mapping[str, IndexFunction]] = {
    OWNER: index_by_owner,
    NAMESPACE: index_by_namespace,
    WAITING: index_by_wait,
}


# --- mapping --------------------------------------------------------------------------------------


def map_namespace(change: Change, caches: Caches) -> Iterable[ObjectKey]:
    """All Instances of the Namespace: its labels name the project that pays for them."""
    return keys_by_index(caches, INSTANCE, NAMESPACE, change.key.name)


def map_binding(change: Change, caches: Caches) -> Iterable[ObjectKey]:
    """The Instances of the binding's deployment, which show its refusal in `Ready`."""
    for entry in change.entries:
        for uid in entry.index_values.get(OWNER, ()):
            yield from keys_by_index(caches, INSTANCE, OWNER, uid)
