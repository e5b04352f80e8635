"""Reads caches: who is in a slot, whose quota it is, and whether the slot is wanted. No request.

```
 Instance in the cache                      ─► Occupied   its claim is looked after
 none, slot wanted (a roll between two)     ─► Vacant     its claim stays
 none, slot not wanted                      ─► Vacant     its claim goes, after live reads
 a cache that is not complete               ─► None       nothing may be concluded
```
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from compute_api_types import names, reasons
from compute_cell_operator.instance.observe import (
    has_foreign_controller,
    read_denied_since,
    read_instance,
)
from compute_cell_operator.kinds import DEPLOYMENT, INSTANCE, NAMESPACE
from compute_cell_operator.quota_gate.claim import Occupant
from compute_cell_operator.quota_gate.evidence import Payer, derive_payer, derive_requests
from compute_cell_operator.quota_gate.findings import Undecided, Unresolvable
from compute_cell_operator.quota_gate.plan import is_slot_wanted
from compute_cell_operator.quota_gate.size import Size, UnknownSize, derive_size
from compute_cell_operator.quota_gate.status import is_denial
from compute_operator_kit.cache import Caches
from compute_operator_kit.keys import ObjectKey
from compute_operator_kit.objects import Absent, OwnerReference, Snapshot, Unreadable
from compute_operator_kit.wire import JsonObject, member_int, member_object


@dataclass(frozen=True, slots=True)
class Subject:
    """The Instance in a slot, as far as its claim is concerned."""

    occupant: Occupant
    size: Size | UnknownSize
    is_started: bool
    is_terminating: bool
    had_claim: bool  # a grant on a claim is stored for it
    denied_since: datetime | None  # a denial is stored for it
    owner: OwnerReference | None

    @property
    def requests(self) -> Mapping[str, int]:
        return derive_requests(self.size)


@dataclass(frozen=True, slots=True)
class Occupied:
    """An Instance is in the slot; `payer` is None while its Namespace has not been seen."""

    subject: Subject
    payer: Payer | Unresolvable | None


@dataclass(frozen=True, slots=True)
class Vacant:
    """No Instance is in the slot, as far as the cache knows."""

    payer: Payer | Unresolvable | None
    is_wanted: bool


Occupancy: TypeAlias = Occupied | Vacant


def observe_slot(key: ObjectKey, caches: Caches) -> Occupancy | None:
    """What is in the slot of this name; None where that is another controller's, or a cache cannot
    be believed.
    """
    found = caches.view(key.plane, INSTANCE).get(key.namespace, key.name)
    namespace = caches.view(key.plane, NAMESPACE).get("", key.namespace)
    if isinstance(found, Unreadable) or isinstance(namespace, Unreadable):
        return None
    payer = derive_payer(namespace.metadata) if isinstance(namespace, Snapshot) else None
    if isinstance(found, Snapshot):
        is_foreign = has_foreign_controller(found.metadata)
        return None if is_foreign else Occupied(read_subject(found), payer)
    desired = observe_desired(key, caches)
    if isinstance(desired, Unreadable):
        return None
    return Vacant(payer, is_wanted=is_wanted(key, desired))


def read_subject(snapshot: Snapshot) -> Subject:
    body = snapshot.read()
    seen = read_instance(snapshot, body, Undecided())
    quota = seen.quota
    return Subject(
        occupant=Occupant(snapshot.key.namespace, snapshot.key.name, snapshot.metadata.uid),
        size=derive_size(member_object(body, "spec")),
        is_started=seen.is_started,
        is_terminating=snapshot.metadata.is_deleting,
        had_claim=quota is not None and quota.reason == reasons.QUOTA_AVAILABLE,
        denied_since=read_denied_since(seen.status) if is_denial(quota) else None,
        owner=snapshot.metadata.controller,
    )


# --- the slot -------------------------------------------------------------------------------------


def derive_deployment_key(key: ObjectKey) -> ObjectKey | None:
    """The deployment whose slot this name is; None for a name that is no slot's."""
    parsed = names.parse_instance_name(key.name)
    return ObjectKey(key.plane, DEPLOYMENT, key.namespace, parsed[0]) if parsed else None


def observe_desired(key: ObjectKey, caches: Caches) -> int | Unreadable | None:
    """How many slots the deployment of this name wants; None where there is none."""
    owner = derive_deployment_key(key)
    if owner is None:
        return None
    found = caches.view(key.plane, DEPLOYMENT).get(owner.namespace, owner.name)
    if isinstance(found, Unreadable):
        return found
    return read_desired(found, is_namespace_deleting=is_namespace_deleting(key, caches))


def is_namespace_deleting(key: ObjectKey, caches: Caches) -> bool:
    found = caches.view(key.plane, NAMESPACE).get("", key.namespace)
    return isinstance(found, Snapshot) and found.metadata.is_deleting


def read_desired(found: Snapshot | Absent, *, is_namespace_deleting: bool) -> int | None:
    """`desired` of cell.md 3; None where there is no deployment."""
    if not isinstance(found, Snapshot):
        return None
    if found.metadata.is_deleting or is_namespace_deleting:
        return 0
    spec: JsonObject = member_object(found.read(), "spec")
    return max(0, member_int(member_object(spec, "scaleSettings"), "minReplicas"))


def is_wanted(key: ObjectKey, desired: int | None) -> bool:
    parsed = names.parse_instance_name(key.name)
    return is_slot_wanted(parsed[1] if parsed else None, desired)
