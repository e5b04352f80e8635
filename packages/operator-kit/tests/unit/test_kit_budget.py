"""Caches hold no more than their budget: bodies go first, headers stay, nothing is lost."""

from __future__ import annotations

import random

import pytest

from compute_operator_kit.cache.body_retention import BodyRetention
from compute_operator_kit.cache.budget import (
    EXHAUSTED_AT,
    HEADER_BYTES,
    Budget,
    PlaneUsageMeter,
    ShareUsageMeter,
    UsageAccount,
)
from compute_operator_kit.cache.store import CACHE_EXHAUSTED, Change, Store
from compute_operator_kit.core.clock import ZERO
from compute_operator_kit.core.errors import LimitExceededError
from compute_operator_kit.core.json import JsonObject
from compute_operator_kit.core.keys import PlaneName
from compute_operator_kit.core.objects import (
    BodyLeftOutError,
    Metadata,
    ReceivedObject,
    Snapshot,
    Unreadable,
    lent_bodies,
)
from compute_operator_kit.core.partial_decoder import PartialDecoder
from compute_operator_kit.testing.fakes import A_KIND, a_key, a_snapshot

ALPHA = PlaneName("alpha")
BUDGET = Budget(bytes=40 * 1024, objects=20)
SIZE = 8 * 1024


