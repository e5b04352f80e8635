from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

import pytest

from compute_operator_kit.cache.expectations import SeenGone
from compute_operator_kit.cache.store import Change, ServingState, Store
from compute_operator_kit.core.errors import InvariantError
from compute_operator_kit.core.json import JsonObject, JsonValue, UndecodableError
from compute_operator_kit.core.keys import PlaneName, Uid
from compute_operator_kit.core.object_decoder import decode_object
from compute_operator_kit.core.objects import (
    Absent,
    Metadata,
    ReceivedObject,
    Snapshot,
    Unreadable,
    parse_object,
    parse_version,
)
from compute_operator_kit.testing.fakes import A_KIND, a_key, a_snapshot, a_store

PLANE = PlaneName("project-a")
AT = timedelta(seconds=9)


def by_city(_: Metadata, body: JsonObject) -> Iterable[str]:
    spec = body["spec"]
    assert isinstance(spec, dict)
    cities = spec["cities"]
    assert isinstance(cities, list)
    return [str(city) for city in cities]


def delivered(
    name: str = "web",
    version: int = 1,
    *,
    uid: str = "u1",
    is_deleting: bool = False,
    **spec: JsonValue,
) -> ReceivedObject:
    metadata: dict[str, JsonValue] = {"resourceVersion": str(version), "uid": uid}
    if is_deleting:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    snapshot = a_snapshot(a_key(name), metadata, spec=spec)
    return parse_object(PLANE, A_KIND, snapshot.decode(), None)


def names(snapshots: tuple[Snapshot, ...] | Unreadable) -> list[str]:
    assert not isinstance(snapshots, Unreadable)
    return [snapshot.key.name for snapshot in snapshots]


def test_nothing_can_be_read_before_the_first_list_is_complete() -> None:
    store = Store(PLANE, A_KIND, {"city": by_city})
    store.put(delivered(cities=["DFW"]))
    assert store.get("default", "web") == Unreadable("NotSynced")
    assert store.snapshots() == Unreadable("NotSynced")
    assert store.by_index("city", "DFW") == Unreadable("NotSynced")
    store.replace([("default", "web")], version=1, at=AT)
    assert isinstance(store.get("default", "web"), Snapshot)
    assert store.get("default", "other") == Absent()


@pytest.mark.fault("F1")
def test_an_object_with_an_undecodable_body_has_no_index_values() -> None:
    raw = delivered(cities=["DFW"]).snapshot.raw
    odd = decode_object(PLANE, A_KIND, raw[:-1] + b',"x":1e400}')
    with pytest.raises(UndecodableError):
        odd.snapshot.decode()
    store = Store(PLANE, A_KIND, {"city": by_city})
    change = store.put(odd)
    assert change is not None
    assert change.after is not None
    assert change.after.index_values == {"city": ()}


def test_an_empty_store_is_a_store() -> None:
    store = a_store(PLANE, A_KIND)
    assert len(store) == 0
    assert store


def test_objects_come_in_order_and_by_namespace() -> None:
    keys = [a_key("b"), a_key("a"), a_key("a", namespace="other")]
    store = a_store(PLANE, A_KIND, [a_snapshot(key) for key in keys])
    assert names(store.snapshots()) == ["a", "b", "a"]
    assert names(store.snapshots("default")) == ["a", "b"]


def test_an_index_follows_its_objects() -> None:
    store = a_store(PLANE, A_KIND, indexes={"city": by_city})
    store.put(delivered("a", 2, cities=["DFW", "LHR"]))
    store.put(delivered("b", 3, cities=["DFW"]))
    assert names(store.by_index("city", "DFW")) == ["a", "b"]
    store.put(delivered("a", 4, cities=["LHR"]))
    assert names(store.by_index("city", "DFW")) == ["b"]
    assert store.index_values("city") == ("DFW", "LHR")
    store.remove("default", "b")
    assert names(store.by_index("city", "DFW")) == []
    assert store.index_values("city") == ("LHR",)


def test_an_index_function_may_repeat_a_value() -> None:
    store = a_store(PLANE, A_KIND, indexes={"city": by_city})
    store.put(delivered("a", 2, cities=["DFW", "DFW"]))
    store.remove("default", "a")
    assert store.index_values("city") == ()


def test_an_index_that_is_not_defined_is_a_bug() -> None:
    with pytest.raises(InvariantError, match="no index 'town'"):
        a_store(PLANE, A_KIND).by_index("town", "DFW")


@pytest.mark.fault("F1")
def test_an_object_of_an_odd_shape_is_found_under_no_value() -> None:
    store = a_store(PLANE, A_KIND, indexes={"city": by_city})
    change = store.put(delivered("odd", 2))
    assert change is not None
    assert isinstance(store.get("default", "odd"), Snapshot)


def test_a_change_carries_both_sides_with_their_index_values() -> None:
    store = a_store(PLANE, A_KIND, indexes={"city": by_city})
    store.put(delivered("a", 2, cities=["DFW"]))
    change = store.put(delivered("a", 3, cities=["LHR"]))
    assert change is not None
    assert [entry.index_values["city"] for entry in change.entries] == [("DFW",), ("LHR",)]
    assert change.key == a_key("a")


@pytest.mark.fault("B3")
def test_the_same_version_twice_is_no_change() -> None:
    store = a_store(PLANE, A_KIND)
    assert store.put(delivered("a", 2)) is not None
    assert store.put(delivered("a", 2)) is None
    assert store.remove("default", "unknown") is None


def test_another_uid_under_the_same_version_is_a_change() -> None:
    store = a_store(PLANE, A_KIND)
    store.put(delivered("a", 2, uid="u1"))
    assert store.put(delivered("a", 2, uid="u2")) is not None


