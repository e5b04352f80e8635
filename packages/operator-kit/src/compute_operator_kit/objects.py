"""What a plane answers, as values: one version of an object, its metadata, and the two ways of
having none.

A `Snapshot` keeps the bytes the plane sent, packed once it rests, and a decoded metadata header;
the rest is decoded when somebody asks: into a copy of their own, or into one that readers share for
a moment and none of them changes.
`Absent` and `Unreadable` are different values because they call for different acts: not knowing is
not absence. What is built for every event is a `msgspec.Struct`, which takes a tenth of the time of
a frozen dataclass to build and is one otherwise; none of them can be part of a cycle, so the
collector need not know them. Pure, no I/O.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from contextvars import ContextVar
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import msgspec
from typing_extensions import override

from compute_api_types.depth import TOO_DEEP, is_too_deep
from compute_operator_kit.errors import TransientError
from compute_operator_kit.keys import Kind, ObjectKey, PlaneName, Uid
from compute_operator_kit.packing import pack, unpack
from compute_operator_kit.recent import Recent, Version
from compute_operator_kit.wire import (
    Json,
    JsonObject,
    UndecodableError,
    decode_object,
    encode_to_keep,
    member_int,
    member_text,
)

NO_TEXTS: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Absent:
    """The plane was asked and does not have it."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The plane could not be asked, or its answer could not be read: nothing may be concluded."""

    reason: str


@dataclass(frozen=True, slots=True)
class OwnerReference:
    """Who an object belongs to, by UID; the name is for people."""

    api_version: str
    kind: str
    name: str
    uid: Uid
    controller: bool = False
    block_owner_deletion: bool = False


class Metadata(msgspec.Struct, frozen=True, gc=False):
    """The header of an object, read-only: all a mapping function needs without decoding
    the rest.
    """

    name: str
    namespace: str
    uid: Uid
    resource_version: str
    generation: int = 0
    creation_timestamp: str = ""
    deletion_timestamp: str = ""
    labels: Mapping[str, str] = NO_TEXTS
    annotations: Mapping[str, str] = NO_TEXTS
    finalizers: tuple[str, ...] = ()
    owners: tuple[OwnerReference, ...] = ()

    @property
    def is_deleting(self) -> bool:
        return bool(self.deletion_timestamp)

    @property
    def controller(self) -> OwnerReference | None:
        """The one owner that is responsible for the object."""
        return next((owner for owner in self.owners if owner.controller), None)


class BodyLeftOutError(TransientError):
    """A cache has the header of an object and not its body: the plane must be asked for it."""

    def __init__(self, key: ObjectKey, version: Version) -> None:
        super().__init__("BodyLeftOut", f"reading {key}: its body is not cached", plane=key.plane)
        self.key = key
        self.version = version


# Bodies that a cache left out, asked for by the pass that runs in this context, for its time.
lent_bodies: Final[ContextVar[MutableMapping[Version, bytes] | None]] = ContextVar(
    "lent_bodies", default=None
)


class Snapshot(msgspec.Struct, frozen=True, eq=False, gc=False):
    """One version of one object, as a plane served it, without `managedFields`."""

    key: ObjectKey
    metadata: Metadata
    kept: bytes  # as served, or packed; empty where a cache left the body out
    outlined: bytes = b""  # of one without a body: the members its kind's outline names

    @property
    def raw(self) -> bytes:
        """The bytes the plane sent, but for `managedFields`; `BodyLeftOutError` without them."""
        return unpack(self.kept) if self.kept else self._borrow()

    @property
    def has_body(self) -> bool:
        return bool(self.kept)

    def _borrow(self) -> bytes:
        lent = lent_bodies.get()
        found = None if lent is None else lent.get(self.version)
        if found is None:
            raise BodyLeftOutError(self.key, self.version)
        return found

    def without_body(self, outlined: bytes = b"") -> Snapshot:
        """The header, and what is read of the kind without the rest."""
        return Snapshot(self.key, self.metadata, b"", outlined)

    def packed(self) -> Snapshot:
        """The same, in less memory and a few microseconds slower to read."""
        kept = pack(self.kept)
        return self if kept is self.kept else Snapshot(self.key, self.metadata, kept)

    def decode(self) -> JsonObject:
        """The whole object, a fresh copy: yours to change."""
        return decode_object(self.raw)

    @property
    def version(self) -> Version:
        return self.metadata.uid, self.metadata.resource_version

    def read(self) -> JsonObject:
        """The whole object, shared with whoever reads it about now: not to be changed."""
        version, kept = self.version, self.kept
        return _decoded.find(version, kept) or _decoded.keep(version, kept, self.decode())

    def members(self) -> Mapping[str, msgspec.Raw]:
        """The members of the object as they stand there; shared, too."""
        version, kept = self.version, self.kept
        return _split.find(version, kept) or _split.keep(version, kept, _split_members(self.raw))

    def member(self, name: str) -> bytes:
        """One member as it stands there; empty where there is none."""
        found = self.members().get(name)
        return b"" if found is None else bytes(found)

    @override
    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Snapshot):
            return NotImplemented
        if self.key != other.key or self.has_body != other.has_body:
            return False
        return self.raw == other.raw if self.has_body else self.version == other.version

    @override
    def __hash__(self) -> int:
        return hash((self.key, self.metadata.uid, self.metadata.resource_version))

    @override
    def __repr__(self) -> str:
        # Never the body: a repr ends up in logs.
        found = self.metadata
        return (
            f"Snapshot({self.key}, uid={found.uid!r}, resourceVersion={found.resource_version!r})"
        )


