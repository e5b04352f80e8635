"""The storage of one plane: every object, one order of versions, who depends on whom.

It commits what it is given and remembers it; whether a change is allowed, and what else it must
bring with it, is decided above. Compaction follows the clock as in etcd (five minutes by default)
and can be forced; it is carried out lazily, so an idle plane holds no timer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Final

from compute_sim_planes.api_server.kinds import GroupResource, Kind
from compute_sim_planes.api_server.sources import Clock
from compute_sim_planes.api_server.storage.bucket import Bucket
from compute_sim_planes.api_server.storage.records import (
    Change,
    ChangeType,
    Stored,
    key_of,
    make_stored,
)
from compute_sim_planes.api_server.storage.revisions import Revisions
from compute_sim_planes.json_types import JsonObject

# kube-apiserver compacts its etcd every five minutes.
HISTORY: Final = timedelta(minutes=5)
# Looking for what to compact on every commit would cost more than it frees.
_COMPACT_EVERY: Final = 512

Listener = Callable[[Change], None]


class Store:
    """Objects of one plane."""

    def __init__(
        self, clock: Clock, revisions: Revisions | None = None, history: timedelta = HISTORY
    ) -> None:
        self._clock = clock
        self._revisions = revisions if revisions is not None else Revisions()
        self._history = history
        self._buckets: dict[GroupResource, Bucket] = {}
        self._dependents: dict[str, dict[tuple[GroupResource, str], None]] = {}
        self._listeners: list[Listener] = []
        self._compacted = 0
        self._commits = 0

    @property
    def revision(self) -> int:
        """The version of the plane as a whole."""
        return self._revisions.current

    @property
    def compacted(self) -> int:
        """History up to and with this revision is gone."""
        return self._compacted

    def bucket(self, resource: GroupResource) -> Bucket:
        found = self._buckets.get(resource)
        if found is None:
            found = self._buckets[resource] = Bucket(self.revision)
        return found

    def reopen(self, resource: GroupResource) -> None:
        """A real server builds the watch cache of a kind anew when its definition changes."""
        self.bucket(resource).opened = self.revision

    def resources(self) -> Iterator[GroupResource]:
        """Resources of which objects exist."""
        return (resource for resource, bucket in tuple(self._buckets.items()) if len(bucket))

    def get(self, resource: GroupResource, namespace: str, name: str) -> Stored | None:
        bucket = self._buckets.get(resource)
        return None if bucket is None else bucket.get(key_of(namespace, name))

    def dependents(self, uid: str) -> list[Stored]:
        """Objects that name `uid` as an owner, in the order they came to do so."""
        found = (
            self._buckets[resource].get(key) for resource, key in self._dependents.get(uid, {})
        )
        return [stored for stored in found if stored is not None]

    def listen(self, listener: Listener) -> None:
        """Have `listener` called after every commit; it must not raise and must not commit by
        itself.
        """
        self._listeners.append(listener)

    def add(self, kind: Kind, wanted: JsonObject, actor: str) -> Stored:
        """Commit a new object; its key must be free."""
        after = make_stored(kind, wanted, self._revisions.advance())
        self._commit(ChangeType.ADDED, None, after, actor)
        return after

    def replace(self, before: Stored, kind: Kind, wanted: JsonObject, actor: str) -> Stored:
        """Commit a further version of `before`, which must be the one that is stored."""
        after = make_stored(kind, wanted, self._revisions.advance())
        self._commit(ChangeType.MODIFIED, before, after, actor)
        return after

    def remove(self, before: Stored, actor: str) -> Stored:
        """Commit the end of `before`; the answer is its last state, numbered by the deletion."""
        after = make_stored(before.kind, before.decode(), self._revisions.advance())
        self._commit(ChangeType.DELETED, before, after, actor)
        return after

    def compact(self, revision: int | None = None) -> None:
        """Forget history up to and with `revision` (all of it by default), as etcd does every five
        minutes.
        """
        through = self.revision if revision is None else revision
        if through > self._compacted:
            self._compacted = through
            for bucket in self._buckets.values():
                bucket.forget_through(through)

    def compact_by_age(self) -> None:
        """Compact what is older than the plane keeps."""
        moment = self._clock.now() - self._history
        buckets = self._buckets.values()
        self.compact(max((bucket.last_revision_before(moment) for bucket in buckets), default=0))

    def _commit(
        self, change_type: ChangeType, before: Stored | None, after: Stored, actor: str
    ) -> None:
        resource = after.kind.group_resource
        change = Change(
            change_type, resource, after.revision, self._clock.now(), actor, before, after
        )
        self._index_owners(resource, before, after, gone=change_type is ChangeType.DELETED)
        self.bucket(resource).add_change(change)
        for tell in self._listeners:
            tell(change)
        self._commits += 1
        if self._commits % _COMPACT_EVERY == 0:
            self.compact_by_age()

    def _index_owners(
        self, resource: GroupResource, before: Stored | None, after: Stored, *, gone: bool
    ) -> None:
        if before is not None and before.owners and (gone or before.owners != after.owners):
            for owner in before.owners:
                dependents = self._dependents.get(owner.uid, {})
                dependents.pop((resource, after.key), None)
                if not dependents:
                    self._dependents.pop(owner.uid, None)
        if not gone:
            for owner in after.owners:
                self._dependents.setdefault(owner.uid, {})[resource, after.key] = None
