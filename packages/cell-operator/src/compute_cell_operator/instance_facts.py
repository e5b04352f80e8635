"""Facts about one Instance of the cell, read from its cached object into a frozen value. Pure.

The instance controller and quota decide from the same fields. Read in two ways, one could remove
the Quota gate of an Instance while the other releases its claim.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from compute_api_types import conditions, labels
from compute_api_types.meta import TimestampError, parse_timestamp
from compute_cell_operator.conditions import ReportedCondition, StoredStatus, read_conditions
from compute_cell_operator.planes import DEPLOYMENT
from compute_cell_operator.suspension import read_suspended
from compute_operator_kit.core.clock import ZERO
from compute_operator_kit.core.json import JsonObject, member_list, member_object, member_text
from compute_operator_kit.core.keys import ObjectKey
from compute_operator_kit.core.objects import Metadata, Snapshot

_DEPLOYMENT: Final = (DEPLOYMENT.api_version, DEPLOYMENT.kind)
_STATUSES: Final = frozenset({"True", "False", "Unknown"})


@dataclass(frozen=True, slots=True)
class InstanceState:
    """An Instance as the cache has it."""

    key: ObjectKey
    metadata: Metadata
    gates: tuple[str, ...]
    status: StoredStatus  # with its legible conditions

    @property
    def conditions(self) -> tuple[ReportedCondition, ...]:
        return self.status.conditions

    @property
    def quota(self) -> ReportedCondition | None:
        """`QuotaGranted` as it is stored."""
        return conditions.find(self.status.conditions, conditions.QUOTA_GRANTED)

    @property
    def is_suspended(self) -> bool:
        """As its status records it: what a provider acts on."""
        return read_suspended(self.status.document)

    @property
    def has_quota_gate(self) -> bool:
        return labels.QUOTA_GATE in self.gates

    @property
    def is_started(self) -> bool:
        """Granted once and without its gate: no later quota result stops it (cell.md 10)."""
        quota = self.quota
        return quota is not None and quota.is_true and not self.has_quota_gate

    @property
    def is_granted_now(self) -> bool:
        """A grant is stored for the generation that was read."""
        quota = self.quota
        is_current = quota is not None and quota.observed_generation == self.metadata.generation
        return is_current and quota is not None and quota.is_true

    def age(self, now: datetime) -> timedelta:
        """Time since creation; zero where the timestamp is in the future or illegible."""
        try:
            born = parse_timestamp(self.metadata.creation_timestamp)
        except TimestampError:
            return ZERO
        return max(ZERO, now - born)


def read_instance(snapshot: Snapshot, body: JsonObject) -> InstanceState:
    """`body` is the decoded snapshot."""
    document = member_object(body, "status")
    legible = tuple(filter(_is_legible, read_conditions(document)))
    return InstanceState(
        key=snapshot.key,
        metadata=snapshot.metadata,
        gates=read_gates(member_object(body, "spec")),
        status=StoredStatus(document, legible),
    )


def _is_legible(condition: ReportedCondition) -> bool:
    """Whether `Ready` could repeat its reason."""
    return bool(condition.type and condition.reason) and condition.status in _STATUSES


def read_gates(spec: JsonObject) -> tuple[str, ...]:
    """The scheduling gates of an Instance, by name."""
    entries = member_list(member_object(spec, "controller"), "schedulingGates")
    return tuple(member_text(entry, "name") for entry in entries if isinstance(entry, dict))


def read_denied_since(status: JsonObject) -> datetime | None:
    """Since when `QuotaGranted` is False, so that a new process continues the wait of the former;
    None where it is not False, or has no legible time.
    """
    for entry in member_list(status, "conditions"):
        if isinstance(entry, dict) and member_text(entry, "type") == conditions.QUOTA_GRANTED:
            return _read_transition(entry) if member_text(entry, "status") == "False" else None
    return None


def _read_transition(entry: JsonObject) -> datetime | None:
    try:
        return parse_timestamp(member_text(entry, "lastTransitionTime"))
    except TimestampError:
        return None


def has_foreign_controller(metadata: Metadata) -> bool:
    """Whether something other than a WorkloadDeployment controls the Instance. Such an object has
    the form of ours, and is neither changed, claimed for nor copied (operations.md OU-03).
    """
    owner = metadata.controller
    return owner is not None and (owner.api_version, owner.kind) != _DEPLOYMENT
