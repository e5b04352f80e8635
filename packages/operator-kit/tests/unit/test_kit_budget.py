"""Caches hold no more than their budget: bodies go first, headers stay, nothing is lost."""

from __future__ import annotations

import random

import pytest

from compute_operator_kit.budget import (
    EXHAUSTED_AT,
    HEADER_BYTES,
    Account,
    Budget,
    PlaneMeter,
    ShareMeter,
)
from compute_operator_kit.cache import CACHE_EXHAUSTED, Change, Store
from compute_operator_kit.clock import ZERO
from compute_operator_kit.errors import LimitExceededError
from compute_operator_kit.keeping import Keeping
from compute_operator_kit.keys import PlaneName
from compute_operator_kit.objects import (
    BodyLeftOutError,
    Delivered,
    Metadata,
    Snapshot,
    Unreadable,
    lent_bodies,
)
from compute_operator_kit.outline import Outline
from compute_operator_kit.testing import A_KIND, a_key, a_snapshot
from compute_operator_kit.wire import JsonObject

ALPHA = PlaneName("alpha")
BUDGET = Budget(bytes=40 * 1024, objects=20)
SIZE = 8 * 1024


def a_note(name: str, version: int = 1, size: int = SIZE, **labels: str) -> Delivered:
    """One whose body no packing makes smaller."""
    text = random.Random(f"{name}/{version}").randbytes(size // 2).hex()  # noqa: S311
    header: JsonObject = {"resourceVersion": str(version), "labels": {**labels}}
    return Delivered(a_snapshot(a_key(name, plane="alpha"), header, spec={"text": text}))


def a_store(meter: PlaneMeter | ShareMeter, *, bodies: bool = True) -> Store:
    return Store(ALPHA, A_KIND, keeping=Keeping(meter, bodies=bodies))


def fill(store: Store, *notes: Delivered) -> list[Change | None]:
    changes = [store.put(note) for note in notes]
    places = [(note.snapshot.key.namespace, note.snapshot.key.name) for note in notes]
    store.complete(places, version=1, at=ZERO)
    return changes


def found(store: Store, name: str) -> Snapshot:
    snapshot = store.get("default", name)
    assert isinstance(snapshot, Snapshot)
    return snapshot


@pytest.mark.spec("AT-01")
def test_beyond_the_budget_headers_are_kept_and_every_change_is_told() -> None:
    meter = PlaneMeter(BUDGET)
    store = a_store(meter)
    changes = fill(store, *(a_note(f"n{number}") for number in range(8)))
    assert all(changes)
    assert meter.account.is_over
    assert meter.account.bytes <= BUDGET.bytes + 8 * HEADER_BYTES
    assert len(store) == 8
    assert found(store, "n0").has_body
    assert not found(store, "n7").has_body
    assert found(store, "n7").metadata.uid == "uid-of-n7"


@pytest.mark.spec("AT-01")
def test_objects_are_bounded_as_bytes_are() -> None:
    meter = PlaneMeter(BUDGET)
    store = a_store(meter)
    fill(store, *(a_note(f"n{number}", size=10) for number in range(BUDGET.objects + 1)))
    assert (meter.account.objects, meter.account.without_body) == (21, 1)


@pytest.mark.spec("AT-01")
def test_a_body_that_was_left_out_is_missed_and_can_be_lent() -> None:
    store = a_store(PlaneMeter(Budget(1024, 10)))
    note = a_note("n")
    fill(store, note)
    hollow = found(store, "n")
    with pytest.raises(BodyLeftOutError) as raised:
        hollow.decode()
    assert (raised.value.key, raised.value.plane) == (hollow.key, ALPHA)
    lent_bodies.set({hollow.version: note.snapshot.raw})
    assert hollow.read() == note.snapshot.decode()
    lent_bodies.set(None)
    with pytest.raises(BodyLeftOutError):
        hollow.read()  # nothing of what was lent is kept


@pytest.mark.spec("AT-01")
def test_accounts_follow_what_is_changed_packed_removed_and_dropped() -> None:
    meter = PlaneMeter(Budget(1024**2, 100))
    store, account = a_store(meter), meter.account
    fill(store, a_note("a"), a_note("b"))
    held = HEADER_BYTES * 2 + sum(len(found(store, name).kept) for name in "ab")
    assert (account.bytes, account.objects) == (held, 2)
    store.put(a_note("a", 2, size=100))
    held = HEADER_BYTES * 2 + sum(len(found(store, name).kept) for name in "ab")
    assert (account.bytes, account.objects) == (held, 2)
    for _ in range(3):
        list(store.pack_resting())
    held = HEADER_BYTES * 2 + sum(len(found(store, name).kept) for name in "ab")
    assert account.bytes == held
    store.remove("default", "a")
    store.drop("TooMuch")
    assert (account.bytes, account.objects, account.without_body) == (0, 0, 0)


@pytest.mark.spec("AT-01")
def test_a_store_that_is_dropped_says_that_nothing_is_known() -> None:
    store = a_store(PlaneMeter(BUDGET))
    fill(store, a_note("n"))
    store.drop("TooMuch")
    assert store.get("default", "n") == Unreadable("TooMuch")
    assert store.snapshots() == Unreadable("TooMuch")
    fill(store, a_note("n"))
    assert found(store, "n").has_body


@pytest.mark.spec("AT-01")
def test_bodies_come_back_with_a_list_once_there_is_room() -> None:
    store = a_store(PlaneMeter(BUDGET))
    notes = [a_note(f"n{number}") for number in range(6)]
    fill(store, *notes)
    assert not store.lacks_bodies  # there is no room for them
    for name in ("n0", "n1"):
        store.remove("default", name)
    assert store.lacks_bodies
    assert fill(store, *notes[2:]) == [None] * 4  # the same versions: no change is told
    assert all(found(store, f"n{number}").has_body for number in range(2, 6))
    assert not store.lacks_bodies


@pytest.mark.spec("AT-01")
def test_a_plane_whose_headers_alone_are_too_many_is_refused() -> None:
    store = a_store(PlaneMeter(BUDGET))
    most = BUDGET.bytes * EXHAUSTED_AT // HEADER_BYTES
    most = min(most, BUDGET.objects * EXHAUSTED_AT)
    for number in range(most):
        store.put(a_note(f"n{number}", size=10))
    with pytest.raises(LimitExceededError) as raised:
        store.put(a_note("one-more", size=10))
    assert raised.value.reason == CACHE_EXHAUSTED
    assert store.put(a_note("n0", 2, size=10)) is not None  # what is held goes on being told


@pytest.mark.spec("AT-01")
def test_long_headers_are_counted_though_their_text_packs_well() -> None:
    meter = PlaneMeter(BUDGET)
    store = a_store(meter)
    header = {"annotations": {"a": "x" * 30_000}}
    note = Delivered(a_snapshot(a_key("n", plane="alpha"), header))
    fill(store, note)
    for _ in range(3):
        list(store.pack_resting())
    assert len(found(store, "n").kept) < 1000
    assert meter.account.bytes > 30_000
    store.remove("default", "n")
    assert meter.account.bytes == 0


@pytest.mark.spec("AT-01")
def test_a_kind_of_which_only_headers_are_read_is_kept_by_them() -> None:
    meter = PlaneMeter(BUDGET)
    store = a_store(meter, bodies=False)
    fill(store, *(a_note(f"n{number}") for number in range(8)))
    assert not found(store, "n0").has_body
    assert not meter.account.is_over
    assert meter.account.bytes == 8 * HEADER_BYTES


def shares(metadata: Metadata) -> tuple[tuple[str, Budget], ...]:
    return tuple(
        (metadata.labels[key], BUDGET) for key in ("who", "where") if key in metadata.labels
    )


@pytest.mark.spec("AT-01")
def test_on_a_shared_plane_one_share_takes_no_room_of_another() -> None:
    meter = ShareMeter(shares)
    store = a_store(meter)
    fill(
        store,
        *(a_note(f"heavy{number}", who="heavy", where="dfw") for number in range(8)),
        a_note("light", who="light", where="ord"),
        a_note("neither"),
    )
    assert meter.over() == ("dfw", "heavy")
    assert found(store, "light").has_body
    assert found(store, "neither").has_body
    for number in range(8):
        store.remove("default", f"heavy{number}")
    assert meter.over() == ()


@pytest.mark.spec("AT-01")
def test_what_a_share_exhausts_is_left_out_and_the_plane_stays() -> None:
    store = a_store(ShareMeter(shares))
    most = BUDGET.objects * EXHAUSTED_AT
    for number in range(most + 5):
        store.put(a_note(f"n{number}", size=10, who="heavy"))
    assert len(store) == most
    assert store.put(a_note("light", who="light")) is not None


@pytest.mark.spec("AT-01")
def test_the_outline_of_an_object_outlives_its_body() -> None:
    outline = Outline(dict[str, object])
    note = Delivered(a_snapshot(a_key("n", plane="alpha"), spec={"city": "DFW"}))
    store = Store(ALPHA, A_KIND, outline=outline, keeping=Keeping(PlaneMeter(Budget(1024, 10))))
    fill(store, note)
    assert not found(store, "n").has_body
    assert outline.read(found(store, "n"))["spec"] == {"city": "DFW"}


def test_a_change_is_remembered_without_long_bodies() -> None:
    store = a_store(PlaneMeter(Budget(1024**2, 100)))
    long, short = store.put(a_note("long")), store.put(a_note("short", size=10))
    assert long is not None
    assert short is not None
    assert long.without_bodies().key == long.key
    assert [side.snapshot.has_body for side in long.without_bodies().entries] == [False]
    assert short.without_bodies() is short


def test_an_account_has_room_until_it_has_not() -> None:
    account = Account(Budget(100, 2))
    assert account.has_room(100)
    assert not account.has_room(101)
    account.add(40, has_body=True)
    assert not account.is_half_full
    account.add(20, has_body=True)
    assert account.is_half_full
    assert not account.has_room(1)  # two objects are all
