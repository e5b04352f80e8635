"""What a pass knows of one Instance, at one moment.

Objects may have bypassed admission, so every field is read as if it could be anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from compute_api_types import conditions, labels
from compute_api_types.meta import TimestampError, parse_timestamp
from compute_cell_operator.quota_gate.findings import Said
from compute_cell_operator.told import Told, read_conditions
from compute_operator_kit.keys import ObjectKey
from compute_operator_kit.objects import Metadata, Snapshot
from compute_operator_kit.wire import JsonObject, member_list, member_object, member_text

_STATUSES: Final = frozenset({"True", "False", "Unknown"})


@dataclass(frozen=True, slots=True)
class Seen:
    """One Instance at one moment."""

    key: ObjectKey
    metadata: Metadata
    status: JsonObject  # as it is stored, whole: others' entries go back as they came
    gates: tuple[str, ...]
    conditions: tuple[Told, ...]
    said: Said  # what the quota worker knows of this very Instance and size
    refusal: Told | None = None  # of its network; None also where it could not be read

    @property
    def quota(self) -> Told | None:
        """`QuotaGranted` as it is stored."""
        return conditions.find(self.conditions, conditions.QUOTA_GRANTED)

    @property
    def has_quota_gate(self) -> bool:
        return labels.QUOTA_GATE in self.gates

    @property
    def is_started(self) -> bool:
        """The latch: once granted and let go, no word about quota stops it (cell.md 10)."""
        return self.quota is not None and self.quota.is_true and not self.has_quota_gate

    @property
    def is_granted_now(self) -> bool:
        """A grant is persisted for the generation that was read."""
        quota = self.quota
        is_current = quota is not None and quota.observed_generation == self.metadata.generation
        return is_current and quota is not None and quota.is_true

    def age(self, now: datetime) -> timedelta:
        """How old it is; zero where its clock is ahead of ours, or cannot be read."""
        try:
            born = parse_timestamp(self.metadata.creation_timestamp)
        except TimestampError:
            return timedelta(0)
        return max(timedelta(0), now - born)


def read_instance(snapshot: Snapshot, said: Said, refusal: Told | None = None) -> Seen:
    """An Instance with what others know of it."""
    body = snapshot.decode()
    status = member_object(body, "status")
    return Seen(
        key=snapshot.key,
        metadata=snapshot.metadata,
        status=status,
        gates=_read_gates(member_object(body, "spec")),
        conditions=tuple(filter(_is_legible, read_conditions(status))),
        said=said,
        refusal=refusal,
    )


def _read_gates(spec: JsonObject) -> tuple[str, ...]:
    entries = member_list(member_object(spec, "controller"), "schedulingGates")
    return tuple(member_text(entry, "name") for entry in entries if isinstance(entry, dict))


def _is_legible(told: Told) -> bool:
    """Whether a condition says anything that could be said on in `Ready`."""
    return bool(told.type and told.reason) and told.status in _STATUSES


def read_denied_since(status: JsonObject) -> datetime | None:
    """Since when `QuotaGranted` is False, for a process that was not there; None where it is not,
    or does not say.
    """
    for entry in member_list(status, "conditions"):
        if isinstance(entry, dict) and member_text(entry, "type") == conditions.QUOTA_GRANTED:
            return _since(entry) if member_text(entry, "status") == "False" else None
    return None


def _since(entry: JsonObject) -> datetime | None:
    try:
        return parse_timestamp(member_text(entry, "lastTransitionTime"))
    except TimestampError:
        return None
