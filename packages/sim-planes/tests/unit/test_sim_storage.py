from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from compute_sim_planes.api_server.kinds.kind import GroupResource, Kind
from compute_sim_planes.api_server.storage.records import (
    Change,
    ChangeType,
    StoredObject,
    decode,
    encode,
    key_of,
)
from compute_sim_planes.api_server.storage.revisions import Revisions
from compute_sim_planes.api_server.storage.store import Store
from compute_sim_planes.json_types import JsonObject, JsonValue, object_at

NOTES = GroupResource("example.com", "notes")
ME = "me"


class FakeClock:
    def __init__(self) -> None:
        self.time = datetime(2026, 6, 20, 9, 0, 0, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time


def a_kind(version: str = "v1") -> Kind:
    return Kind(
        group="example.com",
        version=version,
        kind="Note",
        plural="notes",
        singular="note",
        list_kind="NoteList",
        namespaced=True,
    )


KIND = a_kind()


def a_note(
    name: str, text: str = "", namespace: str = "default", **metadata: JsonValue
) -> JsonObject:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Note",
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}", **metadata},
        "text": text,
    }


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def store(clock: FakeClock) -> Store:
    return Store(clock)


def texts(listed: list[StoredObject]) -> list[tuple[str, JsonValue]]:
    return [(stored.name, stored.decode()["text"]) for stored in listed]


def test_every_commit_takes_the_next_revision_and_writes_it_into_the_object(store: Store) -> None:
    before = store.revision
    made = store.add(KIND, a_note("a"), ME)
    changed = store.replace(made, KIND, a_note("a", "x"), ME)
    gone = store.remove(changed, ME)
    assert [made.revision, changed.revision, gone.revision] == [before + 1, before + 2, before + 3]
    assert [
        object_at(stored.decode(), "metadata")["resourceVersion"] for stored in (made, gone)
    ] == [
        str(made.revision),
        str(gone.revision),
    ]


def test_planes_that_share_a_counter_have_one_order(clock: FakeClock) -> None:
    revisions = Revisions()
    one, other = Store(clock, revisions), Store(clock, revisions)
    order = [
        one.add(KIND, a_note("a"), ME).revision,
        other.add(KIND, a_note("a"), ME).revision,
        one.add(KIND, a_note("b"), ME).revision,
    ]
    assert order == sorted(set(order))
    assert one.revision == other.revision == order[-1]


def test_keys_sort_as_in_etcd(store: Store) -> None:
    """In etcd a slash separates namespace and name, and a dash sorts before it."""
    for namespace in ("a", "a-b", "a.b", "ab"):
        store.add(KIND, a_note("x", namespace=namespace), ME)
    listed = [stored.namespace for stored in store.bucket(NOTES).listed()]
    assert listed == ["a-b", "a.b", "a", "ab"]
    assert [stored.namespace for stored in store.bucket(NOTES).listed("a/")] == ["a"]


def test_a_stored_object_cannot_be_changed_by_its_readers(store: Store) -> None:
    made = store.add(KIND, a_note("a", "x"), ME)
    made.decode()["text"] = "changed"
    assert made.decode()["text"] == "x"


def test_equal_objects_are_equal_bytes_and_true_is_not_one() -> None:
    assert encode({"b": 1, "a": 2}) == encode({"a": 2, "b": 1})
    assert encode({"a": True}) != encode({"a": 1})
    assert decode(encode({"a": [1, None]})) == {"a": [1, None]}


def test_a_list_of_the_past_is_what_it_was(store: Store) -> None:
    first = store.add(KIND, a_note("a", "old"), ME)
    second = store.add(KIND, a_note("b", "old"), ME)
    moment = store.revision
    store.replace(first, KIND, a_note("a", "new"), ME)
    store.remove(second, ME)
    store.add(KIND, a_note("c", "new"), ME)
    bucket = store.bucket(NOTES)
    assert texts(list(bucket.listed_at(moment))) == [("a", "old"), ("b", "old")]
    assert texts(list(bucket.listed_at(moment, after=key_of("default", "a")))) == [("b", "old")]
    assert texts(list(bucket.listed())) == [("a", "new"), ("c", "new")]
    assert bucket.count() == len(bucket) == 2


def test_watchers_are_called_in_order_and_can_stop(store: Store) -> None:
    received: list[tuple[ChangeType, int]] = []

    def record(change: Change) -> None:
        received.append((change.type, change.revision))

    bucket = store.bucket(NOTES)
    stop = bucket.watch(record)
    made = store.add(KIND, a_note("a"), ME)
    gone = store.remove(made, ME)
    stop()
    stop()
    store.add(KIND, a_note("b"), ME)
    assert received == [(ChangeType.ADDED, made.revision), (ChangeType.DELETED, gone.revision)]
    assert bucket.watchers == 0


