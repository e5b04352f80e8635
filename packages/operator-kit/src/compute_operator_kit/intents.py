"""What a plan wants done: a closed union of frozen values, each with a key and a reason. Pure.

A plan says *what* and *why*; `apply.py` is the only one that does it. An intent holds no client, no
closure and no clock, so that a test can compare it and a log can print it. Destructive ones carry
the UID they mean; a check that must be made fresh, around the write, is a guard in the intent.

```
Ensure(uid=None)   make it, it was not there     │ wanted   what we own of the object, no more
Ensure(uid=U)      bring that very one in line   │ initial  what it is born with; not compared
```
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Final, Literal, Self, TypeAlias

import msgspec

from compute_operator_kit.keys import Kind, ObjectKey, PlaneName, Uid
from compute_operator_kit.objects import OwnerReference
from compute_operator_kit.wire import JsonMapping, JsonValue, is_map

# After a guard refused: often enough to be no delay, seldom enough to be no load (management.md 4,
# 5).
LOOK_AGAIN: Final = timedelta(seconds=1)


class Owned(msgspec.Struct, frozen=True):
    """The fields of an object that are ours; every other field is foreign and stays as it is."""

    labels: Mapping[str, str | None] = {}  # None: must not be there
    annotations: Mapping[str, str | None] = {}
    owners: tuple[OwnerReference, ...] = ()  # each must be there, found by UID
    has_only_these_owners: bool = False
    whole: JsonMapping = {}  # members of the object that are ours whole
    parts: JsonMapping = {}  # of other members only these; None: not there


# guards ----------------------------------------------------------------------------------------


class OnlyUnder(msgspec.Struct, frozen=True):
    """The object at `key` must exist and not be deleting, by a fresh read: for this write, or for
    one before it under the same lock (`guards.py`).

    With a `uid` it must be that very object. Where that is the root of the pass and it is found
    gone, the key waits until the cache has seen that, too.
    """

    key: ObjectKey
    lock: ObjectKey | None = (
        None  # held around read and write; who excludes each other names the same
    )
    retry_after: timedelta = LOOK_AGAIN
    uid: Uid | None = None


class IfNone(msgspec.Struct, frozen=True):
    """No object of this kind with these labels may exist, by a fresh list."""

    plane: PlaneName
    kind: Kind
    labels: Mapping[str, str]
    namespace: str = ""
    counts_deleting: bool = False
    lock: ObjectKey | None = None
    retry_after: timedelta = LOOK_AGAIN


class IfGone(msgspec.Struct, frozen=True):
    """The object at `key` must be absent, or another one than `uid`, by a fresh read."""

    key: ObjectKey
    uid: Uid | None = None
    lock: ObjectKey | None = None
    retry_after: timedelta = LOOK_AGAIN


class IfUnchanged(msgspec.Struct, frozen=True):
    """The object at `key` must still be in the version the plan was derived from, by a
    fresh read.
    """

    key: ObjectKey
    uid: Uid
    resource_version: str = ""
    generation: int | None = None
    lock: ObjectKey | None = None
    retry_after: timedelta = LOOK_AGAIN


Guard: TypeAlias = OnlyUnder | IfNone | IfGone | IfUnchanged


# intents ---------------------------------------------------------------------------------------


class Ensure(msgspec.Struct, frozen=True):
    """The object exists and what we own of it is as wanted."""

    key: ObjectKey
    wanted: Owned
    reason: str
    uid: Uid | None = None
    resource_version: str = ""  # given: only if it is still in that version
    initial: JsonMapping = {}
    provisional: bool = False
    settle: timedelta | None = None  # how long a provisional difference waits; None: as configured
    only_under: OnlyUnder | None = None
    is_final: bool = False  # created, it need not be looked at when it comes back as we made it

    @property
    def guards(self) -> tuple[Guard, ...]:
        return (self.only_under,) if self.only_under else ()


class Delete(msgspec.Struct, frozen=True):
    """This very object goes; that it is gone already is success."""

    key: ObjectKey
    uid: Uid
    reason: str
    resource_version: str = ""  # given: only if it is still in that version
    if_none: IfNone | None = None
    if_gone: IfGone | None = None
    if_unchanged: IfUnchanged | None = None

    @property
    def guards(self) -> tuple[Guard, ...]:
        return tuple(g for g in (self.if_unchanged, self.if_gone, self.if_none) if g is not None)


class SetStatus(msgspec.Struct, frozen=True):
    """`.status` is this, whole, derived from that version of the object.

    Without a UID it is the status of the object that an `Ensure` of the same pass makes.
    """

    key: ObjectKey
    uid: Uid | None
    resource_version: str
    status: JsonMapping
    reason: str
    provisional: bool = False
    settle: timedelta | None = None
    is_final: bool = False  # it need not be looked at when it comes back as we wrote it


class AddFinalizer(msgspec.Struct, frozen=True):
    """Our finalizer is on the object, and with it, in the same request, these annotations."""

    key: ObjectKey
    uid: Uid
    finalizer: str
    reason: str
    annotations: Mapping[str, str] = {}


class RemoveFinalizer(msgspec.Struct, frozen=True):
    """Our finalizer is off the object."""

    key: ObjectKey
    uid: Uid
    finalizer: str
    reason: str
    if_none: IfNone | None = None
    if_gone: IfGone | None = None

    @property
    def guards(self) -> tuple[Guard, ...]:
        return tuple(guard for guard in (self.if_gone, self.if_none) if guard is not None)


class RemoveGate(msgspec.Struct, frozen=True):
    """One named entry of a list of scheduling gates is off the object; the others are
    nobody's here.
    """

    key: ObjectKey
    uid: Uid
    gate: str
    reason: str
    generation: int | None = None  # given: only if that generation is still the present one
    after: SetStatus | None = None  # only once this status of the same plan stands on the server
    path: tuple[str, ...] = ("spec", "controller", "schedulingGates")


class Emit(msgspec.Struct, frozen=True):
    """An event for people, about a transition."""

    key: ObjectKey
    uid: Uid
    reason: str
    message: str
    action: str
    type: Literal["Normal", "Warning"] = "Normal"
    related: ObjectKey | None = None
    related_uid: Uid | None = None
    after: Ensure | Delete | SetStatus | RemoveGate | None = None  # only if this write happened now


class Wait(msgspec.Struct, frozen=True):
    """Nothing to do until then; waiting is not failure and does not back off."""

    key: ObjectKey
    reason: str
    retry_after: timedelta


Intent: TypeAlias = (
    Ensure | Delete | SetStatus | AddFinalizer | RemoveFinalizer | RemoveGate | Emit | Wait
)


class Plan(msgspec.Struct, frozen=True):
    """Intents, carried out in this order; one that fails stops none of the others."""

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
        """What may change something on a plane, events aside."""
        return tuple(intent for intent in self.intents if not isinstance(intent, Emit | Wait))


def build_new(intent: Ensure) -> dict[str, JsonValue]:
    """The object to create: what it is born with, and over it what we own."""
    key, wanted = intent.key, intent.wanted
    metadata: dict[str, JsonValue] = {"name": key.name}
    if key.namespace:
        metadata["namespace"] = key.namespace
    for name, given in (("labels", wanted.labels), ("annotations", wanted.annotations)):
        texts = {label: value for label, value in given.items() if value is not None}
        if texts:
            metadata[name] = texts
    if wanted.owners:
        metadata["ownerReferences"] = [owner_as_json(owner) for owner in wanted.owners]
    head: JsonMapping = {"apiVersion": key.kind.api_version, "kind": key.kind.kind}
    body: JsonValue = head
    for layer in (intent.initial, wanted.parts, {"metadata": metadata}):
        body = _merge(body, layer)
    # Owned whole is sent as it is: it is compared as it is, too.
    return {**body, **wanted.whole} if is_map(body) else {}


def owner_as_json(owner: OwnerReference) -> dict[str, JsonValue]:
    """An entry of `ownerReferences`; flags that are false are left out, as API servers
    store them.
    """
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
    """`over` wins member by member; None in it means that the member is not there."""
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
    """None among the fields we own says that a member is not there; it is never sent."""
    if not is_map(value):
        return value
    return {name: without_nones(inner) for name, inner in value.items() if inner is not None}
