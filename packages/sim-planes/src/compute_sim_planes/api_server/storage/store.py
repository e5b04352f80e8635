"""The storage of one plane: objects, one order of revisions, an index of owners.

Callers check whether a change is allowed before they commit it. Compaction follows the clock as in
etcd (five minutes by default) and can be forced; it runs on access, so an idle plane has no timer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Final

from compute_sim_planes.api_server.kinds.kind import GroupResource, Kind
from compute_sim_planes.api_server.storage.bucket import Bucket
from compute_sim_planes.api_server.storage.records import (
    Change,
    ChangeType,
    StoredObject,
    key_of,
    make_stored,
)
from compute_sim_planes.api_server.storage.revisions import Revisions
from compute_sim_planes.json_types import JsonObject
from compute_sim_planes.time.sources import Clock

# kube-apiserver compacts its etcd every five minutes.
HISTORY: Final = timedelta(minutes=5)
# Compacting on every commit would cost more than it frees.
_COMPACT_EVERY: Final = 512

CommitListener = Callable[[Change], None]


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
        self._listeners: list[CommitListener] = []
        self._compacted = 0
        self._commits = 0

    @property
    def revision(self) -> int:
        """The current resourceVersion of the plane."""
        return self._revisions.current

    @property
    def compacted(self) -> int:
        """History up to and including this revision is gone."""
        return self._compacted

    def bucket(self, resource: GroupResource) -> Bucket:
        existing = self._buckets.get(resource)
        if existing is None:
            existing = self._buckets[resource] = Bucket(self.revision)
        return existing

    def reopen(self, resource: GroupResource) -> None:
        """Restart the history of a kind, as a real server's watch cache does when a CRD changes."""
        self.bucket(resource).opened = self.revision

    def resources(self) -> Iterator[GroupResource]:
        """Resources that have objects."""
        return (resource for resource, bucket in tuple(self._buckets.items()) if len(bucket))

    def get(self, resource: GroupResource, namespace: str, name: str) -> StoredObject | None:
        bucket = self._buckets.get(resource)
        return None if bucket is None else bucket.get(key_of(namespace, name))

    def dependents(self, uid: str) -> list[StoredObject]:
        """Objects with `uid` as an owner, in the order in which they got it."""
        existing = (
            self._buckets[resource].get(key) for resource, key in self._dependents.get(uid, {})
        )
        return [stored for stored in existing if stored is not None]

    def listen(self, listener: CommitListener) -> None:
        """Call `listener` after every commit; it must neither raise nor commit."""
        self._listeners.append(listener)

    def add(self, kind: Kind, desired: JsonObject, actor: str) -> StoredObject:
        """Commit a new object; its key must be free."""
        after = make_stored(kind, desired, self._revisions.advance())
        self._commit(ChangeType.ADDED, None, after, actor)
        return after

    def replace(
        self, before: StoredObject, kind: Kind, desired: JsonObject, actor: str
    ) -> StoredObject:
        """Commit a new version of `before`, which must be the stored one."""
        after = make_stored(kind, desired, self._revisions.advance())
        self._commit(ChangeType.MODIFIED, before, after, actor)
        return after

    def remove(self, before: StoredObject, actor: str) -> StoredObject:
        """Commit the removal of `before`; returns its last state with the deletion's revision."""
        after = make_stored(before.kind, before.decode(), self._revisions.advance())
        self._commit(ChangeType.DELETED, before, after, actor)
        return after

    def compact(self, revision: int | None = None) -> None:
        """Drop history up to and including `revision` (all of it by default), as etcd does every
        five minutes.
        """
        through = self.revision if revision is None else revision
        if through > self._compacted:
            self._compacted = through
            for bucket in self._buckets.values():
                bucket.compact_through(through)

    def compact_by_age(self) -> None:
        """Drop history that is older than the plane keeps."""
        moment = self._clock.now() - self._history
        buckets = self._buckets.values()
        self.compact(max((bucket.last_revision_before(moment) for bucket in buckets), default=0))

    def _commit(
        self, change_type: ChangeType, before: StoredObject | None, after: StoredObject, actor: str
    ) -> None:
        resource = after.kind.group_resource
        change = Change(
            change_type, resource, after.revision, self._clock.now(), actor, before, after
        )
        self._index_owners(resource, before, after, gone=change_type is ChangeType.DELETED)
        self.bucket(resource).add_change(change)
        for listener in self._listeners:
            listener(change)
        self._commits += 1
        if self._commits % _COMPACT_EVERY == 0:
            self.compact_by_age()

    def _index_owners(
        self,
        resource: GroupResource,
        before: StoredObject | None,
        after: StoredObject,
        *,
        gone: bool,
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
