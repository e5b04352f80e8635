import asyncio
from datetime import timedelta

import httpx
import pytest

from compute_quota_client import (
    Absent,
    ClaimKey,
    ClaimTracker,
    Granted,
    Operation,
    Pending,
    QuotaClient,
    QuotaProjectNotFoundError,
    QuotaRejectedError,
    QuotaUsageError,
)
from compute_quota_client.testing import REGION, Failure, FakeQuota, a_claim

SELECTOR = f"{REGION}=lhr"
KEY = ClaimKey("default", "bucket-logs")


def ignore(_: ClaimKey) -> None:
    """A callback that does nothing."""


async def settle(seconds: float = 0.5) -> None:
    await asyncio.sleep(seconds)


@pytest.mark.spec("Q-17")
async def test_many_callers_share_one_watch(fake: FakeQuota, quota: QuotaClient) -> None:
    trackers = [ClaimTracker(quota.project("acme"), SELECTOR) for _ in range(50)]
    followings = [tracker.follow(ignore) for tracker in trackers]
    await settle()
    assert all(tracker.synced for tracker in trackers)
    assert len(fake.sent(Operation.WATCH)) == 1
    assert fake.open_watches == 1
    for following in followings:
        following.close()


@pytest.mark.spec("Q-17")
async def test_verdicts_are_kept_and_callers_woken(fake: FakeQuota, quota: QuotaClient) -> None:
    tracker = ClaimTracker(quota.project("acme"), SELECTOR)
    woken: list[ClaimKey] = []
    assert tracker.verdict(*KEY) is None
    with tracker.follow(woken.append):
        await settle()
        assert tracker.verdict(*KEY) == Absent()
        fake.knobs.paused = True
        fake.add_claim("acme", a_claim())
        await settle()
        assert isinstance(tracker.verdict(*KEY), Pending)
        assert woken == [KEY]
        fake.evaluate()
        await settle()
        assert isinstance(tracker.verdict(*KEY), Granted)
        assert tracker.verdicts.keys() == {KEY}
        fake.delete_claim("acme", *KEY)
        woken.clear()
        await settle()
        assert woken == [KEY]
        assert tracker.verdict(*KEY) == Absent()
    # A look costs no request.
    assert fake.sent(Operation.GET) == []


@pytest.mark.spec("Q-17")
async def test_a_grant_wakes_at_once(fake: FakeQuota, quota: QuotaClient) -> None:
    tracker = ClaimTracker(quota.project("acme"), SELECTOR)
    fake.knobs.paused = True
    fake.add_claim("acme", a_claim())
    granted = asyncio.Event()

    def wake(key: ClaimKey) -> None:
        if isinstance(tracker.verdict(*key), Granted):
            granted.set()

    with tracker.follow(wake):
        await settle()
        fake.evaluate()
        await asyncio.wait_for(granted.wait(), timeout=0.25)


@pytest.mark.spec("Q-17")
async def test_it_stops_after_its_idle_time_and_starts_again(
    fake: FakeQuota, quota: QuotaClient
) -> None:
    tracker = ClaimTracker(quota.project("acme"), SELECTOR, idle_ttl=timedelta(minutes=5))
    fake.add_claim("acme", a_claim())
    first, second = tracker.follow(ignore), tracker.follow(ignore)
    await settle()
    first.close()
    first.close()
    await asyncio.sleep(400)
    assert tracker.synced, "somebody still follows"
    second.close()
    await asyncio.sleep(299)
    assert tracker.synced
    await asyncio.sleep(2)
    assert not tracker.running
    assert tracker.verdict(*KEY) is None
    assert fake.open_watches == 0
    with tracker.follow(ignore):
        await settle()
        assert isinstance(tracker.verdict(*KEY), Granted)
        assert len(fake.sent(Operation.LIST)) == 2


@pytest.mark.spec("Q-17")
async def test_a_caller_that_comes_back_in_time_keeps_the_watch_running(
    fake: FakeQuota, quota: QuotaClient
) -> None:
    tracker = ClaimTracker(quota.project("acme"), SELECTOR)
    tracker.follow(ignore).close()
    await asyncio.sleep(299)
    with tracker.follow(ignore):
        await asyncio.sleep(600)
        assert tracker.synced
        assert len(fake.sent(Operation.LIST)) == 1


@pytest.mark.spec("Q-17")
async def test_the_65th_polls_and_gets_the_next_free_place(
    fake: FakeQuota, quota: QuotaClient
) -> None:
    trackers = [ClaimTracker(quota.project(f"project-{n}"), SELECTOR) for n in range(66)]
    followings = [tracker.follow(ignore) for tracker in trackers]
    await settle()
    assert [tracker.synced for tracker in trackers] == [True] * 64 + [False] * 2
    assert fake.open_watches == 64
    assert not trackers[64].running
    assert trackers[64].degraded is None
    followings[0].close()
    await asyncio.sleep(301)
    assert [tracker.synced for tracker in trackers] == [False] + [True] * 64 + [False]
    assert fake.open_watches == 64


