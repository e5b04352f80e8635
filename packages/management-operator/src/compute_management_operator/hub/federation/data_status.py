"""The condition `ReferencedDataReady` of a project deployment, and the annotation for people. Pure
(referenced-data.md 4).

Both are written from what federation computed and never read back: a write of a tenant to them
changes nothing on the hub.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from compute_api_types import conditions, labels, reasons
from compute_management_operator.hub.federation.observe import ObservedDeployment, ProjectDeployment
from compute_management_operator.hub.federation.plan.events import ACTION
from compute_operator_kit.core.json import Json, JsonObject
from compute_operator_kit.intents.intents import Ensure, OwnedFields, RecordEvent, SetStatus

STATED = conditions.REFERENCED_DATA_READY


def is_stated_here(seen: ObservedDeployment, condition_type: str) -> bool:
    """Whether a condition is federation's, so that none is mirrored."""
    return condition_type == STATED and seen.live.data is not None


def is_out_of_date(seen: ObservedDeployment, deployment: ProjectDeployment) -> bool:
    """Whether the stored condition is not what is known now."""
    data = seen.live.data
    if data is None or data.is_kept:
        return False
    stored = conditions.find(deployment.status.stored.conditions, STATED)
    if stored is None or data.condition is None:
        return stored is not None or data.condition is not None
    desired = data.condition
    message = conditions.derive_message(desired.message)
    return (stored.status, stored.reason, stored.message) != (
        desired.status,
        desired.reason,
        message,
    )


def state_data(seen: ObservedDeployment, status: JsonObject, now: datetime) -> JsonObject:
    """The status with the condition as it is known now."""
    data = seen.live.data
    if data is None or data.is_kept:
        return status
    entries = status.get("conditions")
    documents: list[Json] = list(entries) if isinstance(entries, list) else []
    if data.condition is None:
        kept = [one for one in documents if not (isinstance(one, dict) and _is_ours(one))]
        return {**status, "conditions": kept} if len(kept) < len(documents) else status
    merged = conditions.merge_documents(documents, (data.condition,), now)
    return {**status, "conditions": [*merged]}


def _is_ours(entry: JsonObject) -> bool:
    return entry.get("type") == STATED


def note_data(
    seen: ObservedDeployment, deployment: ProjectDeployment, written: SetStatus
) -> Iterator[RecordEvent]:
    """A Warning at each transition to a reason that keeps the data from the cells."""
    data = seen.live.data
    error = None if data is None else data.error
    stored = conditions.find(deployment.status.stored.conditions, STATED)
    if error is None or (stored is not None and stored.reason == error.reason):
        return
    uid = deployment.metadata.uid
    yield RecordEvent(
        seen.key, uid, error.reason, error.message, ACTION, type="Warning", after=written
    )


def show_expected(seen: ObservedDeployment, deployment: ProjectDeployment) -> Iterator[Ensure]:
    """The list of tokens, on the deployment in the project."""
    data = seen.live.data
    if data is None or data.is_kept:
        return
    name = labels.EXPECTED_REFERENCED_DATA
    desired = OwnedFields(annotations={name: data.annotations.get(name)})
    yield Ensure(
        seen.key, desired, reasons.DRIFTED, uid=deployment.metadata.uid, ignore_own_event=True
    )
