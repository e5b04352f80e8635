"""One version of one object, kept as bytes, and one change of it.

Bytes are what almost every answer needs, cost a fifth of the memory of a dict, and cannot be
changed by accident: whoever wants to look inside decodes a copy of his own. What selectors and the
garbage collector ask on every event lies decoded beside them. Nothing here knows how versions are
numbered.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

import orjson

from compute_sim_planes.api_server.kinds import GroupResource, Kind
from compute_sim_planes.json_types import (
    JsonObject,
    integer_at,
    object_at,
    objects_at,
    string_at,
    string_map_at,
    strings_at,
)


def encode(wanted: JsonObject) -> bytes:
    """Canonical bytes: sorted keys, so that equal objects are equal bytes and a run repeats byte
    for byte.
    """
    return orjson.dumps(wanted, option=orjson.OPT_SORT_KEYS)


def decode(raw: bytes) -> JsonObject:
    """The object in `raw`, which this server encoded itself and which therefore is one."""
    found: JsonObject = orjson.loads(raw)
    return found


@dataclass(frozen=True, slots=True)
class Owner:
    """An ownerReference, as far as the garbage collector reads it."""

    api_version: str
    kind: str
    name: str
    uid: str
    blocks: bool


@dataclass(slots=True, eq=False)
class Stored:
    """One version of one object. Never changed, but for what is remembered of reading it."""

    kind: Kind
    key: str
    namespace: str
    name: str
    uid: str
    revision: int
    generation: int
    raw: bytes
    labels: dict[str, str]
    owners: tuple[Owner, ...]
    finalizers: tuple[str, ...]
    terminating: bool
    # Shows a defaulted status that was never stored: the next write is one even if it changes
    # nothing.
    unsettled: bool = False
    # How this version reads under another served version or a changed schema: the last asked for.
    _view: tuple[Kind, bytes] | None = field(default=None, repr=False)
    _item: bytes | None = field(default=None, repr=False)

    def decode(self) -> JsonObject:
        """A copy of the object that belongs to the caller."""
        return decode(self.raw)

    def read_as(self, kind: Kind) -> bytes:
        """The bytes as `kind` serves them now."""
        if kind is self.kind:
            return self.raw
        if self._view is None or self._view[0] is not kind:
            self._view = (kind, encode(self.decode_as(kind)))
        return self._view[1]

    def read_in_list(self, kind: Kind) -> bytes:
        """The bytes as an item of a list: a real server leaves the type out there, of built-in
        kinds.

        Kinds from CRDs keep it. Clients that rely on an item's `kind` work with the ones and not
        with the others.
        """
        if not kind.built_in:
            return self.read_as(kind)
        if self._item is None:
            bare = self.decode()
            bare.pop("apiVersion", None)
            bare.pop("kind", None)
            self._item = encode(bare)
        return self._item

    def decode_as(self, kind: Kind) -> JsonObject:
        """A copy as `kind` serves it now: a schema that changed since prunes and defaults what is
        read.
        """
        found = decode(self.raw)
        if kind is self.kind:
            return found
        if kind.schema is not None:
            found = kind.schema.default(kind.schema.prune(found))
        found["apiVersion"] = kind.api_version
        return found


def key_of(namespace: str, name: str) -> str:
    """The key whose order is the order of lists; a slash sorts as it does in etcd."""
    return f"{namespace}/{name}" if namespace else name


def make_stored(kind: Kind, wanted: JsonObject, revision: int) -> Stored:
    """Number `wanted` with `revision` and freeze it; the dict is the server's own and may be
    written to.
    """
    metadata = object_at(wanted, "metadata")
    metadata["resourceVersion"] = str(revision)
    namespace, name = string_at(metadata, "namespace"), string_at(metadata, "name")
    return Stored(
        kind=kind,
        key=key_of(namespace, name),
        namespace=namespace,
        name=name,
        uid=string_at(metadata, "uid"),
        revision=revision,
        generation=integer_at(metadata, "generation") or 0,
        raw=encode(wanted),
        labels=string_map_at(metadata, "labels"),
        owners=_read_owners(metadata),
        finalizers=tuple(strings_at(metadata, "finalizers")),
        terminating="deletionTimestamp" in metadata,
    )


def _read_owners(metadata: JsonObject) -> tuple[Owner, ...]:
    if "ownerReferences" not in metadata:
        return ()
    return tuple(
        Owner(
            api_version=string_at(reference, "apiVersion"),
            kind=string_at(reference, "kind"),
            name=string_at(reference, "name"),
            uid=string_at(reference, "uid"),
            blocks=reference.get("blockOwnerDeletion") is True,
        )
        for reference in objects_at(metadata, "ownerReferences")
    )


class ChangeType(StrEnum):
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


@dataclass(slots=True, eq=False)
class Change:
    """One commit: what was, what is. Of a deletion `after` is the last state, numbered by the
    deletion.
    """

    type: ChangeType
    resource: GroupResource
    revision: int
    at: datetime
    actor: str
    before: Stored | None
    after: Stored
    _lines: dict[tuple[ChangeType, Kind], bytes] = field(default_factory=dict, repr=False)

    def line(self, shown_as: ChangeType, kind: Kind) -> bytes:
        """The watch event in bytes, made once for all streams that show it alike."""
        found = self._lines.get((shown_as, kind))
        if found is None:
            found = render_line(shown_as, self.shown(shown_as, kind))
            self._lines[shown_as, kind] = found
        return found

    def shown(self, shown_as: ChangeType, kind: Kind) -> bytes:
        """The object in the event."""
        leaves_view = shown_as is ChangeType.DELETED and self.type is not ChangeType.DELETED
        if not leaves_view or self.before is None:
            return self.after.read_as(kind)
        # It stopped matching a selector: the stream shows what it last saw, numbered by this
        # change.
        last_seen = self.before.decode_as(kind)
        object_at(last_seen, "metadata")["resourceVersion"] = str(self.revision)
        return encode(last_seen)


def render_line(event_type: str, shown: bytes) -> bytes:
    return b'{"type":"%s","object":%s}\n' % (event_type.encode(), shown)