def a_note(name: str, version: int = 1, size: int = SIZE, **labels: str) -> ReceivedObject:
    """An object with a body that does not compress."""
    text = random.Random(f"{name}/{version}").randbytes(size // 2).hex()  # noqa: S311
    header: JsonObject = {"resourceVersion": str(version), "labels": {**labels}}
    return ReceivedObject(a_snapshot(a_key(name, plane="alpha"), header, spec={"text": text}))


def a_store(meter: PlaneUsageMeter | ShareUsageMeter, *, bodies: bool = True) -> Store:
    return Store(ALPHA, A_KIND, retention=BodyRetention(meter, bodies=bodies))


def fill(store: Store, *notes: ReceivedObject) -> list[Change | None]:
    changes = [store.put(note) for note in notes]
    places = [(note.snapshot.key.namespace, note.snapshot.key.name) for note in notes]
    store.replace(places, version=1, at=ZERO)
    return changes


def cached(store: Store, name: str) -> Snapshot:
    snapshot = store.get("default", name)
    assert isinstance(snapshot, Snapshot)
    return snapshot


@pytest.mark.spec("AT-01")
def test_beyond_the_budget_headers_are_kept_and_every_change_is_reported() -> None:
    meter = PlaneUsageMeter(BUDGET)
    store = a_store(meter)
    changes = fill(store, *(a_note(f"n{number}") for number in range(8)))
    assert all(changes)
    assert meter.account.is_over
    assert meter.account.bytes <= BUDGET.bytes + 8 * HEADER_BYTES
    assert len(store) == 8
    assert cached(store, "n0").has_body
    assert not cached(store, "n7").has_body
    assert cached(store, "n7").metadata.uid == "uid-of-n7"


@pytest.mark.spec("AT-01")
def test_objects_are_bounded_as_bytes_are() -> None:
    meter = PlaneUsageMeter(BUDGET)
    store = a_store(meter)
    fill(store, *(a_note(f"n{number}", size=10) for number in range(BUDGET.objects + 1)))
    assert (meter.account.objects, meter.account.without_body) == (21, 1)


@pytest.mark.spec("AT-01")
def test_a_body_that_was_left_out_is_missed_and_can_be_lent() -> None:
    store = a_store(PlaneUsageMeter(Budget(1024, 10)))
    note = a_note("n")
    fill(store, note)
    hollow = cached(store, "n")
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
    meter = PlaneUsageMeter(Budget(1024**2, 100))
    store, account = a_store(meter), meter.account
    fill(store, a_note("a"), a_note("b"))
    held = HEADER_BYTES * 2 + sum(len(cached(store, name).kept) for name in "ab")
    assert (account.bytes, account.objects) == (held, 2)
    store.put(a_note("a", 2, size=100))
    held = HEADER_BYTES * 2 + sum(len(cached(store, name).kept) for name in "ab")
    assert (account.bytes, account.objects) == (held, 2)
    for _ in range(3):
        list(store.pack_resting())
    held = HEADER_BYTES * 2 + sum(len(cached(store, name).kept) for name in "ab")
    assert account.bytes == held
    store.remove("default", "a")
    store.drop("TooMuch")
    assert (account.bytes, account.objects, account.without_body) == (0, 0, 0)


@pytest.mark.spec("AT-01")
def test_a_store_that_is_dropped_says_that_nothing_is_known() -> None:
    store = a_store(PlaneUsageMeter(BUDGET))
    fill(store, a_note("n"))
    store.drop("TooMuch")
    assert store.get("default", "n") == Unreadable("TooMuch")
    assert store.snapshots() == Unreadable("TooMuch")
    fill(store, a_note("n"))
    assert cached(store, "n").has_body


@pytest.mark.spec("AT-01")
def test_bodies_come_back_with_a_list_once_there_is_room() -> None:
    store = a_store(PlaneUsageMeter(BUDGET))
    notes = [a_note(f"n{number}") for number in range(6)]
    fill(store, *notes)
    assert not store.lacks_bodies  # there is no room for them
    for name in ("n0", "n1"):
        store.remove("default", name)
    assert store.lacks_bodies
    assert fill(store, *notes[2:]) == [None] * 4  # the same versions: no change
    assert all(cached(store, f"n{number}").has_body for number in range(2, 6))
    assert not store.lacks_bodies


@pytest.mark.spec("AT-01")
def test_a_plane_with_too_many_headers_is_refused() -> None:
    store = a_store(PlaneUsageMeter(BUDGET))
    most = BUDGET.bytes * EXHAUSTED_AT // HEADER_BYTES
    most = min(most, BUDGET.objects * EXHAUSTED_AT)
    for number in range(most):
        store.put(a_note(f"n{number}", size=10))
    with pytest.raises(LimitExceededError) as raised:
        store.put(a_note("one-more", size=10))
    assert raised.value.reason == CACHE_EXHAUSTED
    assert (
        store.put(a_note("n0", 2, size=10)) is not None
    )  # changes of cached objects are still reported


@pytest.mark.spec("AT-01")
def test_long_headers_are_counted_though_their_text_packs_well() -> None:
    meter = PlaneUsageMeter(BUDGET)
    store = a_store(meter)
    header = {"annotations": {"a": "x" * 30_000}}
    note = ReceivedObject(a_snapshot(a_key("n", plane="alpha"), header))
    fill(store, note)
    for _ in range(3):
        list(store.pack_resting())
    assert len(cached(store, "n").kept) < 1000
    assert meter.account.bytes > 30_000
    store.remove("default", "n")
    assert meter.account.bytes == 0


@pytest.mark.spec("AT-01")
def test_a_kind_of_which_only_headers_are_read_is_kept_by_them() -> None:
    meter = PlaneUsageMeter(BUDGET)
    store = a_store(meter, bodies=False)
    fill(store, *(a_note(f"n{number}") for number in range(8)))
    assert not cached(store, "n0").has_body
    assert not meter.account.is_over
    assert meter.account.bytes == 8 * HEADER_BYTES


def shares(metadata: Metadata) -> tuple[tuple[str, Budget], ...]:
    return tuple(
        (metadata.labels[key], BUDGET) for key in ("who", "where") if key in metadata.labels
    )


@pytest.mark.spec("AT-01")
def test_on_a_shared_plane_one_share_takes_no_room_of_another() -> None:
    meter = ShareUsageMeter(shares)
    store = a_store(meter)
    fill(
        store,
        *(a_note(f"heavy{number}", who="heavy", where="dfw") for number in range(8)),
        a_note("light", who="light", where="ord"),
        a_note("neither"),
    )
    assert meter.over() == ("dfw", "heavy")
    assert cached(store, "light").has_body
    assert cached(store, "neither").has_body
    for number in range(8):
        store.remove("default", f"heavy{number}")
    assert meter.over() == ()


@pytest.mark.spec("AT-01")
def test_what_a_share_exhausts_is_left_out_and_the_plane_stays() -> None:
    store = a_store(ShareUsageMeter(shares))
    most = BUDGET.objects * EXHAUSTED_AT
    for number in range(most + 5):
        store.put(a_note(f"n{number}", size=10, who="heavy"))
    assert len(store) == most
    assert store.put(a_note("light", who="light")) is not None


@pytest.mark.spec("AT-01")
def test_the_outline_of_an_object_outlives_its_body() -> None:
    outline = PartialDecoder(dict[str, object])
    note = ReceivedObject(a_snapshot(a_key("n", plane="alpha"), spec={"city": "DFW"}))
    store = Store(
        ALPHA, A_KIND, decoder=outline, retention=BodyRetention(PlaneUsageMeter(Budget(1024, 10)))
    )
    fill(store, note)
    assert not cached(store, "n").has_body
    assert outline.read(cached(store, "n"))["spec"] == {"city": "DFW"}


def test_a_change_is_remembered_without_long_bodies() -> None:
    store = a_store(PlaneUsageMeter(Budget(1024**2, 100)))
    long, short = store.put(a_note("long")), store.put(a_note("short", size=10))
    assert long is not None
    assert short is not None
    assert long.without_bodies().key == long.key
    assert [side.snapshot.has_body for side in long.without_bodies().entries] == [False]
    assert short.without_bodies() is short


def test_an_account_has_room_until_it_has_not() -> None:
    account = UsageAccount(Budget(100, 2))
    assert account.has_room(100)
    assert not account.has_room(101)
    account.add(40, has_body=True)
    assert not account.is_half_full
    account.add(20, has_body=True)
    assert account.is_half_full
    assert not account.has_room(1)  # two objects are all
