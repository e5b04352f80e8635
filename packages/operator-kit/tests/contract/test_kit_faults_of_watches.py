"""Section B of the fault matrix, played on the example operator: watches and caches."""

from __future__ import annotations

from datetime import timedelta

import pytest
from example_operator.mirror.observe import copy_key
from example_operator.notes import HUB, NOTE
from example_operator.oracles import find_violations
from example_operator.scenario import GONE, KEPT, live, live_and_rest
from example_operator.world import Run, World, a_note, play

from compute_operator_kit.core.keys import ObjectKey
from compute_sim_planes.faults.plans import Action, Fault, Parameters, Point
from compute_sim_planes.history import Injected, Request

PLANES = ("hub", "alpha")


def strike(fault_id: str, action: Action, at: Point, **parameters: object) -> Fault:
    return Fault(fault_id, action, at, Parameters(**parameters))  # type: ignore[arg-type]  # as written


def on_events(plane: str, nth: int = 1, **rest: object) -> Point:
    return Point(plane=plane, verb="watch", kind="Note", nth=nth, **rest)  # type: ignore[arg-type]


def assert_struck(done: Run) -> None:
    assert list(done.history.of(Injected)), "the fault never took effect: the test shows nothing"


def requests(done: Run, verb: str, plane: str = "") -> list[Request]:
    return [
        request
        for request in done.history.of(Request)
        if request.caller.identity == "operator"
        and request.address.verb == verb
        and plane in {"", request.address.plane}
    ]


@pytest.mark.parametrize("plane", PLANES)
@pytest.mark.parametrize("nth", [1, 2, 5])
@pytest.mark.parametrize(
    ("fault_id", "action"),
    [
        pytest.param("B3", Action.DUPLICATE, marks=pytest.mark.fault("B3")),
        pytest.param("B3", Action.BOOKMARK_NOISE, marks=pytest.mark.fault("B3")),
        pytest.param("B1", Action.DELAY_PAST_NEXT, marks=pytest.mark.fault("B4")),
        pytest.param("B8", Action.CUT_LINE, marks=pytest.mark.fault("B8")),
        pytest.param("B8", Action.GARBAGE, marks=pytest.mark.fault("B8")),
        pytest.param("B8", Action.END_STREAM, marks=pytest.mark.fault("B8")),
        pytest.param("B7", Action.SILENCE, marks=pytest.mark.fault("B7")),
    ],
)
def test_a_watch_that_goes_wrong_once_changes_nothing_in_the_end(
    fault_id: str, action: Action, plane: str, nth: int
) -> None:
    done = play(live_and_rest, strike(fault_id, action, on_events(plane, nth)))
    assert_struck(done)
    assert find_violations(done) == ""


@pytest.mark.fault("B8")
@pytest.mark.parametrize("plane", PLANES)
def test_an_error_event_restarts_the_stream(plane: str) -> None:
    at = on_events(plane, 2)
    done = play(live_and_rest, strike("B8", Action.ERROR_EVENT, at, status=500, reason="Internal"))
    assert_struck(done)
    assert find_violations(done) == ""
    assert len(requests(done, "list", plane)) == 1


@pytest.mark.fault("B1")
@pytest.mark.parametrize("plane", PLANES)
@pytest.mark.parametrize("nth", [1, 3, 6])
def test_a_dropped_event_is_made_good_by_the_next_list(plane: str, nth: int) -> None:
    async def live_and_expire(world: World) -> None:
        await live(world)
        world.planes[plane].state.store.compact()
        for stream in tuple(world.planes[plane].state.streams):
            stream.end()
        await world.sleep(12 * 60)

    done = play(live_and_expire, strike("B1", Action.DROP, on_events(plane, nth)))
    assert_struck(done)
    assert find_violations(done) == ""


