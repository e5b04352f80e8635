"""Intents: the effects that a plan may ask for, as frozen values with a key and a reason. Pure.

A plan only returns intents, and only `apply` carries them out. An intent has no client, closure or
clock, so that tests can compare plans. Destructive intents carry the UID of their object, or they
could delete another one of the same name; a check that needs a live read is a guard in the intent.

```
Ensure(uid=None)   create the object            │ desired  the owned fields, and no others
Ensure(uid=U)      patch the object with UID U  │ initial  fields set by the create only
```
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Final, Literal, Self, TypeAlias

import msgspec

from compute_operator_kit.core.json import JsonMapping, JsonValue, is_map
from compute_operator_kit.core.keys import Kind, ObjectKey, PlaneName, Uid
from compute_operator_kit.core.objects import OwnerReference

# After a guard refused: neither a noticeable delay nor a load (management.md 4, 5).
GUARD_RETRY_AFTER: Final = timedelta(seconds=1)


class OwnedFields(msgspec.Struct, frozen=True):
    """The desired values of the fields that a controller owns; other fields stay as they are."""

    labels: Mapping[str, str | None] = {}  # None: to be removed
    annotations: Mapping[str, str | None] = {}
    owners: tuple[OwnerReference, ...] = ()  # compared by UID
    has_only_these_owners: bool = False
    replace: JsonMapping = {}  # members that are owned as a whole
    merge: JsonMapping = {}  # members that are owned in part; None: to be removed


# guards ----------------------------------------------------------------------------------------


class RequireExists(msgspec.Struct, frozen=True):
    """The object at `key` must exist and not be deleting, by a live read for this write, or for an
    earlier one under the same lock (`guards.py`).

    With a `uid` it must have that UID. If it is the root of the reconcile and gone, the root key is
    held until the cache has seen that.
    """

    key: ObjectKey
    lock: ObjectKey | None = None  # held around read and write
    retry_after: timedelta = GUARD_RETRY_AFTER
    uid: Uid | None = None


class RequireNone(msgspec.Struct, frozen=True):
    """No object of this kind with these labels may exist, by a live list."""

    plane: PlaneName
    kind: Kind
    labels: Mapping[str, str]
    namespace: str = ""
    counts_deleting: bool = False
    lock: ObjectKey | None = None
    retry_after: timedelta = GUARD_RETRY_AFTER


class RequireGone(msgspec.Struct, frozen=True):
    """The object at `key` must be absent or have another UID, by a live read."""

    key: ObjectKey
    uid: Uid | None = None
    lock: ObjectKey | None = None
    retry_after: timedelta = GUARD_RETRY_AFTER


class RequireUnchanged(msgspec.Struct, frozen=True):
    """The object at `key` must have the version that the plan was made from, by a live read."""

    key: ObjectKey
    uid: Uid
    resource_version: str = ""
    generation: int | None = None
    lock: ObjectKey | None = None
    retry_after: timedelta = GUARD_RETRY_AFTER


Guard: TypeAlias = RequireExists | RequireNone | RequireGone | RequireUnchanged


# intents ---------------------------------------------------------------------------------------


class Ensure(msgspec.Struct, frozen=True):
    """Create the object, or patch its owned fields."""

    key: ObjectKey
    desired: OwnedFields
    reason: str
    uid: Uid | None = None
    resource_version: str = ""  # if given, the object must have that version
    initial: JsonMapping = {}
    may_defer: bool = False
    defer_for: timedelta | None = None  # for a provisional difference; None: as configured
    requires: RequireExists | None = None
    ignore_own_event: bool = False  # the watch event of the create does not enqueue the root

    @property
    def guards(self) -> tuple[Guard, ...]:
        return (self.requires,) if self.requires else ()


class Delete(msgspec.Struct, frozen=True):
    """Delete the object with this UID; an absent object is success."""

    key: ObjectKey
    uid: Uid
    reason: str
    resource_version: str = ""  # if given, the object must have that version
    require_none: RequireNone | None = None
    require_gone: RequireGone | None = None
    require_unchanged: RequireUnchanged | None = None

    @property
    def guards(self) -> tuple[Guard, ...]:
        return tuple(
            g
            for g in (self.require_unchanged, self.require_gone, self.require_none)
            if g is not None
        )


class SetStatus(msgspec.Struct, frozen=True):
    """Replace `.status`, which was derived from this version of the object.

    Without a UID it is the status of the object that an `Ensure` of the same reconcile creates.
    """

    key: ObjectKey
    uid: Uid | None
    resource_version: str
    status: JsonMapping
    reason: str
    may_defer: bool = False
    defer_for: timedelta | None = None
    ignore_own_event: bool = False  # the watch event of the write does not enqueue the root


class AddFinalizer(msgspec.Struct, frozen=True):
    """Add a finalizer and, in the same request, annotations."""

    key: ObjectKey
    uid: Uid
    finalizer: str
    reason: str
    annotations: Mapping[str, str] = {}


class RemoveFinalizer(msgspec.Struct, frozen=True):
    """Remove a finalizer."""

    key: ObjectKey
    uid: Uid
    finalizer: str
    reason: str
    require_none: RequireNone | None = None
    require_gone: RequireGone | None = None

    @property
    def guards(self) -> tuple[Guard, ...]:
        return tuple(guard for guard in (self.require_gone, self.require_none) if guard is not None)


class RemoveGate(msgspec.Struct, frozen=True):
    """Remove one scheduling gate; gates of other controllers stay."""

    key: ObjectKey
    uid: Uid
    gate: str
    reason: str
    generation: int | None = None  # if given, the object must have that generation
    after: SetStatus | None = None  # only if this status of the same plan is stored on the server
    path: tuple[str, ...] = ("spec", "controller", "schedulingGates")


class SetScale(msgspec.Struct, frozen=True):
    """Set the number of replicas through the `scale` subresource, which needs a right of its own
    and can change nothing else.
    """

    key: ObjectKey
    uid: Uid
    replicas: int
    reason: str


class RecordEvent(msgspec.Struct, frozen=True):
    """Record a Kubernetes Event about a transition."""

    key: ObjectKey
    uid: Uid
    reason: str
    message: str
    action: str
    type: Literal["Normal", "Warning"] = "Normal"
    related: ObjectKey | None = None
    related_uid: Uid | None = None
    after: Ensure | Delete | SetStatus | RemoveGate | SetScale | None = (
        None  # only if it was written
    )


class RequeueAfter(msgspec.Struct, frozen=True):
    """Requeue the key after this time; it is no failure and has no back-off."""

    key: ObjectKey
    reason: str
    retry_after: timedelta


Intent: TypeAlias = (
    Ensure
    | Delete
    | SetStatus
    | AddFinalizer
    | RemoveFinalizer
    | RemoveGate
    | SetScale
    | RecordEvent
    | RequeueAfter
)


class Plan(msgspec.Struct, frozen=True):
    """Intents in the order of their execution; one that fails stops none of the others."""

    intents: tuple[Intent, ...] = ()

    @classmethod
    def of(cls, *intents: Intent) -> Self:
        return cls(intents)

    def __add__(self, other: Plan) -> Plan:
        return Plan(self.intents + other.intents)

    def __iter__(self) -> Iterator[Intent]:
        return iter(self.intents)

    def __len__(self) -> int:
        return len(self.intents)

    @property
    def writes(self) -> tuple[Intent, ...]:
        """The intents that write objects; Events do not count."""
        return tuple(
            intent for intent in self.intents if not isinstance(intent, RecordEvent | RequeueAfter)
        )


def build_new(intent: Ensure) -> dict[str, JsonValue]:
    """The object to create: `initial` with the owned fields over it."""
    key, desired = intent.key, intent.desired
    metadata: dict[str, JsonValue] = {"name": key.name}
    if key.namespace:
        metadata["namespace"] = key.namespace
    for name, given in (("labels", desired.labels), ("annotations", desired.annotations)):
        texts = {label: value for label, value in given.items() if value is not None}
        if texts:
            metadata[name] = texts
    if desired.owners:
        metadata["ownerReferences"] = [owner_as_json(owner) for owner in desired.owners]
    head: JsonMapping = {"apiVersion": key.kind.api_version, "kind": key.kind.kind}
    body: JsonValue = head
    for layer in (intent.initial, desired.merge, {"metadata": metadata}):
        body = _merge(body, layer)
    # Members owned as a whole are sent as they are compared.
    return {**body, **desired.replace} if is_map(body) else {}


def owner_as_json(owner: OwnerReference) -> dict[str, JsonValue]:
    """An entry of `ownerReferences` without false flags, as API servers store it."""
    entry: dict[str, JsonValue] = {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.name,
        "uid": owner.uid,
    }
    if owner.controller:
        entry["controller"] = True
    if owner.block_owner_deletion:
        entry["blockOwnerDeletion"] = True
    return entry


def _merge(under: JsonValue, over: JsonValue) -> JsonValue:
    """Merges members, of which those of `over` win; None in `over` removes a member."""
    if not is_map(under) or not is_map(over):
        return over
    merged = dict(under)
    for name, value in over.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = _merge(merged[name], value) if name in merged else without_nones(value)
    return merged


def without_nones(value: JsonValue) -> JsonValue:
    """The value without None members, which mean "to be removed" and are never sent."""
    if not is_map(value):
        return value
    return {name: without_nones(inner) for name, inner in value.items() if inner is not None}