@pytest.mark.spec("Q-17")
async def test_the_tracker_that_waited_longest_runs_next_unless_it_was_closed(
    fake: FakeQuota, quota: QuotaClient
) -> None:
    trackers = [ClaimTracker(quota.project(f"project-{n}"), SELECTOR) for n in range(67)]
    followings = [tracker.follow(ignore) for tracker in trackers]
    await settle()
    followings[64].close()
    followings[3].close()
    await asyncio.sleep(301)
    assert [n for n, tracker in enumerate(trackers) if not tracker.synced] == [3, 64, 66]
    assert fake.open_watches == 64


@pytest.mark.spec("Q-17")
@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (Failure(403, "Forbidden"), QuotaRejectedError),
        (Failure(404, "NotFound"), QuotaProjectNotFoundError),
    ],
)
async def test_without_rights_or_project_it_is_degraded_and_recovers(
    fake: FakeQuota, quota: QuotaClient, failure: Failure, kind: type[Exception]
) -> None:
    tracker = ClaimTracker(quota.project("acme"), SELECTOR)
    fake.add_claim("acme", a_claim())
    fake.fail_next(Operation.LIST, failure, failure)
    with tracker.follow(ignore):
        await settle()
        assert isinstance(tracker.degraded, kind)
        assert not tracker.synced
        await asyncio.sleep(299)
        assert len(fake.sent(Operation.LIST)) == 1
        await asyncio.sleep(1)
        assert len(fake.sent(Operation.LIST)) == 2
        assert tracker.degraded is not None
        await asyncio.sleep(300)
        assert tracker.degraded is None
        assert tracker.synced
        assert isinstance(tracker.verdict(*KEY), Granted)


@pytest.mark.spec("Q-17")
async def test_a_deletion_while_it_was_degraded_is_reported(
    fake: FakeQuota, quota: QuotaClient
) -> None:
    tracker = ClaimTracker(quota.project("acme"), SELECTOR)
    fake.add_claim("acme", a_claim())
    woken: list[ClaimKey] = []
    with tracker.follow(woken.append):
        await settle()
        fake.fail_next(Operation.WATCH, Failure(403))
        fake.drop_watches()
        await asyncio.sleep(3)
        assert tracker.degraded is not None
        fake.delete_claim("acme", *KEY)
        woken.clear()
        await asyncio.sleep(300)
        assert tracker.synced
        assert woken == [KEY]
        assert tracker.verdict(*KEY) == Absent()


@pytest.mark.spec("Q-17")
async def test_while_the_plane_is_away_it_is_not_synced_but_keeps_what_it_knows(
    fake: FakeQuota, quota: QuotaClient
) -> None:
    tracker = ClaimTracker(quota.project("acme"), SELECTOR)
    fake.add_claim("acme", a_claim())
    with tracker.follow(ignore):
        await settle()
        fake.knobs.away.add("acme")
        fake.drop_watches()
        await asyncio.sleep(5)
        assert not tracker.synced
        assert isinstance(tracker.verdict(*KEY), Granted)
        fake.knobs.away.clear()
        await asyncio.sleep(37)
        assert tracker.synced


async def test_a_callback_that_raises_stops_nothing(fake: FakeQuota, quota: QuotaClient) -> None:
    tracker = ClaimTracker(quota.project("acme"), SELECTOR)
    woken: list[ClaimKey] = []
    contexts: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: contexts.append(context))

    def fails(_: ClaimKey) -> None:
        raise RuntimeError("not my day")

    with tracker.follow(fails), tracker.follow(woken.append):
        await settle()
        fake.add_claim("acme", a_claim())
        await settle()
        assert woken[0] == KEY
        assert tracker.synced
    assert len(contexts) == len(woken)


async def test_closing_the_client_stops_all_trackers(fake: FakeQuota) -> None:
    async with fake.client() as quota:
        tracker = ClaimTracker(quota.project("acme"), SELECTOR)
        tracker.follow(ignore)
        other = ClaimTracker(quota.project("other"), SELECTOR)
        other.follow(ignore).close()
        await settle()
        assert fake.open_watches == 2
    assert fake.open_watches == 0
    assert not tracker.running


async def test_selectors_and_projects_have_watches_of_their_own(
    fake: FakeQuota, quota: QuotaClient
) -> None:
    projects = [quota.project("acme"), quota.project("other")]
    for project in projects:
        for selector in (SELECTOR, ""):
            ClaimTracker(project, selector).follow(ignore)
    await settle()
    assert fake.open_watches == 4


def test_a_negative_idle_time_is_refused(fake: FakeQuota) -> None:
    project = fake.client().project("acme")
    with pytest.raises(QuotaUsageError, match="idle_ttl"):
        ClaimTracker(project, SELECTOR, timedelta(seconds=-1))


async def test_a_credential_that_is_refused_degrades_too(
    fake: FakeQuota, quota: QuotaClient
) -> None:
    tracker = ClaimTracker(quota.project("acme"), SELECTOR)
    fake.fail_next(Operation.LIST, Failure(401), Failure(401))
    with tracker.follow(ignore):
        await settle()
        assert tracker.degraded is not None
        await asyncio.sleep(301)
        assert tracker.synced


async def test_a_list_that_is_lost_does_not_degrade(fake: FakeQuota, quota: QuotaClient) -> None:
    tracker = ClaimTracker(quota.project("acme"), SELECTOR)
    fake.fail_next(Operation.LIST, *[httpx.ReadError] * 4)
    with tracker.follow(ignore):
        await asyncio.sleep(5)
        assert tracker.degraded is None
        assert tracker.synced
