from __future__ import annotations

from datetime import timedelta

import pytest

from compute_operator_kit.apply.write_expectations import WriteExpectations
from compute_operator_kit.cache.store import Change, Store
from compute_operator_kit.core.keys import Kind, PlaneName, Uid
from compute_operator_kit.core.objects import ReceivedObject
from compute_operator_kit.testing.fakes import A_KIND, a_key, a_snapshot, a_store

ROOT = a_key("root")
CHILD = a_key("child", plane="hub")


class Stores:
    """Stores by plane, as a registry would find them."""

    def __init__(self, *stores: Store) -> None:
        self.stores = {(store.plane, store.kind): store for store in stores}

    def find(self, plane: PlaneName, kind: Kind) -> Store | None:
        return self.stores.get((plane, kind))


@pytest.mark.fault("B5")
def test_a_root_is_held_until_the_cache_has_seen_what_it_wrote_to_a_child() -> None:
    hub = a_store(PlaneName("hub"), A_KIND)
    gate = WriteExpectations(Stores(hub).find)
    gate.expect_written(ROOT, a_snapshot(CHILD, {"resourceVersion": "5"}))
    held = gate.find_unmet(ROOT)
    assert held is not None
    assert held.store is hub
    assert gate.find_unmet(a_key("bystander")) is None
    hub.advance_to(5)
    assert gate.find_unmet(ROOT) is None
    assert len(gate) == 0


@pytest.mark.fault("B5")
def test_a_root_is_held_until_the_cache_has_seen_its_delete() -> None:
    hub = a_store(PlaneName("hub"), A_KIND, [a_snapshot(CHILD, {"uid": "u1"})])
    gate = WriteExpectations(Stores(hub).find)
    gate.expect_deleting(ROOT, CHILD, Uid("u1"))
    assert gate.find_unmet(ROOT) is not None
    hub.remove("default", "child")
    assert gate.find_unmet(ROOT) is None


def test_the_later_write_to_an_object_is_the_one_that_counts() -> None:
    hub = a_store(PlaneName("hub"), A_KIND)
    gate = WriteExpectations(Stores(hub).find)
    for version in ("5", "9"):
        gate.expect_written(ROOT, a_snapshot(CHILD, {"resourceVersion": version}))
    hub.advance_to(5)
    assert gate.find_unmet(ROOT) is not None


def test_a_kind_that_is_not_cached_holds_nothing() -> None:
    gate = WriteExpectations(Stores().find)
    gate.expect_written(ROOT, a_snapshot(CHILD))
    gate.expect_deleting(ROOT, CHILD, Uid("u1"))
    assert gate.find_unmet(ROOT) is None


def test_a_plane_that_was_engaged_anew_holds_nothing() -> None:
    stores = Stores(a_store(PlaneName("hub"), A_KIND))
    gate = WriteExpectations(stores.find)
    gate.expect_written(ROOT, a_snapshot(CHILD, {"resourceVersion": "5"}))
    stores.stores[(PlaneName("hub"), A_KIND)] = a_store(PlaneName("hub"), A_KIND)
    assert gate.find_unmet(ROOT) is None


def test_a_root_that_is_gone_is_forgotten() -> None:
    gate = WriteExpectations(Stores(a_store(PlaneName("hub"), A_KIND)).find)
    for root in (ROOT, a_key("other")):
        gate.expect_written(root, a_snapshot(CHILD, {"resourceVersion": "5"}))
    gate.clear(ROOT)
    assert len(gate) == 1
    gate.forget(lambda key: key.plane == "project-a")
    assert len(gate) == 0


@pytest.mark.fault("D9")
def test_a_plane_restored_from_a_backup_holds_nothing_back_for_ever() -> None:
    hub = a_store(PlaneName("hub"), A_KIND)
    hub.advance_to(100)
    gate = WriteExpectations(Stores(hub).find)
    gate.expect_written(ROOT, a_snapshot(CHILD, {"resourceVersion": "101"}))
    hub.replace([], version=50, at=timedelta())
    assert gate.find_unmet(ROOT) is None


# --- a write that comes back ----------------------------------------------------------------------


