"""The decoder of served objects: it decodes the header of an object and keeps the rest as bytes.

The hot path of all watches and lists. Skipping `spec` and `status` takes a quarter of the time of
decoding them and allocates nothing; a reader decodes the snapshot when needed. `managedFields`, a
third of an object, is cut out of the bytes, because no reader needs it. Valid bytes in an unusual
form (a header with odd types) are decoded by `objects.parse_object`, which is slower and defines
the result: both give equal values. Pure.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from sys import intern
from types import MappingProxyType
from typing import Final

import msgspec
from msgspec import UNSET

from compute_api_types.depth import is_too_deep
from compute_operator_kit.core.decode_cache import LARGEST_SHARED
from compute_operator_kit.core.json import (
    JsonObject,
    UndecodableError,
    decode_foreign,
    decode_json_object,
    encode,
    member_list,
    member_object,
    member_text,
)
from compute_operator_kit.core.keys import Kind, ObjectKey, PlaneName, Uid
from compute_operator_kit.core.objects import (
    NO_TEXTS,
    Metadata,
    OwnerReference,
    ReceivedObject,
    Snapshot,
    parse_object,
)

_MANAGED: Final = b'"managedFields":'
MOST_WRITTEN: Final = 64  # of the last moment, with watch events that are still to come


class _Owner(msgspec.Struct, rename="camel", gc=False):
    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool = False
    block_owner_deletion: bool = False


class _Header(msgspec.Struct, rename="camel", gc=False):
    """`metadata` as API servers write it; any other form is for `parse_object`."""

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
    api_version: str | msgspec.UnsetType = UNSET
    kind: str | msgspec.UnsetType = UNSET


class _Status(msgspec.Struct, gc=False):
    status: msgspec.Raw = msgspec.Raw()


class _PageHeader(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_token: str = msgspec.field(default="", name="continue")


class _Page(msgspec.Struct):
    metadata: _PageHeader
    items: list[msgspec.Raw] | None = None


@dataclass(frozen=True, slots=True)
class PageItems:
    """A page of a list, with its items as bytes."""

    resource_version: str
    continue_token: str
    items: Iterable[bytes]


_decoder: Final = msgspec.json.Decoder(_Served)
_page_decoder: Final = msgspec.json.Decoder(_Page)
_status_decoder: Final = msgspec.json.Decoder(_Status)


def decode_object(plane: PlaneName, kind: Kind, raw: bytes) -> ReceivedObject:
    """The object in these bytes; `UndecodableError` if there is none."""
    quick = None if kind.is_metadata_only else _decode_header(plane, kind, raw)
    return quick or parse_object(plane, kind, decode_foreign(raw), raw)


# By their bytes without the final newline, the oldest first.
_written: Final[OrderedDict[bytes, ReceivedObject]] = OrderedDict()
_awaited: Final[Counter[ObjectKey]] = Counter()  # objects with a write that is not answered


@contextmanager
def awaiting_response(key: ObjectKey) -> Generator[None]:
    """While an object is written: its watch event may come before the response."""
    _awaited[key] += 1
    try:
        yield
    finally:
        _awaited[key] -= 1
        if not _awaited[key]:
            del _awaited[key]


def decode_written(plane: PlaneName, kind: Kind, raw: bytes) -> ReceivedObject:
    """As `decode_object`, for the response to a write. Its bytes mostly come again in a watch
    event, before or after it; the second time they are not decoded again.
    """
    raw = raw.removesuffix(b"\n")
    received = _find_written(plane, kind, raw)
    if received is None:
        received = decode_object(plane, kind, raw)
        _keep_written(raw, received)
    return received


def decode_event(plane: PlaneName, kind: Kind, raw: bytes) -> ReceivedObject:
    """As `decode_written`, for a watch event; most events are of objects that others write, and no
    response follows them.
    """
    raw = raw.removesuffix(b"\n")
    received = _find_written(plane, kind, raw) if _written else None
    if received is None:
        received = decode_object(plane, kind, raw)
        if _awaited and received.snapshot.key in _awaited:
            _keep_written(raw, received)
    return received


def _find_written(plane: PlaneName, kind: Kind, raw: bytes) -> ReceivedObject | None:
    received = _written.pop(raw, None)
    if received is not None and _is_of(received.snapshot.key, plane, kind):
        return received
    return None


def _keep_written(raw: bytes, received: ReceivedObject) -> None:
    if received.snapshot.key.kind.is_confidential:
        return  # its values stay in memory no longer than the write
    if len(raw) <= LARGEST_SHARED and received.decoded is None:
        if len(_written) >= MOST_WRITTEN:
            _written.popitem(last=False)
        _written[raw] = received


def _is_of(key: ObjectKey, plane: PlaneName, kind: Kind) -> bool:
    return key.plane == plane and key.kind == kind


def peek_status(raw: bytes) -> JsonObject:
    """The status of an object; empty if it has none.

    It takes a fifth of the time of decoding the object, for callers that read ten thousand.
    """
    try:
        status = bytes(_status_decoder.decode(raw).status)
        return decode_json_object(status) if status else {}
    except (msgspec.DecodeError, RecursionError, UndecodableError):
        return {}


def split_page(raw: bytes) -> PageItems:
    """The page in these bytes; `UndecodableError` if there is none."""
    try:
        page = _page_decoder.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        body = decode_foreign(raw)
        metadata = member_object(body, "metadata")
        return PageItems(
            member_text(metadata, "resourceVersion"),
            member_text(metadata, "continue"),
            map(encode, member_list(body, "items")),
        )
    header = page.metadata
    return PageItems(header.resource_version, header.continue_token, map(bytes, page.items or ()))


def _decode_header(plane: PlaneName, kind: Kind, raw: bytes) -> ReceivedObject | None:
    try:
        str(raw, "utf-8")  # the decoder does not check this in the members that it skips
        served = _decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    header = served.metadata
    managed = bytes(header.managed_fields)
    kept = _strip(kind, raw, served, managed)
    # In two parts: each has mostly too few brackets to be too deep, which is seen at once.
    if kept is None or is_too_deep(kept) or is_too_deep(managed):
        return None
    if not header.name or kind.namespaced != bool(header.namespace):
        return None  # `parse_object` raises with the reason
    metadata = _metadata_of(header)
    key = ObjectKey(plane, kind, metadata.namespace, metadata.name)
    return ReceivedObject(Snapshot(key, metadata, kept))


def _strip(kind: Kind, raw: bytes, served: _Served, managed: bytes) -> bytes | None:
    """The bytes to keep: without `managedFields`, and with `apiVersion` and `kind`, which items of
    a list lack.
    """
    kept = _cut_member(raw, managed) if managed else raw
    lacks_version, lacks_kind = served.api_version is UNSET, served.kind is UNSET
    if kept is None or not (lacks_version or lacks_kind):
        return kept
    if not (lacks_version and lacks_kind) or not raw.startswith(b'{"'):
        return None
    return b'{"apiVersion":"%b","kind":"%b",%b' % (
        kind.api_version.encode(),
        kind.kind.encode(),
        kept[1:],
    )


def _cut_member(raw: bytes, managed: bytes) -> bytes | None:
    """The bytes without the member and one comma; None unless its name occurs exactly once.

    Quotes inside JSON strings are escaped, so that the name with quotes and colon is the name of a
    member or the end of a longer one; followed by the decoded bytes it is `managedFields`.
    """
    begin = raw.find(_MANAGED)
    end = begin + len(_MANAGED) + len(managed)
    # From the end, where the search takes half the time.
    if not raw.startswith(managed, begin + len(_MANAGED)) or raw.rfind(_MANAGED) != begin:
        return None
    if raw.startswith(b",", end):
        return raw[:begin] + raw[end + 1 :]
    return raw[:begin].removesuffix(b",") + raw[end:]


def _metadata_of(header: _Header) -> Metadata:
    labels, annotations = header.labels, header.annotations
    finalizers, owners = header.finalizers, header.owner_references
    return Metadata(
        intern(header.name),  # one string for all planes with an object of that name
        intern(header.namespace),
        Uid(header.uid),
        header.resource_version,
        header.generation,
        header.creation_timestamp,
        header.deletion_timestamp,
        _intern_texts(labels) if labels else NO_TEXTS,
        _intern_texts(annotations) if annotations else NO_TEXTS,
        tuple([intern(finalizer) for finalizer in finalizers]) if finalizers else (),
        tuple([_owner_of(owner) for owner in owners]) if owners else (),
    )


def _intern_texts(texts: dict[str, str]) -> Mapping[str, str]:
    """Shares equal strings: the labels of ten replicas on two planes differ in one."""
    return MappingProxyType({intern(key): intern(text) for key, text in texts.items()})


# All replicas of a deployment have the same owner, decoded with each of their changes.
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
