"""Deletion of a stored object: removed at once, or marked until its finalizers are gone.

Clients' deletes, the garbage collector and the namespace controller share it, so that all three
behave alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from compute_sim_planes.api_server.storage import system_fields
from compute_sim_planes.api_server.storage.kind_rules import rules_of
from compute_sim_planes.api_server.storage.records import StoredObject, encode
from compute_sim_planes.api_server.storage.store import Store
from compute_sim_planes.json_types import JsonObject, object_at, strings_at

_GRACE: Final = "deletionGracePeriodSeconds"


@dataclass(frozen=True, slots=True)
class Deletion:
    """The object as it is now, or as it last was."""

    last: StoredObject
    gone: bool


def delete_stored(
    store: Store,
    existing: StoredObject,
    propagation: str | None,
    *,
    now: datetime,
    actor: str,
    grace: int | None = None,
) -> Deletion:
    """Delete a stored object; repeating it has no effect. `grace` are seconds that were asked
    for, of a kind that ends gracefully.
    """
    desired = existing.decode()
    rules = rules_of(existing.kind)
    system_fields.set_deletion_finalizers(desired, propagation)
    rules.prepare_delete(desired, now)
    period = rules.grace(desired, grace)
    if not period and not strings_at(desired, "metadata", "finalizers"):
        over: JsonObject = {**desired, "metadata": {**object_at(desired, "metadata"), _GRACE: 0}}
        if rules.can_be_removed(over):
            return Deletion(store.remove(existing, actor), gone=True)
    system_fields.mark_deleted(desired, now, timedelta(seconds=period))
    object_at(desired, "metadata")["resourceVersion"] = str(existing.revision)
    if encode(desired) == existing.raw:
        return Deletion(existing, gone=False)
    return Deletion(store.replace(existing, existing.kind, desired, actor), gone=False)
