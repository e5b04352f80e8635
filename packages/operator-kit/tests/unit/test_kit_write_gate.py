from __future__ import annotations

from datetime import timedelta

import pytest

from compute_operator_kit.cache import Change, Store
from compute_operator_kit.keys import Kind, PlaneName, Uid
from compute_operator_kit.objects import Delivered
from compute_operator_kit.testing import A_KIND, a_key, a_snapshot, a_store
from compute_operator_kit.write_gate import WriteGate

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
    gate = WriteGate(Stores(hub).find)
    gate.wrote_at(ROOT, a_snapshot(CHILD, {"resourceVersion": "5"}))
    held = gate.ensure_ready(ROOT)
    assert held is not None
    assert held.store is hub
    assert gate.ensure_ready(a_key("bystander")) is None
    hub.reach(5)
    assert gate.ensure_ready(ROOT) is None
    assert len(gate) == 0


@pytest.mark.fault("B5")
def test_a_root_is_held_until_the_cache_has_seen_its_delete() -> None:
    hub = a_store(PlaneName("hub"), A_KIND, [a_snapshot(CHILD, {"uid": "u1"})])
    gate = WriteGate(Stores(hub).find)
    gate.deleted(ROOT, CHILD, Uid("u1"))
    assert gate.ensure_ready(ROOT) is not None
    hub.remove("default", "child")
    assert gate.ensure_ready(ROOT) is None


def test_the_later_write_to_an_object_is_the_one_that_counts() -> None:
    hub = a_store(PlaneName("hub"), A_KIND)
    gate = WriteGate(Stores(hub).find)
    for version in ("5", "9"):
        gate.wrote_at(ROOT, a_snapshot(CHILD, {"resourceVersion": version}))
    hub.reach(5)
    assert gate.ensure_ready(ROOT) is not None


def test_a_kind_that_nobody_watches_holds_nothing() -> None:
    gate = WriteGate(Stores().find)
    gate.wrote_at(ROOT, a_snapshot(CHILD))
    gate.deleted(ROOT, CHILD, Uid("u1"))
    assert gate.ensure_ready(ROOT) is None


def test_a_plane_that_was_engaged_anew_holds_nothing() -> None:
    stores = Stores(a_store(PlaneName("hub"), A_KIND))
    gate = WriteGate(stores.find)
    gate.wrote_at(ROOT, a_snapshot(CHILD, {"resourceVersion": "5"}))
    stores.stores[(PlaneName("hub"), A_KIND)] = a_store(PlaneName("hub"), A_KIND)
    assert gate.ensure_ready(ROOT) is None


def test_a_root_that_is_gone_is_forgotten() -> None:
    gate = WriteGate(Stores(a_store(PlaneName("hub"), A_KIND)).find)
    for root in (ROOT, a_key("other")):
        gate.wrote_at(root, a_snapshot(CHILD, {"resourceVersion": "5"}))
    gate.clear(ROOT)
    assert len(gate) == 1
    gate.forget(lambda key: key.plane == "project-a")
    assert len(gate) == 0


@pytest.mark.fault("D9")
def test_a_plane_restored_from_a_backup_holds_nothing_back_for_ever() -> None:
    hub = a_store(PlaneName("hub"), A_KIND)
    hub.reach(100)
    gate = WriteGate(Stores(hub).find)
    gate.wrote_at(ROOT, a_snapshot(CHILD, {"resourceVersion": "101"}))
    hub.complete([], version=50, at=timedelta())
    assert gate.ensure_ready(ROOT) is None


# --- a write that comes back ----------------------------------------------------------------------


def come_back(hub: Store, version: str) -> Change:
    """As the reflector tells it: stored, and the version not reached yet."""
    change = hub.put(Delivered(a_snapshot(CHILD, {"resourceVersion": version})))
    assert change is not None
    return change


