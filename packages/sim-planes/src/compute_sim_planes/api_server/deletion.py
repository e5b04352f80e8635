"""What deleting an object does to it: gone at once, or marked and waiting for its finalizers.

Shared by clients' deletes, the garbage collector and the namespace controller, so that all three
mean the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from compute_sim_planes.api_server import system_fields
from compute_sim_planes.api_server.kind_rules import rules_of
from compute_sim_planes.api_server.storage.records import Stored, encode
from compute_sim_planes.api_server.storage.store import Store
from compute_sim_planes.json_types import object_at, strings_at


@dataclass(frozen=True, slots=True)
class Deletion:
    """The object as it now is, or last was."""

    last: Stored
    gone: bool


def delete_stored(
    store: Store, found: Stored, propagation: str | None, *, now: datetime, actor: str
) -> Deletion:
    """Delete what is stored; done twice it changes nothing the second time."""
    wanted = found.decode()
    rules = rules_of(found.kind)
    system_fields.set_deletion_finalizers(wanted, propagation)
    rules.prepare_delete(wanted, now)
    if not strings_at(wanted, "metadata", "finalizers") and rules.may_leave(wanted):
        return Deletion(store.remove(found, actor), gone=True)
    system_fields.mark_deleted(wanted, now)
    object_at(wanted, "metadata")["resourceVersion"] = str(found.revision)
    if encode(wanted) == found.raw:
        return Deletion(found, gone=False)
    return Deletion(store.replace(found, found.kind, wanted, actor), gone=False)
