"""The port to one control plane: read, watch, write, and ask what it serves.

One `Kube` speaks to one plane as one writer; `kube_http.py` is its one real form. Answers a caller
must expect (absent, already there, expired, not served) are values; everything else is raised as
one of `errors.py`. The port decides nothing: it neither compares nor retries a write (`apply.py`
does the first, `reconcile.py` the second).
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Literal, Protocol, Self, TypeAlias

import msgspec

from compute_operator_kit.errors import InvariantError
from compute_operator_kit.json_patch import PatchStep
from compute_operator_kit.keys import Kind, ObjectKey, PlaneName, Uid
from compute_operator_kit.objects import Absent, Delivered, Snapshot
from compute_operator_kit.wire import JsonMapping, JsonObject

PAGE_SIZE: Final = 500  # runtime.md: the size every client of a Kubernetes API server uses
# What a label value may be (API machinery); a selector is text with commas, so a value must not
# bring its own.
_LABEL_VALUE: Final = re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?")


class Writer(msgspec.Struct, frozen=True, gc=False):
    """In whose name requests are sent: it shows in the user agent, in managedFields and
    in metrics.
    """

    controller: str
    field_manager: str


@dataclass(frozen=True, slots=True)
class Selector:
    """Which objects of a kind: a label selector and a field selector, both in the API's
    own syntax.
    """

    labels: str = ""
    fields: str = ""

    @classmethod
    def of_labels(cls, wanted: Mapping[str, str]) -> Self:
        """Objects that carry all of these labels with exactly these values."""
        for name, value in wanted.items():
            if not _LABEL_VALUE.fullmatch(value):
                raise InvariantError(f"selecting by label {name!r}: {value!r} is not a label value")
        return cls(labels=",".join(f"{name}={value}" for name, value in sorted(wanted.items())))


EVERYTHING: Final = Selector()


@dataclass(frozen=True, slots=True)
class Preconditions:
    """What must still be true of the object, checked by the server in the same moment as
    the act.
    """

    uid: Uid
    resource_version: str = ""


@dataclass(frozen=True, slots=True)
class AlreadyExists:
    """A create found the name taken; by whom is for the caller to read."""


@dataclass(frozen=True, slots=True)
class Expired:
    """HTTP 410: the version or the continue token is too old; only a new list helps."""


@dataclass(frozen=True, slots=True)
class NotServed:
    """The plane does not have this kind (now)."""


@dataclass(frozen=True, slots=True)
class Deleted:
    """The delete was accepted; with finalizers on it the object is still there, deleting."""


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a list; the version is that of the whole list."""

    items: tuple[Delivered, ...]
    resource_version: str
    continue_token: str = ""
    unreadable: int = 0  # items that did not parse, counted and left out
    length: int = 0  # bytes of the answer


class Changed(msgspec.Struct, frozen=True, gc=False):
    """The object is now like this: added or modified, which nobody needs to tell apart."""

    delivered: Delivered


@dataclass(frozen=True, slots=True)
class Removed:
    """The object is gone; `delivered` is its last state."""

    delivered: Delivered


@dataclass(frozen=True, slots=True)
class Bookmark:
    """Nothing changed up to this version."""

    resource_version: str


@dataclass(frozen=True, slots=True)
class Illegible:
    """An object that could not be read was changed; others are not affected."""

    resource_version: str


WatchEvent: TypeAlias = Changed | Removed | Bookmark | Expired | Illegible

Propagation: TypeAlias = Literal["Background", "Foreground", "Orphan"]


class Kube(Protocol):
    """One plane, as one writer."""

    @property
    def plane(self) -> PlaneName: ...

    def acting_as(self, writer: Writer) -> Kube:
        """The same plane, connections and limits, in another writer's name."""
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
        """One page; `namespace` empty means all of them."""
        ...

    def watch(
        self,
        kind: Kind,
        *,
        resource_version: str,
        lasting: timedelta,
        namespace: str = "",
        selector: Selector = EVERYTHING,
    ) -> AsyncGenerator[Sequence[WatchEvent]]:
        """Changes after `resource_version`, in batches as they arrive; ends when the server ends
        it.

        Close it (`contextlib.aclosing`), or the connection stays open. Raises `UndecodableError` on
        a line that is not an event, and never yields part of what such a line held.
        """
        ...

    async def serves(self, kind: Kind) -> bool:
        """Whether discovery lists the kind now; an unreadable answer raises, it is never a no."""
        ...

    async def probe(self, kind: Kind) -> None:
        """Asks for one object although the breaker is open; returns if the plane answers at all."""
        ...

    async def create(self, key: ObjectKey, body: JsonMapping) -> Snapshot | AlreadyExists: ...

    async def delete(
        self,
        key: ObjectKey,
        *,
        preconditions: Preconditions,
        propagation: Propagation = "Background",
    ) -> Deleted | Absent: ...

    async def apply(self, key: ObjectKey, body: JsonMapping, *, force: bool = False) -> Snapshot:
        """Server-side apply under this writer's field manager."""
        ...

    async def patch_merge(
        self, key: ObjectKey, body: JsonMapping, *, subresource: str = ""
    ) -> Snapshot | Absent: ...

    async def patch_json(
        self, key: ObjectKey, steps: Sequence[PatchStep], *, subresource: str = ""
    ) -> Snapshot | Absent:
        """A failed `test` is a `ConflictError`: the world moved on."""
        ...

    async def update(self, key: ObjectKey, body: JsonMapping) -> Snapshot | Absent:
        """Replaces the object; the body carries the resourceVersion it was derived from."""
        ...

    async def update_status(self, key: ObjectKey, body: JsonMapping) -> Snapshot | Absent:
        """Replaces `.status`; the body is a whole object with the resourceVersion it was derived
        from.
        """
        ...

    async def review(self, kind: Kind, body: JsonMapping) -> JsonObject:
        """Posts a question that is answered and not stored (TokenReview, SubjectAccessReview)."""
        ...
