"""Reads caches: one Instance, whose quota it is and what its network says, at one moment.

Objects may have bypassed admission, so every field is read as if it could be anything. What the
quota worker has found out comes through its port; nothing here asks a plane.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from compute_api_types import conditions, labels
from compute_api_types.meta import TimestampError, parse_timestamp
from compute_cell_operator.kinds import DEPLOYMENT, INSTANCE, NAMESPACE
from compute_cell_operator.network.observe import observe_refusal
from compute_cell_operator.network.state import State
from compute_cell_operator.quota_gate.evidence import Known, Payer, derive_payer, derive_said
from compute_cell_operator.quota_gate.findings import Said, Unresolvable
from compute_cell_operator.quota_gate.port import Gate
from compute_cell_operator.quota_gate.size import derive_size
from compute_cell_operator.told import Told, read_conditions
from compute_operator_kit.cache import Caches
from compute_operator_kit.keys import ObjectKey
from compute_operator_kit.objects import Metadata, Snapshot
from compute_operator_kit.wire import JsonObject, member_list, member_object, member_text

_DEPLOYMENT: Final = (DEPLOYMENT.api_version, DEPLOYMENT.kind)
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


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is not in a cache: how this cell is configured, and what the quota worker knows."""

    gate: Gate
    is_quota_enforced: bool
    networking: State


def has_foreign_controller(metadata: Metadata) -> bool:
    """Whether something else than a deployment controls the Instance: it only looks like one of
    ours, and nothing of it is changed, claimed for or shown (operations.md OU-03).
    """
    owner = metadata.controller
    return owner is not None and (owner.api_version, owner.kind) != _DEPLOYMENT


def observe(key: ObjectKey, caches: Caches, around: Surroundings) -> Seen | None:
    """None where the Instance is absent or another controller's, or its cache cannot be
    believed.
    """
    found = caches.view(key.plane, INSTANCE).get(key.namespace, key.name)
    if not isinstance(found, Snapshot) or has_foreign_controller(found.metadata):
        return None
    body = found.read()  # shared: nothing below changes it
    known = Known(
        is_enforced=around.is_quota_enforced,
        size=derive_size(member_object(body, "spec")),
        payer=_observe_payer(key, caches),
        finding=around.gate.finding(key),
    )
    said = derive_said(found.metadata.uid, known)
    return read_instance(found, body, said, _observe_refusal(found, caches, around.networking))


def _observe_payer(key: ObjectKey, caches: Caches) -> Payer | Unresolvable | None:
    found = caches.view(key.plane, NAMESPACE).get("", key.namespace)
    return derive_payer(found.metadata) if isinstance(found, Snapshot) else None


def _observe_refusal(found: Snapshot, caches: Caches, networking: State) -> Told | None:
    """What its network was refused with; nothing is read without a deployment or networking."""
    owner = found.metadata.controller
    if owner is None or networking is not State.ON:
        return None
    return observe_refusal(owner.uid, caches, found.key.plane)


def read_instance(
    snapshot: Snapshot, body: JsonObject, said: Said, refusal: Told | None = None
) -> Seen:
    """An Instance with what others know of it; `body` is the snapshot, decoded."""
    status = member_object(body, "status")
    return Seen(
        key=snapshot.key,
        metadata=snapshot.metadata,
        status=status,
        gates=read_gates(member_object(body, "spec")),
        conditions=tuple(filter(_is_legible, read_conditions(status))),
        said=said,
        refusal=refusal,
    )


def read_gates(spec: JsonObject) -> tuple[str, ...]:
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
