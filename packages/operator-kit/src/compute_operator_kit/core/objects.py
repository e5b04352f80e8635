"""Snapshots of objects, their metadata, and the values `Absent` and `Unreadable`.

A `Snapshot` has the bytes that the plane sent, compressed while it does not change, and decoded
metadata; the rest is decoded for a reader, into a copy or into a value that readers share and must
not change. `Absent` and `Unreadable` differ because nothing may be deleted for the second: an
object that cannot be read is not absent. Types built for every event are `msgspec.Struct`s, ten
times faster to build than a frozen dataclass, and without garbage collection, because they cannot
be part of a cycle. Pure.
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
from compute_api_types.labels import COMPUTE_PREFIX
from compute_operator_kit.core.compression import pack, unpack
from compute_operator_kit.core.decode_cache import DecodeCache, Version
from compute_operator_kit.core.errors import TransientError
from compute_operator_kit.core.json import (
    Json,
    JsonObject,
    UndecodableError,
    decode_json_object,
    encode_to_keep,
    member_int,
    member_object,
    member_text,
)
from compute_operator_kit.core.keys import Kind, ObjectKey, PlaneName, Uid

NO_TEXTS: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Absent:
    """The plane does not have the object."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The object could not be read: it may exist or not."""

    reason: str


@dataclass(frozen=True, slots=True)
class OwnerReference:
    """An entry of `ownerReferences`; the owner is identified by its UID."""

    api_version: str
    kind: str
    name: str
    uid: Uid
    controller: bool = False
    block_owner_deletion: bool = False


class Metadata(msgspec.Struct, frozen=True, gc=False):
    """The read-only metadata of an object, without its body."""

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
        """The owner with `controller: true`."""
        return next((owner for owner in self.owners if owner.controller), None)


class BodyLeftOutError(TransientError):
    """The cache has only the header of an object; the body must be read from the plane."""

    def __init__(self, key: ObjectKey, version: Version) -> None:
        super().__init__("BodyLeftOut", f"reading {key}: its body is not cached", plane=key.plane)
        self.key = key
        self.version = version


# Bodies that a cache left out, read from the plane for the reconcile that runs in this context.
lent_bodies: Final[ContextVar[MutableMapping[Version, bytes] | None]] = ContextVar(
    "lent_bodies", default=None
)


class Snapshot(msgspec.Struct, frozen=True, eq=False, gc=False):
    """One version of one object as a plane served it, without `managedFields`."""

    key: ObjectKey
    metadata: Metadata
    kept: bytes  # as served or compressed; empty if a cache left the body out
    partial: bytes = b""  # without a body: the members that the `PartialDecoder` of its kind reads

    @property
    def raw(self) -> bytes:
        """The bytes that the plane sent, without `managedFields`; may raise `BodyLeftOutError`."""
        return unpack(self.kept) if self.kept else self._read_lent()

    @property
    def has_body(self) -> bool:
        return bool(self.kept)

    def _read_lent(self) -> bytes:
        lent = lent_bodies.get()
        body = None if lent is None else lent.get(self.version)
        if body is None:
            raise BodyLeftOutError(self.key, self.version)
        return body

    def without_body(self, partial: bytes = b"") -> Snapshot:
        """The header alone, with the members that indexes read."""
        return Snapshot(self.key, self.metadata, b"", partial)

    def packed(self) -> Snapshot:
        """The compressed snapshot, a few microseconds slower to read."""
        kept = pack(self.kept)
        return self if kept is self.kept else Snapshot(self.key, self.metadata, kept)

    def decode(self) -> JsonObject:
        """The decoded object, a new copy that may be changed."""
        return decode_json_object(self.raw)

    @property
    def version(self) -> Version:
        return self.metadata.uid, self.metadata.resource_version

    def read(self) -> JsonObject:
        """The decoded object, shared with other readers: not to be changed."""
        if self.key.kind.is_confidential:
            return self.decode()
        version, kept = self.version, self.kept
        return _decoded.find(version, kept) or _decoded.put(version, kept, self.decode())

    def members(self) -> Mapping[str, msgspec.Raw]:
        """The members of the object as bytes, shared with other readers."""
        if self.key.kind.is_confidential:
            return _split_members(self.raw)
        version, kept = self.version, self.kept
        return _split.find(version, kept) or _split.put(version, kept, _split_members(self.raw))

    def member(self, name: str) -> bytes:
        """The bytes of one member; empty if there is none."""
        member = self.members().get(name)
        return b"" if member is None else bytes(member)

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
        # Without the body: a repr may be logged.
        uid, version = self.version
        return f"Snapshot({self.key}, uid={uid!r}, resourceVersion={version!r})"


class ReceivedObject(msgspec.Struct, frozen=True, gc=False):
    """A received snapshot, with its decoded form if the decoder had to make one."""

    snapshot: Snapshot
    decoded: JsonObject | None = None

    @property
    def body(self) -> JsonObject:
        """The decoded object, shared with other readers: not to be changed or kept."""
        return self.snapshot.read() if self.decoded is None else self.decoded


