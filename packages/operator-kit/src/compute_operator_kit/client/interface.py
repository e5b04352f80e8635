"""The client port to one API server: get, list, watch and write as one field owner.

`http_client.py` is its only implementation. Expected answers (absent, already exists, expired, not
served) are values, so that no caller takes an error for absence; everything else is raised as a
`ReconcileError`. The client neither compares nor retries: `apply` compares, the runner retries.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Protocol, Self, TypeAlias

import msgspec

from compute_operator_kit.core.errors import InvariantError
from compute_operator_kit.core.json import JsonMapping, JsonObject
from compute_operator_kit.core.json_patch import PatchStep
from compute_operator_kit.core.keys import Kind, ObjectKey, PlaneName, Uid
from compute_operator_kit.core.objects import Absent, ReceivedObject, Snapshot

PAGE_SIZE: Final = 500  # runtime.md: the size every client of a Kubernetes API server uses
# The API's syntax of label values: a selector is text with commas, and a value with a comma would
# select other objects.
_LABEL_VALUE: Final = re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?")


class FieldOwner(msgspec.Struct, frozen=True, gc=False):
    """The field manager of writes; `controller` is named in the user agent and in metrics."""

    controller: str
    field_manager: str


@dataclass(frozen=True, slots=True)
class Selector:
    """A label selector and a field selector, in the syntax of the API."""

    labels: str = ""
    fields: str = ""

    @classmethod
    def of_labels(cls, labels: Mapping[str, str]) -> Self:
        """Objects that have all of these labels with exactly these values."""
        for name, value in labels.items():
            if not _LABEL_VALUE.fullmatch(value):
                raise InvariantError(f"selecting by label {name!r}: {value!r} is not a label value")
        return cls(labels=",".join(f"{name}={value}" for name, value in sorted(labels.items())))


EVERYTHING: Final = Selector()


@dataclass(frozen=True, slots=True)
class Preconditions:
    """Preconditions of a delete, which the server checks in the same transaction."""

    uid: Uid
    resource_version: str = ""


@dataclass(frozen=True, slots=True)
class AlreadyExists:
    """The name of a create is taken; the caller reads the existing object."""


@dataclass(frozen=True, slots=True)
class Expired:
    """HTTP 410: the version or the continue token is too old; a new list is needed."""


@dataclass(frozen=True, slots=True)
class NotServed:
    """The plane does not serve this kind."""


@dataclass(frozen=True, slots=True)
class Deleted:
    """The delete was accepted; an object with finalizers still exists, deleting."""


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a list, with the resourceVersion of the list."""

    items: tuple[ReceivedObject, ...]
    resource_version: str
    continue_token: str = ""
    unreadable: int = 0  # items that were left out because they cannot be decoded
    length: int = 0  # bytes of the response


class ObjectUpserted(msgspec.Struct, frozen=True, gc=False):
    """An object was added or modified."""

    received: ReceivedObject


@dataclass(frozen=True, slots=True)
class ObjectDeleted:
    """An object was deleted; `received` is its last state."""

    received: ReceivedObject


@dataclass(frozen=True, slots=True)
class Bookmark:
    """All events up to this version were sent."""

    resource_version: str


@dataclass(frozen=True, slots=True)
class UndecodableObject:
    """An object changed that cannot be decoded; the watch goes on for the others."""

    resource_version: str


WatchEvent: TypeAlias = ObjectUpserted | ObjectDeleted | Bookmark | Expired | UndecodableObject


class KubeClient(Protocol):
    """The client of one plane, as one field owner."""

    @property
    def plane(self) -> PlaneName: ...

    def as_owner(self, owner: FieldOwner) -> KubeClient:
        """A client of the same plane, connections and limits as another field owner."""
        ...

    async def get(self, key: ObjectKey) -> Snapshot | Absent: ...

    async def list(
        self,
        kind: Kind,
        *,
        namespace: str = "",
        selector: Selector = EVERYTHING,
        limit: int = PAGE_SIZE,
        continue_token: str = "",
    ) -> Page | Expired | NotServed:
        """One page; an empty `namespace` means all namespaces."""
        ...

    def watch(
        self,
        kind: Kind,
        *,
        resource_version: str,
        lasting: timedelta,
        selector: Selector = EVERYTHING,
    ) -> AsyncGenerator[Sequence[WatchEvent]]:
        """Events after `resource_version`, in batches as they arrive, until the server ends it.

        Close it (`contextlib.aclosing`), or the connection stays open. Raises `UndecodableError` on
        a line that is not an event, without yielding any part of it.
        """
        ...

    async def probe(self, kind: Kind) -> None:
        """Requests one object although the breaker is open; returns if the plane answers."""
        ...

    async def create(self, key: ObjectKey, body: JsonMapping) -> Snapshot | AlreadyExists: ...

    async def delete(self, key: ObjectKey, *, preconditions: Preconditions) -> Deleted | Absent: ...

    async def patch_merge(
        self, key: ObjectKey, body: JsonMapping, *, subresource: str = ""
    ) -> Snapshot | Absent: ...

    async def patch_json(
        self,
        key: ObjectKey,
        steps: Sequence[PatchStep],
        *,
        subresource: str = "",
        is_terminating: bool = False,
    ) -> Snapshot | Absent:
        """A failed `test` is a `ConflictError`: the object has changed. `is_terminating`: it is
        being deleted, so that a suspended project accepts the patch.
        """
        ...

    async def update(self, key: ObjectKey, body: JsonMapping) -> Snapshot | Absent:
        """Replaces the object; the body has the resourceVersion it was derived from."""
        ...

    async def update_status(
        self, key: ObjectKey, body: JsonMapping, *, is_terminating: bool = False
    ) -> Snapshot | Absent:
        """Replaces `.status`; the body is the whole object with the resourceVersion it was derived
        from.
        """
        ...

    async def review(self, kind: Kind, body: JsonMapping) -> JsonObject:
        """Creates a review, which is answered and not stored (TokenReview, SubjectAccessReview)."""
        ...
