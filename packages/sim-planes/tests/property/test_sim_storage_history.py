"""Properties of a store's history: it contains every earlier state, and any watch leads to now."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from compute_sim_planes.api_server.kinds.kind import GroupResource, Kind
from compute_sim_planes.api_server.storage.records import ChangeType
from compute_sim_planes.api_server.storage.store import Store
from compute_sim_planes.json_types import JsonValue

NOTES = GroupResource("", "notes")
KIND = Kind(
    group="",
    version="v1",
    kind="Note",
    plural="notes",
    singular="note",
    list_kind="NoteList",
    namespaced=False,
)
NOW = datetime(2026, 6, 20, tzinfo=UTC)


class StillClock:
    def now(self) -> datetime:
        return NOW


# A step stores a text under a name, or removes it.
steps = st.lists(
    st.tuples(st.sampled_from("abc"), st.one_of(st.none(), st.integers(0, 9))), max_size=30
)


def carry_out(store: Store, name: str, value: int | None) -> None:
    existing = store.get(NOTES, "", name)
    if value is None:
        if existing is not None:
            store.remove(existing, "us")
        return
    desired: dict[str, JsonValue] = {"metadata": {"name": name, "uid": name}, "value": value}
    if existing is None:
        store.add(KIND, desired, "us")
    else:
        store.replace(existing, KIND, desired, "us")


def present(store: Store) -> dict[str, JsonValue]:
    return {stored.name: stored.decode()["value"] for stored in store.bucket(NOTES).listed()}


@given(steps)
def test_the_past_is_read_as_it_was(done: list[tuple[str, int | None]]) -> None:
    store = Store(StillClock())
    snapshots = {store.revision: present(store)}
    for name, value in done:
        carry_out(store, name, value)
        snapshots[store.revision] = present(store)
    for revision, expected in snapshots.items():
        listed = store.bucket(NOTES).listed_at(revision)
        assert {stored.name: stored.decode()["value"] for stored in listed} == expected


@given(steps, st.data())
def test_changes_since_any_moment_lead_to_the_present(
    done: list[tuple[str, int | None]], data: st.DataObject
) -> None:
    store = Store(StillClock())
    moments = [(store.revision, present(store))]
    for name, value in done:
        carry_out(store, name, value)
        moments.append((store.revision, present(store)))
    revision, world = data.draw(st.sampled_from(moments))
    for change in store.bucket(NOTES).changes_after(revision):
        if change.type is ChangeType.DELETED:
            del world[change.after.name]
        else:
            assert (change.after.name in world) is (change.type is ChangeType.MODIFIED)
            world[change.after.name] = change.after.decode()["value"]
    assert world == present(store)


@given(steps, st.integers(0, 40))
def test_compaction_loses_no_object(done: list[tuple[str, int | None]], through: int) -> None:
    store = Store(StillClock())
    for name, value in done:
        carry_out(store, name, value)
    before = present(store)
    store.compact(through)
    assert present(store) == before
    assert all(c.revision > store.compacted for c in store.bucket(NOTES).changes_after(0))