@pytest.mark.fault("B2")
def test_an_object_deleted_without_a_watch_is_noticed() -> None:
    async def delete_in_a_gap(world: World) -> None:
        world.start_acting()
        world.process().start("alpha", "beta")
        for name in ("kept", "gone"):
            await world.create(a_note(name))
        await world.sleep(5)
        world.links["alpha"].cut()
        await world.kube("alpha").patch_merge(a_note("gone"), {"metadata": {"finalizers": None}})
        await world.delete(a_note("gone"))
        await world.create(a_note("born-and-gone"))
        await world.delete(a_note("born-and-gone"))
        await world.sleep(5)
        world.planes["alpha"].state.store.compact()
        world.links["alpha"].heal()
        await world.sleep(12 * 60)
        assert await world.is_gone(a_note("gone"))
        assert await world.is_mirrored(a_note("kept"))
        assert len(await world.notes(HUB)) == 1

    done = play(delete_in_a_gap)
    assert find_violations(done) == ""
    assert len(requests(done, "list", "alpha")) == 2


@pytest.mark.fault("B5")
@pytest.mark.parametrize("plane", PLANES)
@pytest.mark.parametrize("nth", [1, 2, 4])
@pytest.mark.parametrize("behind", [1, 0])
def test_a_stale_cache_holds_the_key_back_instead_of_deciding(
    plane: str, nth: int, behind: int
) -> None:
    at = on_events(plane, nth, times=0)
    stale = strike("B5", Action.STALE, at, delay=timedelta(seconds=5), count=behind)
    done = play(live_and_rest, stale)
    assert_struck(done)
    assert find_violations(done) == ""
    created = [sent.address.key for sent in done.world.writes(verb="create")]
    assert sorted(created) == sorted(set(created)), "created twice"


@pytest.mark.fault("B5")
def test_keys_held_back_for_their_own_writes_are_counted() -> None:
    at = on_events("hub", 1, times=0)
    done = play(live_and_rest, strike("B5", Action.STALE, at, delay=timedelta(seconds=5), count=0))
    measures = done.world.processes[0].measures
    assert measures.total("compute_stale_sync_skips_total", controller="mirror") > 0


@pytest.mark.fault("B6")
@pytest.mark.parametrize("plane", PLANES)
@pytest.mark.parametrize("nth", [1, 3])
def test_an_expired_watch_is_one_list_and_no_error(plane: str, nth: int) -> None:
    at = on_events(plane, nth)
    done = play(live_and_rest, strike("B6", Action.ERROR_EVENT, at, status=410, reason="Expired"))
    assert_struck(done)
    assert find_violations(done) == ""
    assert len(requests(done, "list", plane)) == 2
    restarts = done.world.processes[0].measures
    assert restarts.total("compute_watch_restarts_total", code="410") == 1


@pytest.mark.fault("B6")
def test_an_expired_start_of_a_watch_is_one_list() -> None:
    at = Point(plane="hub", verb="watch", kind="Note")
    done = play(live_and_rest, strike("B6", Action.ERROR, at, status=410, reason="Expired"))
    assert_struck(done)
    assert find_violations(done) == ""
    assert len(requests(done, "list", "hub")) == 2


@pytest.mark.fault("B6")
def test_an_expired_continue_token_begins_the_list_again() -> None:
    async def many(world: World) -> None:
        for number in range(3):
            await world.create(a_note(f"n{number}"))
        world.start_acting()
        process = world.process()
        process.start("alpha", "beta")
        await world.sleep(12 * 60)
        for number in range(3):
            assert await world.is_mirrored(a_note(f"n{number}"))

    at = Point(plane="alpha", verb="list", kind="Note")
    done = play(many, strike("B6", Action.ERROR, at, status=410, reason="Expired"))
    assert_struck(done)
    assert find_violations(done) == ""
    assert len(requests(done, "list", "alpha")) == 2


@pytest.mark.fault("B7")
def test_a_silent_watch_is_noticed_within_ninety_seconds() -> None:
    async def fall_silent(world: World) -> None:
        world.start_acting()
        world.process().start("alpha", "beta")
        await world.sleep(5)
        await world.create(a_note())
        taken = await world.eventually(lambda: world.is_mirrored(a_note()), within=100)
        assert 80 < taken <= 95
        await world.sleep(12 * 60)

    done = play(fall_silent, strike("B7", Action.SILENCE, on_events("alpha")))
    assert_struck(done)
    assert find_violations(done) == ""
    restarts = done.world.processes[0].measures
    assert restarts.total("compute_watch_restarts_total", code="idle") >= 1


