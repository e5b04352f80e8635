"""Section C of the fault matrix, played on the example operator: contention and API errors."""

from __future__ import annotations

import itertools
from datetime import timedelta

import pytest
from example_operator.mirror.observe import copy_key
from example_operator.notes import HUB
from example_operator.oracles import find_violations
from example_operator.scenario import BYSTANDER, KEPT, check_end, live, live_and_rest
from example_operator.world import Run, World, a_note, play

from compute_operator_kit.core.json import member_object
from compute_sim_planes.faults.plans import Action, Fault, Parameters, Point
from compute_sim_planes.history import Injected, Request

MINUTE = timedelta(minutes=1)


def writes(plane: str = "", nth: int = 1, *, times: int = 1, every: int = 1) -> Point:
    return Point(plane=plane, verb="write", kind="Note", nth=nth, times=times, every=every)


def error(fault_id: str, at: Point, status: int, reason: str = "") -> Fault:
    return Fault(fault_id, Action.ERROR, at, Parameters(status=status, reason=reason))


def assert_struck(done: Run) -> None:
    assert list(done.history.of(Injected)), "the fault never took effect: the test shows nothing"


def mirrored_after(done: Run, key_plane: str) -> float:
    """When the copy of a plane's first Note was created, in seconds of the run."""
    made = [
        request.at
        for request in done.world.writes(verb="create")
        if request.status == 201 and request.address.name.startswith(f"{key_plane}.")
    ]
    return (min(made) - done.history.begun).total_seconds()


@pytest.mark.fault("C1")
@pytest.mark.parametrize("every", [1, 2, 3])
def test_conflicts_on_every_nth_write_are_overcome(every: int) -> None:
    times = 4 if every == 1 else 0
    done = play(live_and_rest, error("C1", writes(times=times, every=every), 409, "Conflict"))
    assert_struck(done)
    assert find_violations(done) == ""
    assert done.world.error_lines == []


@pytest.mark.fault("C1")
def test_a_minute_of_nothing_but_conflicts_passes() -> None:
    at = Point(verb="write", kind="Note", times=0, after=timedelta(seconds=5), until=MINUTE)
    done = play(_live_longer, error("C1", at, 409, "Conflict"))
    assert_struck(done)
    assert find_violations(done) == ""
    assert len(done.world.writes()) < 200


@pytest.mark.fault("C2")
def test_foreign_writers_keep_what_they_wrote_without_a_fight() -> None:
    async def write_beside(world: World) -> None:
        world.start_acting()
        world.process().start("alpha", "beta")
        await world.create(KEPT)
        await world.sleep(5)
        before = len(world.writes())
        hub, project = world.kube(HUB), world.kube("alpha")
        foreign = {"labels": {"foreign": "1"}, "annotations": {"foreign": "2"}}
        for _ in range(5):
            await hub.patch_merge(copy_key(KEPT), {"metadata": {**foreign, "finalizers": ["f/g"]}})
            await project.patch_merge(KEPT, {"metadata": foreign})
            await world.sleep(1)
        assert len(world.writes()) - before == 0, "a foreign field is none of our business"
        await hub.patch_merge(copy_key(KEPT), {"spec": {"text": "forged"}})
        await world.eventually(lambda: world.is_mirrored(KEPT))
        copy = await world.find(copy_key(KEPT))
        assert copy is not None
        metadata = member_object(copy, "metadata")
        assert member_object(metadata, "labels")["foreign"] == "1"
        assert member_object(metadata, "annotations")["foreign"] == "2"
        assert metadata["finalizers"] == ["f/g"]
        await world.sleep(12 * 60)

    assert find_violations(play(write_beside)) == ""