def test_a_watcher_may_end_another_while_it_is_told(store: Store) -> None:
    bucket = store.bucket(NOTES)
    received: list[str] = []

    def end_the_other(change: Change) -> None:
        received.append(f"first {change.after.name}")
        stop()

    bucket.watch(end_the_other)
    stop = bucket.watch(lambda change: received.append(f"second {change.after.name}"))
    store.add(KIND, a_note("a"), ME)
    store.add(KIND, a_note("b"), ME)
    # The stopped watcher was already scheduled for this change, and gets no later one.
    assert received == ["first a", "second a", "first b"]


def test_compaction_forgets_history_and_keeps_objects(store: Store) -> None:
    made = store.add(KIND, a_note("a"), ME)
    changed = store.replace(made, KIND, a_note("a", "x"), ME)
    store.compact(made.revision)
    bucket = store.bucket(NOTES)
    assert [change.revision for change in bucket.changes_after(0)] == [changed.revision]
    assert store.compacted == made.revision
    store.compact()
    assert bucket.changes_after(0) == []
    assert texts(list(bucket.listed())) == [("a", "x")]
    # Never decreases.
    store.compact(1)
    assert store.compacted == changed.revision


def test_history_older_than_five_minutes_is_compacted(store: Store, clock: FakeClock) -> None:
    old = store.add(KIND, a_note("a"), ME)
    clock.time += timedelta(minutes=4)
    young = store.add(KIND, a_note("b"), ME)
    store.compact_by_age()
    assert store.compacted == 0
    clock.time += timedelta(minutes=2)
    store.compact_by_age()
    assert store.compacted == old.revision
    assert [change.revision for change in store.bucket(NOTES).changes_after(0)] == [young.revision]


def test_many_commits_compact_by_themselves(store: Store, clock: FakeClock) -> None:
    stored = store.add(KIND, a_note("a"), ME)
    clock.time += timedelta(minutes=6)
    for turn in range(600):
        stored = store.replace(stored, KIND, a_note("a", str(turn)), ME)
    assert store.compacted > 0


def owned(uid: str) -> list[JsonValue]:
    return [{"apiVersion": "v1", "kind": "X", "name": "x", "uid": uid, "blockOwnerDeletion": True}]


def test_dependents_are_found_by_the_uid_of_their_owner(store: Store) -> None:
    child = store.add(KIND, a_note("child", ownerReferences=owned("u1")), ME)
    store.add(KIND, a_note("other", ownerReferences=owned("u2")), ME)
    assert [dependent.name for dependent in store.dependents("u1")] == ["child"]
    assert child.owners[0].blocks is True
    moved = store.replace(child, KIND, a_note("child", ownerReferences=owned("u2")), ME)
    assert store.dependents("u1") == []
    assert [dependent.name for dependent in store.dependents("u2")] == ["other", "child"]
    store.remove(moved, ME)
    assert [dependent.name for dependent in store.dependents("u2")] == ["other"]


def test_listeners_get_change_and_actor(store: Store) -> None:
    received: list[Change] = []
    store.listen(received.append)
    made = store.add(KIND, a_note("a"), "alice")
    store.replace(made, KIND, a_note("a", "x"), "bob")
    assert [(change.type, change.actor) for change in received] == [
        (ChangeType.ADDED, "alice"),
        (ChangeType.MODIFIED, "bob"),
    ]
    assert received[1].before is made


def test_another_version_of_the_kind_reads_the_same_object(store: Store) -> None:
    made = store.add(KIND, a_note("a", "x"), ME)
    newer = a_kind("v2")
    shown = decode(made.read_as(newer))
    assert shown["apiVersion"] == "example.com/v2"
    assert shown["text"] == "x"
    # Cached: the same object, not only an equal one.
    assert made.read_as(newer) is made.read_as(newer)
    assert made.read_as(KIND) is made.raw


def test_an_event_is_rendered_once_for_all_streams(store: Store) -> None:
    received: list[Change] = []
    store.listen(received.append)
    store.add(KIND, a_note("a"), ME)
    (change,) = received
    line = change.line(ChangeType.ADDED, KIND)
    assert line.startswith(b'{"type":"ADDED","object":{')
    assert line.endswith(b"}\n")
    assert change.line(ChangeType.ADDED, KIND) is line


def test_an_object_that_left_a_view_is_shown_as_it_was_with_the_new_version(store: Store) -> None:
    received: list[Change] = []
    made = store.add(KIND, a_note("a", "shown"), ME)
    store.listen(received.append)
    store.replace(made, KIND, a_note("a", "hidden"), ME)
    shown = decode(received[0].shown(ChangeType.DELETED, KIND))
    assert shown["text"] == "shown"
    assert object_at(shown, "metadata")["resourceVersion"] == str(received[0].revision)