def test_a_final_write_that_comes_back_is_recognised_once_and_holds_nothing() -> None:
    hub = a_store(PlaneName("hub"), A_KIND)
    gate = WriteGate(Stores(hub).find)
    gate.wrote_at(ROOT, a_snapshot(CHILD, {"resourceVersion": "5"}), is_final=True)
    change = come_back(hub, "5")
    assert not gate.recognise(a_key("bystander"), change)
    assert gate.recognise(ROOT, change)
    assert not gate.recognise(ROOT, change)
    assert len(gate) == 0


@pytest.mark.fault("B5")
def test_a_write_that_something_follows_from_is_not_passed_over() -> None:
    hub = a_store(PlaneName("hub"), A_KIND)
    gate = WriteGate(Stores(hub).find)
    gate.wrote_at(ROOT, a_snapshot(CHILD, {"resourceVersion": "5"}))
    assert not gate.recognise(ROOT, come_back(hub, "5"))


@pytest.mark.fault("B5")
def test_what_somebody_else_wrote_is_never_taken_for_ours() -> None:
    hub = a_store(PlaneName("hub"), A_KIND)
    gate = WriteGate(Stores(hub).find)
    gate.wrote_at(ROOT, a_snapshot(CHILD, {"resourceVersion": "5"}), is_final=True)
    assert not gate.recognise(ROOT, come_back(hub, "4"))
    assert not gate.recognise(ROOT, come_back(hub, "6"))
    gone = hub.remove(CHILD.namespace, CHILD.name)
    assert gone is not None
    assert not gate.recognise(ROOT, gone)


@pytest.mark.fault("C5")
def test_a_version_that_was_only_read_may_be_somebody_elses() -> None:
    hub = a_store(PlaneName("hub"), A_KIND)
    gate = WriteGate(Stores(hub).find)
    live = a_snapshot(CHILD, {"resourceVersion": "5"})
    gate.wrote_at(ROOT, live)  # no answer came, and this is what is there now
    gate.wrote_at(ROOT, live, is_final=True)
    assert not gate.recognise(ROOT, come_back(hub, "5"))


@pytest.mark.fault("D9")
def test_a_version_of_a_former_life_is_not_ours() -> None:
    hub = a_store(PlaneName("hub"), A_KIND)
    hub.reach(100)
    gate = WriteGate(Stores(hub).find)
    gate.wrote_at(ROOT, a_snapshot(CHILD, {"resourceVersion": "101"}), is_final=True)
    hub.complete([], version=50, at=timedelta())
    assert not gate.recognise(ROOT, come_back(hub, "101"))


def test_all_final_writes_of_one_pass_to_an_object_are_recognised_as_they_come_back() -> None:
    hub = a_store(PlaneName("hub"), A_KIND)
    gate = WriteGate(Stores(hub).find)
    gate.wrote_at(ROOT, a_snapshot(CHILD, {"resourceVersion": "5"}), is_final=True)
    gate.wrote_at(ROOT, a_snapshot(CHILD, {"resourceVersion": "7"}), is_final=True)
    assert gate.recognise(ROOT, come_back(hub, "5"))
    assert not gate.recognise(ROOT, come_back(hub, "6"))  # somebody else's, in between
    assert gate.recognise(ROOT, come_back(hub, "7"))
    assert len(gate) == 0


@pytest.mark.parametrize("finals", [(True, False), (False, True)])
def test_a_final_write_beside_one_that_is_not_is_looked_at(finals: tuple[bool, bool]) -> None:
    hub = a_store(PlaneName("hub"), A_KIND)
    gate = WriteGate(Stores(hub).find)
    for version, is_final in zip(("5", "7"), finals, strict=True):
        gate.wrote_at(ROOT, a_snapshot(CHILD, {"resourceVersion": version}), is_final=is_final)
    assert not gate.recognise(ROOT, come_back(hub, "5"))
    assert not gate.recognise(ROOT, come_back(hub, "7"))