@pytest.mark.fault("B2", "B6")
def test_a_list_removes_what_it_no_longer_has_and_says_that_it_inferred_that() -> None:
    store = a_store(PLANE, A_KIND, [a_snapshot(a_key("stays")), a_snapshot(a_key("gone"))])
    changes = store.replace([("default", "stays")], version=7, at=AT)
    assert [(change.key.name, change.after, change.is_inferred) for change in changes] == [
        ("gone", None, True)
    ]
    assert store.listing is not None
    assert (store.listing.number, store.listing.held_before, store.listing.vanished) == (2, 2, 1)
    assert store.listing.at == AT


def test_objects_of_the_first_list_are_not_urgent_and_later_ones_are() -> None:
    store = Store(PLANE, A_KIND)
    first = store.put(delivered("a", 1))
    store.replace([("default", "a")], version=1, at=AT)
    later = store.put(delivered("b", 2))
    assert first is not None
    assert later is not None
    assert (first.is_initial, later.is_initial) == (True, False)


@pytest.mark.fault("B10")
def test_a_kind_that_is_no_longer_served_is_unreadable_and_not_empty() -> None:
    store = a_store(PLANE, A_KIND, [a_snapshot()])
    changes = store.mark_unserved()
    assert [change.after for change in changes] == [None]
    assert store.get("default", "web") == Unreadable("NotServed")
    assert store.serving == ServingState.NOT_SERVED
    store.replace([], version=9, at=AT)
    assert store.get("default", "web") == Absent()
    assert ServingState(store.serving) == "served"


# expectations ----------------------------------------------------------------------------------


def heard_of(store: Store, version: int) -> list[str]:
    heard: list[str] = []
    store.when_met(store.expect_version(version), lambda: heard.append("met"))
    return heard


@pytest.mark.fault("B5")
def test_a_version_is_met_when_the_store_has_seen_that_far() -> None:
    store = a_store(PLANE, A_KIND)
    heard = heard_of(store, 5)
    store.advance_to(4)
    assert heard == []
    store.advance_to(6)
    assert heard == ["met"]
    assert heard_of(store, 6) == ["met"]


def test_waiters_of_different_versions_are_called_each_at_its_own() -> None:
    store = a_store(PLANE, A_KIND)
    early, late = heard_of(store, 5), heard_of(store, 8)
    store.advance_to(5)
    assert (early, late) == (["met"], [])


def test_a_list_older_than_the_write_does_not_meet_it() -> None:
    store = a_store(PLANE, A_KIND)
    heard = heard_of(store, 5)
    store.replace([], version=4, at=AT)
    assert heard == []
    store.replace([], version=5, at=AT)
    assert heard == ["met"]


@pytest.mark.fault("D9")
def test_versions_of_a_former_life_are_waited_for_no_longer() -> None:
    store = a_store(PLANE, A_KIND)
    store.advance_to(100)
    expectation = store.expect_version(105)
    heard = heard_of(store, 105)
    store.replace([], version=50, at=AT)
    assert heard == ["met"]
    assert store.has_met(expectation)
    assert store.seen_version == 50
    assert not store.has_met(store.expect_version(51))


@pytest.mark.fault("D9")
def test_an_object_that_a_restored_backup_has_again_is_not_waited_for_to_go() -> None:
    store = a_store(PLANE, A_KIND, [a_snapshot(metadata={"uid": "u1"})])
    store.advance_to(100)
    gone = store.expect_gone("default", "web", Uid("u1"))
    assert not store.has_met(gone)
    store.replace([("default", "web")], version=50, at=AT)
    assert store.has_met(gone)
    assert not store.has_met(store.expect_gone("default", "web", Uid("u1")))


@pytest.mark.parametrize("way", ["removed", "replaced", "deleting", "withdrawn"])
def test_a_delete_is_met_when_that_very_object_is_gone_or_going(way: str) -> None:
    store = a_store(PLANE, A_KIND, [a_snapshot(metadata={"uid": "u1"})])
    heard: list[str] = []
    store.when_met(SeenGone("default", "web", Uid("u1")), lambda: heard.append("met"))
    store.put(delivered("web", 2, uid="u1"))
    store.put(delivered("other", 3, uid="u9"))
    assert heard == []
    match way:
        case "removed":
            store.remove("default", "web")
        case "replaced":
            store.put(delivered("web", 4, uid="u2"))
        case "deleting":
            store.put(delivered("web", 4, uid="u1", is_deleting=True))
        case _:
            store.mark_unserved()
    assert heard == ["met"]


def test_two_deletes_of_one_name_are_met_each_by_its_own_uid() -> None:
    store = a_store(PLANE, A_KIND, [a_snapshot(metadata={"uid": "u1"})])
    heard: list[str] = []
    store.when_met(SeenGone("default", "web", Uid("u1")), lambda: heard.append("u1"))
    store.put(delivered("web", 2, uid="u2"))
    assert heard == ["u1"]
    store.when_met(SeenGone("default", "web", Uid("u2")), lambda: heard.append("first u2"))
    store.when_met(SeenGone("default", "web", Uid("u2")), lambda: heard.append("second u2"))
    store.put(delivered("web", 3, uid="u2"))
    assert heard == ["u1"]
    store.remove("default", "web")
    assert heard == ["u1", "first u2", "second u2"]


@pytest.mark.parametrize(("text", "version"), [("12", 12), ("", 0), ("abc", 0), ("²", 0)])
def test_a_version_that_is_no_number_is_older_than_all(text: str, version: int) -> None:
    assert parse_version(text) == version


def test_a_change_without_sides_has_no_entries() -> None:
    assert Change(None, None).entries == ()
