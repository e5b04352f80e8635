"""Reads an object out of the bytes a plane served, and decodes no more of it than its header.

The hot path of every watch and list. The codec walks over `spec` and `status` without building
them, which takes a quarter of the time of decoding and leaves nothing to collect; who needs them
decodes the snapshot. `managedFields` is cut out of the bytes, because nobody here reads it and it
is a third of what a cache would keep. Bytes that are valid but not as an API server writes them (a
header with odd types, another spelling) take the slow way through `objects.parse_object`, which
defines what the result is: both ways give equal values. Pure.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from sys import intern
from types import MappingProxyType
from typing import Final

import msgspec

from compute_api_types.depth import is_too_deep
from compute_operator_kit.keys import Kind, ObjectKey, PlaneName, Uid
from compute_operator_kit.objects import (
    NO_TEXTS,
    Delivered,
    Metadata,
    OwnerReference,
    Snapshot,
    parse_object,
)
from compute_operator_kit.recent import LARGEST_SHARED
from compute_operator_kit.wire import (
    JsonObject,
    UndecodableError,
    decode_foreign,
    decode_object,
    encode,
    member_list,
    member_object,
    member_text,
)

_MANAGED: Final = b'"managedFields":'
MOST_ECHOES: Final = 64  # on their way between two connections; a moment's worth of writes


class _Owner(msgspec.Struct, rename="camel", gc=False):
    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool = False
    block_owner_deletion: bool = False


class _Header(msgspec.Struct, rename="camel", gc=False):
    """`metadata` as every API server writes it; anything else is for the slow way."""

    name: str
    uid: str = ""
    resource_version: str = ""
    namespace: str = ""
    generation: int = 0
    creation_timestamp: str = ""
    deletion_timestamp: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[_Owner, ...] = ()
    managed_fields: msgspec.Raw = msgspec.Raw()


class _Served(msgspec.Struct, rename="camel", gc=False):
    metadata: _Header
    api_version: str | msgspec.UnsetType = msgspec.UNSET
    kind: str | msgspec.UnsetType = msgspec.UNSET


class _Status(msgspec.Struct, gc=False):
    status: msgspec.Raw = msgspec.Raw()


class _PageHeader(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_token: str = msgspec.field(default="", name="continue")


class _Page(msgspec.Struct):
    metadata: _PageHeader
    items: list[msgspec.Raw] | None = None


@dataclass(frozen=True, slots=True)
class Pieces:
    """A page of a list: its items as bytes, cut out of it one after the other."""

    resource_version: str
    continue_token: str
    items: Iterable[bytes]


_decoder: Final = msgspec.json.Decoder(_Served)
_page_decoder: Final = msgspec.json.Decoder(_Page)
_status_decoder: Final = msgspec.json.Decoder(_Status)


def parse_served(plane: PlaneName, kind: Kind, raw: bytes) -> Delivered:
    """The object in these bytes; `UndecodableError` where there is none."""
    quick = _parse_quickly(plane, kind, raw)
    return quick or parse_object(plane, kind, decode_foreign(raw), raw)


# Without the newline that ends an answer; the oldest first.
_echoes: Final[OrderedDict[bytes, Delivered]] = OrderedDict()


def parse_echo(plane: PlaneName, kind: Kind, raw: bytes) -> Delivered:
    """As `parse_served`, of what mostly comes twice: as the answer to a write and as the event of
    a watch, in either order, byte for byte. The second time it is not read again.
    """
    raw = raw.removesuffix(b"\n")
    found = _echoes.pop(raw, None)
    if found is not None and _is_of(found.snapshot.key, plane, kind):
        return found
    delivered = parse_served(plane, kind, raw)
    if len(raw) <= LARGEST_SHARED and delivered.decoded is None:
        if len(_echoes) >= MOST_ECHOES:
            _echoes.popitem(last=False)
        _echoes[raw] = delivered
    return delivered


def _is_of(key: ObjectKey, plane: PlaneName, kind: Kind) -> bool:
    return key.plane == plane and key.kind == kind


def peek_status(raw: bytes) -> JsonObject:
    """The status of an object that was served, and nothing else of it; empty where it has none.

    A fifth of the time of decoding the whole, for whoever looks at ten thousand of them.
    """
    try:
        found = bytes(_status_decoder.decode(raw).status)
        return decode_object(found) if found else {}
    except (msgspec.DecodeError, RecursionError, UndecodableError):
        return {}


def split_page(raw: bytes) -> Pieces:
    """The page in these bytes; `UndecodableError` where there is none."""
    try:
        page = _page_decoder.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        body = decode_foreign(raw)
        found = member_object(body, "metadata")
        return Pieces(
            member_text(found, "resourceVersion"),
            member_text(found, "continue"),
            map(encode, member_list(body, "items")),
        )
    header = page.metadata
    return Pieces(header.resource_version, header.continue_token, map(bytes, page.items or ()))


def _parse_quickly(plane: PlaneName, kind: Kind, raw: bytes) -> Delivered | None:
    if is_too_deep(raw):
        return None
    try:
        str(raw, "utf-8")  # the one thing the decoder does not look at in what it walks over
        served = _decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    kept = _trim(kind, raw, served)
    header = served.metadata
    if kept is None or not header.name or kind.namespaced != bool(header.namespace):
        return None  # what is wrong with it, the slow way says
    metadata = _metadata_of(header)
    key = ObjectKey(plane, kind, metadata.namespace, metadata.name)
    return Delivered(Snapshot(key, metadata, kept))


def _trim(kind: Kind, raw: bytes, served: _Served) -> bytes | None:
    """The bytes to keep: without `managedFields`, and with the kind, which items of a list do not
    carry.
    """
    kept: bytes | None = raw
    managed = bytes(served.metadata.managed_fields)
    if managed:
        kept = _cut_member(raw, managed)
    missing = (served.api_version is msgspec.UNSET, served.kind is msgspec.UNSET)
    if kept is None or missing == (False, False):
        return kept
    if missing != (True, True) or not raw.startswith(b'{"'):
        return None
    return b'{"apiVersion":"%b","kind":"%b",%b' % (
        kind.api_version.encode(),
        kind.kind.encode(),
        kept[1:],
    )


def _cut_member(raw: bytes, managed: bytes) -> bytes | None:
    """Without the member and one comma beside it; None unless its name stands there exactly once.

    A quote inside a JSON text is escaped, so the name with its quotes and colon can only be that of
    a member, or the end of a longer one; once, and followed by these very bytes, it is ours.
    """
    begin = raw.find(_MANAGED)
    end = begin + len(_MANAGED) + len(managed)
    if not raw.startswith(managed, begin + len(_MANAGED)) or raw.find(_MANAGED, end) >= 0:
        return None
    if raw.startswith(b",", end):
        return raw[:begin] + raw[end + 1 :]
    return raw[:begin].removesuffix(b",") + raw[end:]


def _metadata_of(header: _Header) -> Metadata:
    labels, annotations, owners = header.labels, header.annotations, header.owner_references
    return Metadata(
        intern(header.name),  # once, however many planes have an object of the name
        intern(header.namespace),
        Uid(header.uid),
        header.resource_version,
        header.generation,
        header.creation_timestamp,
        header.deletion_timestamp,
        _share(labels) if labels else NO_TEXTS,
        _share(annotations) if annotations else NO_TEXTS,
        tuple([intern(finalizer) for finalizer in header.finalizers]),
        tuple([_owner_of(owner) for owner in owners]) if owners else (),
    )


def _share(texts: dict[str, str]) -> Mapping[str, str]:
    """Each text once: the labels of ten replicas, on two planes, differ in one of them."""
    return MappingProxyType({intern(key): intern(text) for key, text in texts.items()})


# Replicas have one owner, and each comes with every change of each of them.
_owner_reference: Final = lru_cache(maxsize=1024)(OwnerReference)


def _owner_of(owner: _Owner) -> OwnerReference:
    return _owner_reference(
        owner.api_version,
        owner.kind,
        owner.name,
        Uid(owner.uid),
        owner.controller,
        owner.block_owner_deletion,
    )