@pytest.mark.fault("C3")
@pytest.mark.parametrize("retry_after", [timedelta(seconds=20), None])
def test_a_throttling_plane_is_left_alone_as_long_as_it_asked(
    retry_after: timedelta | None,
) -> None:
    at = Point(plane=HUB, verb="create", kind="Note", times=1)
    parameters = Parameters(status=429, reason="TooManyRequests", retry_after=retry_after)
    done = play(live_and_rest, Fault("C3", Action.ERROR, at, parameters))
    assert_struck(done)
    assert find_violations(done) == ""
    struck = next(done.history.of(Injected)).at
    pause = retry_after or timedelta(seconds=1)
    early = [
        request
        for request in done.history.of(Request)
        if request.caller.identity == "operator"
        and request.address.plane == HUB
        and struck < request.begun < struck + pause
    ]
    assert early == []
    assert done.world.error_lines == []


@pytest.mark.fault("C3")
def test_a_throttling_project_does_not_hold_another() -> None:
    at = Point(plane="alpha", kind="Note", times=0, until=MINUTE)
    parameters = Parameters(status=429, reason="Busy", retry_after=timedelta(seconds=10))
    done = play(live_and_rest, Fault("C3", Action.ERROR, at, parameters))
    assert find_violations(done) == ""
    assert mirrored_after(done, "beta") < 2


@pytest.mark.fault("C4")
@pytest.mark.parametrize("plane", [HUB, "alpha"])
@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_a_broken_server_is_tried_again(plane: str, status: int) -> None:
    done = play(live_and_rest, error("C4", writes(plane, times=3), status))
    assert_struck(done)
    assert find_violations(done) == ""


@pytest.mark.fault("C4")
@pytest.mark.parametrize("action", [Action.REFUSE, Action.RESET, Action.BAD_BODY])
def test_a_connection_that_fails_is_tried_again(action: Action) -> None:
    done = play(live_and_rest, Fault("C4", action, writes(times=3)))
    assert_struck(done)
    assert find_violations(done) == ""


@pytest.mark.fault("C4")
@pytest.mark.parametrize("status", [409, 503])
def test_back_off_grows_and_is_capped(status: int) -> None:
    async def make_one(world: World) -> None:
        world.start_acting()
        world.process().start("alpha", "beta")
        await world.create(a_note())
        await world.sleep(5 * 60)
        world.injector.disarm("C4")
        await world.sleep(14 * 60)
        assert await world.is_mirrored(a_note())

    at = Point(plane=HUB, verb="create", kind="Note", times=0)
    done = play(make_one, error("C4", at, status))
    assert_struck(done)
    # Conflicts are retried at once, among the reconciles that our own status enqueues.
    assert find_violations(done, is_undisturbed=status != 409) == ""
    sent = [request.begun for request in done.world.writes(verb="create")]
    gaps = [later - earlier for earlier, later in itertools.pairwise(sent)]
    assert max(gaps[:-1]) <= MINUTE
    assert 8 <= len(sent) <= 20


@pytest.mark.fault("C5")
@pytest.mark.parametrize("action", [Action.TIMEOUT_COMMITTED, Action.LOSE_REPLY, Action.TIMEOUT])
@pytest.mark.parametrize("nth", range(1, 9))
def test_a_write_with_an_unknown_outcome_is_read_before_it_is_sent_again(
    action: Action, nth: int
) -> None:
    reference = play(live_and_rest)
    done = play(live_and_rest, Fault("C5", action, writes(nth=nth)))
    assert_struck(done)
    assert find_violations(done) == ""
    for verb in ("create", "delete"):
        committed = [r for r in done.world.writes(verb=verb) if r.commits]
        expected = [r for r in reference.world.writes(verb=verb) if r.commits]
        assert len(committed) <= len(expected), f"{verb} carried out twice"


@pytest.mark.fault("C6")
@pytest.mark.parametrize(("status", "reason"), [(403, "Forbidden"), (401, "Unauthorized")])
def test_a_refused_credential_is_logged_once_and_heals_when_it_is_mended(
    status: int, reason: str
) -> None:
    at = Point(plane=HUB, verb="create", kind="Note", times=0, until=MINUTE)
    done = play(_live_longer, error("C6", at, status, reason))
    assert_struck(done)
    assert find_violations(done) == ""
    # One line per key, whatever the number of attempts.
    assert done.world.error_lines == ["Retrying"] * 4


async def _live_longer(world: World) -> None:
    await live(world)
    await world.sleep(14 * 60)
    await check_end(world)