@pytest.mark.fault("B9")
def test_a_flood_of_events_is_a_few_reconciles() -> None:
    async def flood(world: World) -> None:
        world.process().start("alpha", "beta")
        await world.create(a_note())
        await world.sleep(5)
        world.links[HUB].slow(timedelta(seconds=1))  # a consumer that cannot follow
        kube = world.kube("alpha")
        for number in range(2000):
            await kube.patch_merge(a_note(), {"spec": {"text": str(number)}})
        await world.sleep(12 * 60)
        assert await world.is_mirrored(a_note())

    done = play(flood)
    assert find_violations(done) == ""
    assert len(done.world.writes(verb="patch")) < 50


@pytest.mark.fault("B10")
def test_a_kind_absent_at_start_installed_removed_and_installed_again() -> None:
    late = a_note("n", "late")

    async def come_and_go(world: World) -> None:
        await world.add_plane("late", with_notes=False)
        world.start_acting()
        world.process().start("alpha", "beta", "late")
        await world.create(KEPT)
        await world.sleep(60)
        assert await world.is_mirrored(KEPT), "another plane must not wait for the kind"
        await world.install_notes("late")
        await world.create(late)
        await world.eventually(lambda: world.is_mirrored(late), within=60)
        await world.serve_notes("late", is_served=False)
        await world.sleep(120)
        assert await world.is_mirrored(KEPT)
        assert await world.find(copy_key(late)) is not None, "not served is not deleted"
        await world.serve_notes("late", is_served=True)
        await world.sleep(60)
        await world.edit(late, "changed")
        await world.eventually(lambda: world.is_mirrored(late), within=60)
        await world.uninstall_notes("late")
        await world.eventually(lambda: _is_absent(world, copy_key(late)), within=60)
        await world.sleep(120)
        await world.install_notes("late")
        await world.create(late)
        await world.eventually(lambda: world.is_mirrored(late), within=60)
        await world.sleep(12 * 60)

    done = play(come_and_go)
    assert find_violations(done) == ""


async def _is_absent(world: World, key: ObjectKey) -> bool:
    return await world.find(key) is None


@pytest.mark.fault("D9")
def test_a_hub_restored_from_an_old_backup_is_listed_again() -> None:
    async def restore(world: World) -> None:
        world.start_acting()
        process = world.process()
        process.start("alpha", "beta")
        for key in (KEPT, GONE):
            await world.create(key)
        await world.sleep(5)
        await world.restore_from_nothing(HUB)
        await world.sleep(15 * 60)  # the bookmark comes after a minute
        for key in (KEPT, GONE):
            assert await world.is_mirrored(key)
        store = process.operator.planes.find_store(HUB, NOTE)
        assert store is not None
        assert len(store) == 2

    done = play(restore)
    assert find_violations(done) == ""


def test_streams_that_lived_as_long_as_asked_are_not_counted_as_broken() -> None:
    async def rest(world: World) -> None:
        world.process().start("alpha", "beta")
        await world.create(a_note())
        await world.eventually(lambda: world.is_mirrored(a_note()))
        await world.sleep(1800)

    done = play(rest)
    assert done.world.processes[0].measures.total("compute_watch_restarts_total") == 0


def test_keys_of_deleted_objects_are_not_reconciled_forever() -> None:
    async def outlive(world: World) -> None:
        process = world.process()
        process.start("alpha", "beta")
        await world.create(a_note())
        await world.eventually(lambda: world.is_mirrored(a_note()))
        await world.delete(a_note())
        await world.eventually(lambda: world.is_gone(a_note()))
        await world.sleep(60)
        before = process.measures.total("controller_runtime_reconcile_total")
        await world.sleep(7200)
        assert process.measures.total("controller_runtime_reconcile_total") == before

    play(outlive)
