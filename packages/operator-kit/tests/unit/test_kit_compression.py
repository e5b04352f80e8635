"""Objects that do not change are compressed after a while and read the same."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from hashlib import shake_128

import pytest

from compute_operator_kit.cache.store import Store
from compute_operator_kit.core.compression import LARGEST, SMALLEST, is_packed, pack, unpack
from compute_operator_kit.core.json import JsonObject, member_object, member_text
from compute_operator_kit.core.keys import PlaneName
from compute_operator_kit.core.objects import Metadata, Snapshot, parse_object
from compute_operator_kit.planes.cache_compactor import (
    COMPRESSED_AT_ONCE,
    LONGEST_PAUSE,
    WORTH_TRIMMING,
    CacheCompactor,
    compact_resting,
)
from compute_operator_kit.testing.fakes import A_KIND, FakeClock, a_key, a_snapshot

PLANE = PlaneName("cell")
TEXT = "a sentence that is said again and again; " * 40


def a_large(name: str = "web", *, version: int = 1, text: str = TEXT) -> Snapshot:
    metadata = {"resourceVersion": str(version)}
    return a_snapshot(a_key(name, plane=PLANE), metadata, spec={"text": text})


def put(store: Store, snapshot: Snapshot) -> None:
    store.put(parse_object(PLANE, A_KIND, snapshot.decode(), None))


def held(store: Store, name: str = "web") -> Snapshot:
    snapshot = store.get("default", name)
    assert isinstance(snapshot, Snapshot)
    return snapshot


def by_text(_: Metadata, body: JsonObject) -> Iterable[str]:
    return (member_text(member_object(body, "spec"), "text")[:10],)


def a_store() -> Store:
    store = Store(PLANE, A_KIND, {"text": by_text})
    store.replace((), version=0, at=FakeClock().monotonic())
    return store


def rest(store: Store) -> int:
    return sum(1 for _ in store.pack_resting())


# --- bytes ----------------------------------------------------------------------------------------


@pytest.mark.spec("AT-01")
def test_a_body_that_takes_milliseconds_to_compress_stays_as_it_is() -> None:
    largest = TEXT.encode() * (LARGEST // len(TEXT))

    assert is_packed(pack(largest))
    assert pack(largest + TEXT.encode()) == largest + TEXT.encode()


@pytest.mark.parametrize("raw", [b"{}", b'{"a":1}', b' {"a":1}', a_large().raw])
def test_what_was_packed_comes_back_byte_for_byte(raw: bytes) -> None:
    assert unpack(pack(raw)) == raw
    assert pack(pack(raw)) == pack(raw)
    assert len(pack(raw)) <= len(raw)


def test_only_what_is_worth_it_is_packed() -> None:
    assert is_packed(pack(a_large().raw))
    assert not is_packed(pack(b"{" + b" " * (SMALLEST - 3) + b"}"))
    noise = shake_128(b"noise").digest(2 * SMALLEST)
    assert pack(b"{" + noise) == b"{" + noise


def test_a_packed_object_reads_as_it_did() -> None:
    loose = a_large()
    packed = loose.packed()
    assert len(packed.kept) < len(loose.kept) / 4
    assert packed == loose
    assert packed.raw == loose.raw
    assert packed.decode() == loose.decode()
    assert packed.read() == loose.read()
    assert packed.packed() is packed
    assert a_snapshot().packed().kept == a_snapshot().kept


def test_readers_share_one_decoded_form_of_a_packed_object_too() -> None:
    packed = a_large(text=TEXT + "once").packed()
    assert packed.read() is packed.read()
    assert packed.decode() is not packed.decode()


# --- a store --------------------------------------------------------------------------------------


def test_an_object_is_compressed_after_it_did_not_change_between_two_calls() -> None:
    store = a_store()
    put(store, a_large())
    assert rest(store) == 0
    assert not is_packed(held(store).kept)
    assert rest(store) == 1
    assert is_packed(held(store).kept)
    assert held(store) == a_large()
    assert rest(store) == 0  # nothing is left to look at


def test_an_object_that_goes_on_changing_is_left_as_it_comes() -> None:
    store = a_store()
    for version in range(1, 5):
        put(store, a_large(version=version))
        assert rest(store) == 0
    assert not is_packed(held(store).kept)
    assert rest(store) == 1


def test_what_changes_while_others_are_packed_is_left_to_rest_anew() -> None:
    store = a_store()
    for name in ("a", "b"):
        put(store, a_large(name))
    rest(store)
    steps = store.pack_resting()
    next(steps)
    put(store, a_large("b", version=2))
    assert list(steps) == []
    assert not is_packed(held(store, "b").kept)
    rest(store)
    assert rest(store) == 1
    assert held(store, "b") == a_large("b", version=2)


def test_an_object_that_goes_before_it_rests_is_not_brought_back() -> None:
    store = a_store()
    put(store, a_large())
    rest(store)
    store.remove("default", "web")
    assert rest(store) == 0
    assert len(store) == 0


def test_a_compressed_object_keeps_its_index_values() -> None:
    store = a_store()
    put(store, a_large())
    rest(store)
    rest(store)
    assert store.by_index("text", TEXT[:10]) == (a_large(),)
    change = store.remove("default", "web")
    assert change is not None
    assert change.before is not None
    assert change.before.index_values == {"text": (TEXT[:10],)}


def test_equal_values_of_two_objects_are_kept_once() -> None:
    store = a_store()
    put(store, a_large("a"))
    put(store, a_large("b"))
    first, second = store.entry("default", "a"), store.entry("default", "b")
    assert first is not None
    assert second is not None
    assert first.index_values is second.index_values


# --- all stores -----------------------------------------------------------------------------------


async def test_all_stores_are_packed_and_others_run_meanwhile() -> None:
    stores = [a_store(), a_store()]
    for store in stores:
        for number in range(WORTH_TRIMMING):
            put(store, a_large(f"web-{number}"))
    turns = 0

    async def run_beside() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(run_beside())
    assert await compact_resting(stores) == 0
    assert await compact_resting(stores) == 2 * WORTH_TRIMMING
    beside.cancel()
    assert turns >= 2 * WORTH_TRIMMING // COMPRESSED_AT_ONCE
    assert all(is_packed(held(store, "web-7").kept) for store in stores)


async def test_packing_gives_way_to_work_for_a_while() -> None:
    clock, store, is_pressed = FakeClock(), a_store(), True
    compactor = CacheCompactor(lambda: [store], clock, lambda: is_pressed)
    put(store, a_large())
    for _ in range(3):
        await compactor.run_once()
    assert not is_packed(held(store).kept)
    for _ in range(2):
        clock.pass_time(LONGEST_PAUSE)
        await compactor.run_once()
    assert is_packed(held(store).kept), "a rush that lasts"
    put(store, a_large("other"))
    is_pressed = False
    for _ in range(2):
        await compactor.run_once()
    assert is_packed(held(store, "other").kept)