@pytest.mark.fault("C6")
def test_an_object_the_hub_rejects_shows_on_the_note_and_heals_on_a_change() -> None:
    async def reject(world: World) -> None:
        world.start_acting()
        world.process().start("alpha", "beta")
        await world.create(a_note())
        await world.sleep(30)
        note = await world.find(a_note())
        assert note is not None
        assert member_object(note, "status")["phase"] == "Rejected"
        sent = len(world.writes(verb="create"))
        await world.sleep(60)
        assert len(world.writes(verb="create")) == sent, "not tried again while nothing changed"
        world.injector.disarm("C6")
        await world.edit(a_note(), "changed")
        await world.eventually(lambda: world.is_mirrored(a_note()))
        await world.sleep(12 * 60)

    at = Point(plane=HUB, verb="create", kind="Note", times=0)
    done = play(reject, error("C6", at, 422, "Invalid"))
    assert_struck(done)
    assert find_violations(done) == ""


@pytest.mark.fault("C6")
def test_a_namespace_that_terminates_on_the_hub_is_waited_for() -> None:
    async def terminate(world: World) -> None:
        world.start_acting()
        world.process().start("alpha", "beta")
        await world.create(a_note())
        await world.sleep(30)
        assert await world.find(copy_key(a_note())) is None
        world.injector.disarm("C6")
        await world.eventually(lambda: world.is_mirrored(a_note()), within=400)
        await world.sleep(12 * 60)

    at = Point(plane=HUB, verb="create", kind="Note", times=0)
    done = play(terminate, error("C6", at, 404, "NotFound"))
    assert_struck(done)
    assert find_violations(done) == ""


@pytest.mark.fault("C8")
def test_a_failing_status_is_completed_without_a_second_create() -> None:
    at = Point(verb="update", kind="Note", subresource="status", times=3)
    done = play(live_and_rest, error("C8", at, 500, "InternalError"))
    assert_struck(done)
    assert find_violations(done) == ""
    created = [request for request in done.world.writes(verb="create") if request.status == 201]
    assert len(created) == 4


@pytest.mark.fault("D2")
def test_a_project_that_takes_ten_seconds_per_call_delays_no_other() -> None:
    async def slow(world: World) -> None:
        world.links["alpha"].slow(timedelta(seconds=9))
        await live(world)
        world.links["alpha"].heal()
        await world.sleep(14 * 60)
        await check_end(world)

    baseline = mirrored_after(play(live_and_rest), "beta")
    done = play(slow)
    assert find_violations(done) == ""
    assert mirrored_after(done, "beta") <= 2 * baseline


@pytest.mark.fault("D8")
@pytest.mark.parametrize("half", ["reads", "writes"])
def test_half_a_link_heals(half: str) -> None:
    async def cut_half(world: World) -> None:
        world.links["alpha"].cut(reads=half == "reads", writes=half == "writes")
        await live(world)
        world.links["alpha"].heal()
        await world.sleep(14 * 60)
        await check_end(world)

    done = play(cut_half)
    assert find_violations(done) == ""
    tried = [sent for sent in done.world.writes() if sent.address.plane == "alpha"]
    assert len(tried) < 80, "retries are bounded while half of the link is away"
    assert mirrored_after(done, "beta") < 2


@pytest.mark.fault("D7")
def test_a_flapping_link_is_not_a_list_every_time() -> None:
    async def flap(world: World) -> None:
        world.start_acting()
        world.process().start("alpha", "beta")
        await world.create(BYSTANDER)
        await world.create(KEPT)
        await world.sleep(5)
        for number in range(100):
            world.links[HUB].cut()
            await world.sleep(3)
            world.links[HUB].heal()
            await world.edit(KEPT, str(number))
            await world.sleep(3)
        await world.sleep(14 * 60)
        assert await world.is_mirrored(KEPT)

    done = play(flap)
    assert find_violations(done) == ""
    lists = [
        request
        for request in done.history.of(Request)
        if request.address.verb == "list"
        and request.caller.identity == "operator"
        and request.address.plane == HUB
    ]
    assert len(lists) <= 60