class Delivered(msgspec.Struct, frozen=True, gc=False):
    """A snapshot as it arrived, and its decoded form where somebody already had to make one."""

    snapshot: Snapshot
    decoded: JsonObject | None = None

    @property
    def body(self) -> JsonObject:
        """The decoded form: shared, not to be changed or kept."""
        return self.snapshot.read() if self.decoded is None else self.decoded


_decoded: Final[Recent[JsonObject]] = Recent()
_split: Final[Recent[Mapping[str, msgspec.Raw]]] = Recent()
_members_decoder: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


def cut_member(raw: bytes, name: str) -> bytes:
    """A member of an object out of its bytes; empty where there is none."""
    if is_too_deep(raw):
        raise UndecodableError(f"splitting an object: {TOO_DEEP}")
    found = _split_members(raw).get(name) if raw.startswith(b"{") else None
    return b"" if found is None else bytes(found)


def _split_members(raw: bytes) -> Mapping[str, msgspec.Raw]:
    try:
        return _members_decoder.decode(raw)
    except (msgspec.DecodeError, RecursionError) as cause:
        # Deeper than any codec of ours writes: what cannot be passed on is not read either.
        raise UndecodableError(f"splitting an object: {type(cause).__name__}") from None


MOST_VERSION_DIGITS: Final = 20  # API servers count in 64 bits


def parse_version(text: str) -> int:
    """A resourceVersion as a number; 0, older than all, where it is none.

    API servers promise versions of one kind to be comparable integers (KEP-5504), and every one we
    talk to keeps that promise.
    """
    if len(text) > MOST_VERSION_DIGITS:  # `int` refuses what is longer than 4,300 digits
        return 0
    return int(text) if text.isascii() and text.isdigit() else 0


def parse_object(plane: PlaneName, kind: Kind, body: JsonObject, raw: bytes | None) -> Delivered:
    """Header, key and bytes of a decoded object; `raw` are its bytes where they are at hand.

    `managedFields` is dropped: nobody here reads it, and it is a third of what a cache would keep.
    """
    found = body.get("metadata")
    if not isinstance(found, dict):
        raise UndecodableError(f"reading {kind.kind}: no metadata")
    is_whole = "apiVersion" in body and "kind" in body  # items of a typed list carry neither
    if found.pop("managedFields", None) is not None or not is_whole or raw is None:
        body = {"apiVersion": kind.api_version, "kind": kind.kind, **body}
        raw = encode_to_keep(body)
    metadata = parse_metadata(found)
    if not metadata.name or kind.namespaced != bool(metadata.namespace):
        raise UndecodableError(f"reading {kind.kind}: no name, or a namespace that does not fit")
    key = ObjectKey(plane, kind, metadata.namespace, metadata.name)
    return Delivered(Snapshot(key, metadata, raw), body)


def parse_metadata(found: JsonObject) -> Metadata:
    """The header out of `metadata`; what has a wrong type counts as not there.

    Runs once per watch event, so it looks at lists and maps only where there are any.
    """
    labels, annotations = found.get("labels"), found.get("annotations")
    finalizers, owners = found.get("finalizers"), found.get("ownerReferences")
    return Metadata(
        name=member_text(found, "name"),
        namespace=member_text(found, "namespace"),
        uid=Uid(member_text(found, "uid")),
        resource_version=member_text(found, "resourceVersion"),
        generation=member_int(found, "generation"),
        creation_timestamp=member_text(found, "creationTimestamp"),
        deletion_timestamp=member_text(found, "deletionTimestamp"),
        labels=_parse_texts(labels) if labels else NO_TEXTS,
        annotations=_parse_texts(annotations) if annotations else NO_TEXTS,
        finalizers=_parse_list(finalizers) if finalizers else (),
        owners=_parse_owners(owners) if owners else (),
    )


def _parse_texts(found: Json) -> Mapping[str, str]:
    if not isinstance(found, dict):
        return NO_TEXTS
    return MappingProxyType({key: text for key, text in found.items() if isinstance(text, str)})


def _parse_list(found: Json) -> tuple[str, ...]:
    if not isinstance(found, list):
        return ()
    return tuple(item for item in found if isinstance(item, str))


def _parse_owners(found: Json) -> tuple[OwnerReference, ...]:
    if not isinstance(found, list):
        return ()
    return tuple(_parse_owner(item) for item in found if isinstance(item, dict))


def _parse_owner(found: JsonObject) -> OwnerReference:
    return OwnerReference(
        api_version=member_text(found, "apiVersion"),
        kind=member_text(found, "kind"),
        name=member_text(found, "name"),
        uid=Uid(member_text(found, "uid")),
        controller=found.get("controller") is True,
        block_owner_deletion=found.get("blockOwnerDeletion") is True,
    )