def come_back(hub: Store, version: str) -> Change:
    """As the reflector reports it: stored, before the store advances."""
    change = hub.put(ReceivedObject(a_snapshot(CHILD, {"resourceVersion": version})))
    assert change is not None
    return change


def test_a_final_write_that_comes_back_is_recognised_once_and_holds_nothing() -> None:
    hub = a_store(PlaneName("hub"), A_KIND)
    gate = WriteExpectations(Stores(hub).find)
    gate.expect_written(ROOT, a_snapshot(CHILD, {"resourceVersion": "5"}), ignore_own_event=True)
    change = come_back(hub, "5")
    assert not gate.recognise(a_key("bystander"), change)
    assert gate.recognise(ROOT, change)
    assert not gate.recognise(ROOT, change)
    assert len(gate) == 0


@pytest.mark.fault("B5")
def test_a_write_without_ignore_own_event_is_not_ignored() -> None:
    hub = a_store(PlaneName("hub"), A_KIND)
    gate = WriteExpectations(Stores(hub).find)
    gate.expect_written(ROOT, a_snapshot(CHILD, {"resourceVersion": "5"}))
    assert not gate.recognise(ROOT, come_back(hub, "5"))


@pytest.mark.fault("B5")
def test_a_write_of_another_is_never_taken_for_ours() -> None:
    hub = a_store(PlaneName("hub"), A_KIND)
    gate = WriteExpectations(Stores(hub).find)
    gate.expect_written(ROOT, a_snapshot(CHILD, {"resourceVersion": "5"}), ignore_own_event=True)
    assert not gate.recognise(ROOT, come_back(hub, "4"))
    assert not gate.recognise(ROOT, come_back(hub, "6"))
    gone = hub.remove(CHILD.namespace, CHILD.name)
    assert gone is not None
    assert not gate.recognise(ROOT, gone)


@pytest.mark.fault("C5")
def test_a_version_that_was_only_read_may_be_of_another_writer() -> None:
    hub = a_store(PlaneName("hub"), A_KIND)
    gate = WriteExpectations(Stores(hub).find)
    live = a_snapshot(CHILD, {"resourceVersion": "5"})
    gate.expect_written(ROOT, live)  # no answer came, and this is what is there now
    gate.expect_written(ROOT, live, ignore_own_event=True)
    assert not gate.recognise(ROOT, come_back(hub, "5"))


@pytest.mark.fault("D9")
def test_a_version_of_a_former_life_is_not_ours() -> None:
    hub = a_store(PlaneName("hub"), A_KIND)
    hub.advance_to(100)
    gate = WriteExpectations(Stores(hub).find)
    gate.expect_written(ROOT, a_snapshot(CHILD, {"resourceVersion": "101"}), ignore_own_event=True)
    hub.replace([], version=50, at=timedelta())
    assert not gate.recognise(ROOT, come_back(hub, "101"))


def test_all_ignored_writes_of_one_reconcile_to_an_object_are_recognised() -> None:
    hub = a_store(PlaneName("hub"), A_KIND)
    gate = WriteExpectations(Stores(hub).find)
    gate.expect_written(ROOT, a_snapshot(CHILD, {"resourceVersion": "5"}), ignore_own_event=True)
    gate.expect_written(ROOT, a_snapshot(CHILD, {"resourceVersion": "7"}), ignore_own_event=True)
    assert gate.recognise(ROOT, come_back(hub, "5"))
    assert not gate.recognise(ROOT, come_back(hub, "6"))  # of another writer, in between
    assert gate.recognise(ROOT, come_back(hub, "7"))
    assert len(gate) == 0


@pytest.mark.parametrize("finals", [(True, False), (False, True)])
def test_an_ignored_write_beside_one_that_is_not_is_not_ignored(finals: tuple[bool, bool]) -> None:
    hub = a_store(PlaneName("hub"), A_KIND)
    gate = WriteExpectations(Stores(hub).find)
    for version, ignore_own_event in zip(("5", "7"), finals, strict=True):
        written = a_snapshot(CHILD, {"resourceVersion": version})
        gate.expect_written(ROOT, written, ignore_own_event=ignore_own_event)
    assert not gate.recognise(ROOT, come_back(hub, "5"))
    assert not gate.recognise(ROOT, come_back(hub, "7"))