_decoded: Final[DecodeCache[JsonObject]] = DecodeCache()
_split: Final[DecodeCache[Mapping[str, msgspec.Raw]]] = DecodeCache()
_members_decoder: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


def cut_member(raw: bytes, name: str) -> bytes:
    """The bytes of one member of an object; empty if there is none."""
    if is_too_deep(raw):
        raise UndecodableError(f"splitting an object: {TOO_DEEP}")
    member = _split_members(raw).get(name) if raw.startswith(b"{") else None
    return b"" if member is None else bytes(member)


def _split_members(raw: bytes) -> Mapping[str, msgspec.Raw]:
    try:
        return _members_decoder.decode(raw)
    except (msgspec.DecodeError, RecursionError) as cause:
        # Nested deeper than the codec can write.
        raise UndecodableError(f"splitting an object: {type(cause).__name__}") from None


MOST_VERSION_DIGITS: Final = 20  # API servers count in 64 bits


def parse_version(text: str) -> int:
    """A resourceVersion as a number; 0, older than all others, if it is not one.

    Versions of one kind are comparable integers (KEP-5504).
    """
    if len(text) > MOST_VERSION_DIGITS:  # `int` refuses what is longer than 4,300 digits
        return 0
    return int(text) if text.isascii() and text.isdigit() else 0


def parse_object(
    plane: PlaneName, kind: Kind, body: JsonObject, raw: bytes | None
) -> ReceivedObject:
    """Header, key and bytes of a decoded object; `raw` are its bytes if the caller has them.

    `managedFields`, a third of an object, is dropped, because no reader needs it. Of a kind that is
    read as metadata only, all but the header is dropped, whatever the plane served.
    """
    metadata_body = body.get("metadata")
    if not isinstance(metadata_body, dict):
        raise UndecodableError(f"reading {kind.kind}: no metadata")
    if kind.is_metadata_only:
        metadata_body = _without_foreign_annotations(metadata_body)
        body, raw = {"metadata": metadata_body}, None
    has_kind = "apiVersion" in body and "kind" in body  # items of a typed list carry neither
    if metadata_body.pop("managedFields", None) is not None or not has_kind or raw is None:
        body = {"apiVersion": kind.api_version, "kind": kind.kind, **body}
        raw = encode_to_keep(body)
    metadata = parse_metadata(metadata_body)
    if not metadata.name or kind.namespaced != bool(metadata.namespace):
        raise UndecodableError(f"reading {kind.kind}: no name, or a namespace that does not fit")
    key = ObjectKey(plane, kind, metadata.namespace, metadata.name)
    return ReceivedObject(Snapshot(key, metadata, raw), body)


def _without_foreign_annotations(metadata: JsonObject) -> JsonObject:
    """A tenant's annotation may repeat the values, as that of `kubectl apply` does."""
    annotations = member_object(metadata, "annotations")
    ours: JsonObject = {
        name: text for name, text in annotations.items() if name.startswith(COMPUTE_PREFIX)
    }
    return {**metadata, "annotations": ours}


def parse_metadata(body: JsonObject) -> Metadata:
    """The header of a decoded `metadata`; a member of a wrong type counts as missing.

    Lists and maps are only parsed if they are not empty.
    """
    labels, annotations = body.get("labels"), body.get("annotations")
    finalizers, owners = body.get("finalizers"), body.get("ownerReferences")
    return Metadata(
        name=member_text(body, "name"),
        namespace=member_text(body, "namespace"),
        uid=Uid(member_text(body, "uid")),
        resource_version=member_text(body, "resourceVersion"),
        generation=member_int(body, "generation"),
        creation_timestamp=member_text(body, "creationTimestamp"),
        deletion_timestamp=member_text(body, "deletionTimestamp"),
        labels=_parse_texts(labels) if labels else NO_TEXTS,
        annotations=_parse_texts(annotations) if annotations else NO_TEXTS,
        finalizers=_parse_list(finalizers) if finalizers else (),
        owners=_parse_owners(owners) if owners else (),
    )


def _parse_texts(value: Json) -> Mapping[str, str]:
    if not isinstance(value, dict):
        return NO_TEXTS
    return MappingProxyType({key: text for key, text in value.items() if isinstance(text, str)})


def _parse_list(value: Json) -> tuple[str, ...]:
    if not isinstance(value, list):
        return ()
    return tuple(item for item in value if isinstance(item, str))


def _parse_owners(value: Json) -> tuple[OwnerReference, ...]:
    if not isinstance(value, list):
        return ()
    return tuple(_parse_owner(item) for item in value if isinstance(item, dict))


def _parse_owner(value: JsonObject) -> OwnerReference:
    return OwnerReference(
        api_version=member_text(value, "apiVersion"),
        kind=member_text(value, "kind"),
        name=member_text(value, "name"),
        uid=Uid(member_text(value, "uid")),
        controller=value.get("controller") is True,
        block_owner_deletion=value.get("blockOwnerDeletion") is True,
    )
