import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace

import httpx
import pytest

from compute_quota_client import (
    Changed,
    ClaimKey,
    Granted,
    Operation,
    ProjectQuota,
    QuotaClient,
    QuotaProjectNotFoundError,
    QuotaRejectedError,
    Surroundings,
    Synced,
    WatchEvent,
    judge,
)
from compute_quota_client.testing import REGION, Failure, FakeQuota, a_claim

WHERE = ("acme", "default", "bucket-logs")
OTHER = replace(a_claim(), name="bucket-other")


class Watching:
    """A watch that collects its events."""

    def __init__(self, project: ProjectQuota, selector: str) -> None:
        self.events: list[WatchEvent] = []
        self.error: Exception | None = None
        self._project = project
        self._selector = selector
        self.task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        try:
            async with aclosing(self._project.watch(self._selector)) as events:
                async for event in events:
                    self.events.append(event)
        except QuotaRejectedError as error:
            self.error = error
        except QuotaProjectNotFoundError as error:
            self.error = error

    def taken(self) -> list[WatchEvent]:
        """What came since the last time."""
        events, self.events = self.events, []
        return events

    def reported(self) -> list[str]:
        return [
            type(event).__name__
            if isinstance(event, Synced)
            else f"{type(event).__name__} {event.found.name}"
            for event in self.taken()
        ]


@pytest.fixture
async def project(fake: FakeQuota, quota: QuotaClient) -> ProjectQuota:
    fake.knobs.paused = True
    return quota.project("acme")


@pytest.fixture
async def watching(project: ProjectQuota) -> AsyncIterator[Watching]:
    """A watch that is in sync with an empty project."""
    watch = Watching(project, f"{REGION}=lhr")
    await asyncio.sleep(0.1)
    assert watch.reported() == ["Synced"]
    yield watch
    watch.task.cancel()
    await asyncio.wait({watch.task})


@pytest.mark.spec("Q-16")
async def test_existing_claims_are_reported_before_synced(
    fake: FakeQuota, project: ProjectQuota
) -> None:
    fake.add_claim("acme", a_claim())
    fake.add_claim("acme", replace(OTHER, owner={REGION: "ams"}))
    async with aclosing(project.watch(f"{REGION}=lhr")) as events:
        first, second = await anext(events), await anext(events)
    assert first == Changed(fake.claims("acme")[0])
    assert second == Synced()
    (listed,) = fake.sent(Operation.LIST)
    assert listed.url.params["labelSelector"] == f"{REGION}=lhr"


@pytest.mark.spec("Q-16")
async def test_a_grant_and_a_deletion_are_reported(fake: FakeQuota, watching: Watching) -> None:
    fake.add_claim("acme", a_claim())
    await asyncio.sleep(0.1)
    assert watching.reported() == ["Changed bucket-logs"]
    fake.evaluate()
    await asyncio.sleep(0.1)
    last = watching.taken()[-1]
    assert isinstance(last, Changed)
    assert isinstance(judge(last.found), Granted)
    fake.delete_claim(*WHERE)
    await asyncio.sleep(0.1)
    assert watching.reported() == ["Gone bucket-logs"]


@pytest.mark.spec("Q-16")
async def test_a_claim_that_no_longer_matches_is_gone(fake: FakeQuota, watching: Watching) -> None:
    fake.add_claim("acme", a_claim())
    fake.edit_claim(*WHERE, {"metadata": {"labels": {REGION: "ams"}}})
    await asyncio.sleep(0.1)
    assert watching.reported() == ["Changed bucket-logs", "Gone bucket-logs"]


@pytest.mark.spec("Q-16")
async def test_the_watch_begins_where_the_list_ended_and_allows_bookmarks(
    fake: FakeQuota, watching: Watching
) -> None:
    assert not watching.task.done()
    (watch,) = fake.sent(Operation.WATCH)
    params = watch.url.params
    assert params["allowWatchBookmarks"] == "true"
    assert params["resourceVersion"] == fake.version
    assert 240 <= int(params["timeoutSeconds"]) <= 480


@pytest.mark.spec("Q-16")
@pytest.mark.parametrize(("dice", "seconds"), [(0.0, "240"), (0.999999, "480")])
async def test_the_time_of_a_watch_is_random_from_240_to_480_seconds(
    fake: FakeQuota, dice: float, seconds: str
) -> None:
    async with fake.client(surroundings=Surroundings(chance=lambda: dice)) as quota:
        watching = Watching(quota.project("acme"), "")
        await asyncio.sleep(0.1)
        watching.task.cancel()
        await asyncio.wait({watching.task})
    assert [one.url.params["timeoutSeconds"] for one in fake.sent(Operation.WATCH)] == [seconds]


@pytest.mark.spec("Q-16")
@pytest.mark.parametrize("how", ["status", "event"])
async def test_410_at_the_start_of_a_watch_reports_deletions(
    fake: FakeQuota, watching: Watching, how: str
) -> None:
    fake.knobs.expired_at_start = "status" if how == "status" else "event"
    fake.add_claim("acme", a_claim())
    fake.add_claim("acme", OTHER)
    await asyncio.sleep(0.1)
    watching.taken()
    # While the connection is down a claim goes, another changes, and history is forgotten.
    fake.knobs.away.add("acme")
    fake.drop_watches()
    await asyncio.sleep(0.1)
    fake.delete_claim(*WHERE)
    fake.edit_claim("acme", "default", OTHER.name, {"metadata": {"labels": {"new": "one"}}})
    fake.forget_history(running_watches=False)
    fake.knobs.away.clear()
    await asyncio.sleep(10)
    assert watching.reported() == ["Gone bucket-logs", "Changed bucket-other", "Synced"]


@pytest.mark.spec("Q-16")
async def test_410_in_mid_stream_reports_deletions(fake: FakeQuota, watching: Watching) -> None:
    fake.add_claim("acme", a_claim())
    fake.add_claim("acme", OTHER)
    await asyncio.sleep(0.1)
    watching.taken()
    fake.knobs.silent_watches = True
    fake.delete_claim(*WHERE)
    fake.forget_history()
    await asyncio.sleep(0.1)
    assert watching.reported() == ["Gone bucket-logs", "Synced"]


@pytest.mark.spec("Q-16")
async def test_bookmarks_are_no_events_but_move_the_version(
    fake: FakeQuota, watching: Watching
) -> None:
    # Another project's changes move the version of the server, which bookmarks pass on.
    fake.add_claim("other", a_claim())
    await asyncio.sleep(65)
    assert watching.taken() == []
    fake.drop_watches()
    await asyncio.sleep(5)
    first, second = fake.sent(Operation.WATCH)
    assert int(second.url.params["resourceVersion"]) > int(first.url.params["resourceVersion"])
    assert len(fake.sent(Operation.LIST)) == 1


@pytest.mark.spec("Q-16")
async def test_a_silent_stream_is_reopened_within_90_seconds_and_nothing_reported_twice(
    fake: FakeQuota, watching: Watching
) -> None:
    fake.add_claim("acme", a_claim())
    await asyncio.sleep(0.1)
    watching.taken()
    fake.knobs.silent_watches = True
    fake.add_claim("acme", OTHER)
    await asyncio.sleep(89)
    assert len(fake.sent(Operation.WATCH)) == 1
    fake.knobs.silent_watches = False
    await asyncio.sleep(2)
    assert len(fake.sent(Operation.WATCH)) == 2
    assert watching.reported() == ["Changed bucket-other"]
    assert len(fake.sent(Operation.LIST)) == 1


@pytest.mark.spec("Q-16")
@pytest.mark.parametrize(
    "garbage",
    [
        b"not json",
        b"[]",
        b'{"type": "NEW"}',
        b'{"type": "ADDED", "object": {"kind": "Pod"}}',
        b'{"type": "BOOKMARK", "object": {}}',
        b'{"type": "ERROR", "object": 1}',
        b"\xff\xfe",
        b'{"type": "ADDED", "object": ' + b"[" * 900 + b"]" * 900 + b"}",
    ],
)
async def test_a_garbage_line_reconnects_and_changes_nothing(
    fake: FakeQuota, watching: Watching, garbage: bytes
) -> None:
    fake.add_claim("acme", a_claim())
    await asyncio.sleep(0.1)
    watching.taken()
    fake.say_in_watches(garbage)
    await asyncio.sleep(3)
    assert watching.taken() == []
    assert len(fake.sent(Operation.WATCH)) == 2
    fake.add_claim("acme", OTHER)
    await asyncio.sleep(0.1)
    assert watching.reported() == ["Changed bucket-other"]


@pytest.mark.spec("Q-16")
async def test_an_event_that_is_sent_twice_is_reported_once(
    fake: FakeQuota, watching: Watching
) -> None:
    fake.add_claim("acme", a_claim())
    await asyncio.sleep(0.1)
    again = {"type": "MODIFIED", "object": fake.claim_json(*WHERE)}
    fake.say_in_watches(json.dumps(again).encode())
    await asyncio.sleep(0.1)
    assert watching.reported() == ["Changed bucket-logs"]


@pytest.mark.spec("Q-16")
async def test_garbage_again_and_again_ends_in_another_list(
    fake: FakeQuota, watching: Watching
) -> None:
    for _ in range(3):
        fake.say_in_watches(b"garbage")
        await asyncio.sleep(1.5)
    assert len(fake.sent(Operation.LIST)) == 2
    assert watching.reported() == ["Synced"]


async def test_an_error_event_that_is_not_410_reconnects(
    fake: FakeQuota, watching: Watching
) -> None:
    status = {"type": "ERROR", "object": {"kind": "Status", "code": 500, "message": "x"}}
    fake.say_in_watches(json.dumps(status).encode())
    await asyncio.sleep(3)
    assert watching.taken() == []
    assert (len(fake.sent(Operation.LIST)), len(fake.sent(Operation.WATCH))) == (1, 2)


async def test_a_watch_that_ends_in_its_time_goes_on_without_a_gap(
    fake: FakeQuota, watching: Watching
) -> None:
    seconds = int(fake.sent(Operation.WATCH)[0].url.params["timeoutSeconds"])
    await asyncio.sleep(seconds + 0.3)
    assert len(fake.sent(Operation.WATCH)) == 2
    fake.add_claim("acme", a_claim())
    await asyncio.sleep(0.1)
    assert watching.reported() == ["Changed bucket-logs"]
    assert len(fake.sent(Operation.LIST)) == 1


async def test_a_plane_that_is_away_is_asked_rarely_and_found_again_within_36_seconds(
    fake: FakeQuota, watching: Watching
) -> None:
    fake.knobs.away.add("acme")
    fake.drop_watches()
    await asyncio.sleep(600)
    assert len(fake.requests) < 60
    fake.add_claim("acme", a_claim())
    fake.knobs.away.clear()
    await asyncio.sleep(36.5)
    assert watching.reported()[0] == "Changed bucket-logs"


async def test_a_first_list_that_fails_is_tried_until_it_works(
    fake: FakeQuota, project: ProjectQuota
) -> None:
    fake.fail_next(Operation.LIST, *[httpx.ReadError] * 4)
    watching = Watching(project, "")
    await asyncio.sleep(10)
    assert watching.reported() == ["Synced"]
    watching.task.cancel()
    await asyncio.wait({watching.task})


@pytest.mark.parametrize(
    ("operation", "failure", "kind"),
    [
        (Operation.LIST, Failure(403), QuotaRejectedError),
        (Operation.LIST, Failure(404), QuotaProjectNotFoundError),
        (Operation.WATCH, Failure(403), QuotaRejectedError),
        (Operation.WATCH, Failure(404), QuotaProjectNotFoundError),
    ],
)
async def test_what_waiting_does_not_mend_is_raised(
    fake: FakeQuota,
    project: ProjectQuota,
    operation: Operation,
    failure: Failure,
    kind: type[Exception],
) -> None:
    fake.fail_next(operation, failure)
    watching = Watching(project, "")
    await asyncio.wait({watching.task}, timeout=10)
    assert isinstance(watching.error, kind)


async def test_closing_the_client_ends_a_watch_that_is_iterated(
    fake: FakeQuota, quota: QuotaClient, watching: Watching
) -> None:
    await quota.aclose()
    await asyncio.wait({watching.task}, timeout=1)
    assert watching.task.done()
    assert watching.error is None
    assert fake.open_watches == 0


async def test_closing_the_client_ends_a_watch_that_waits_for_a_plane(
    fake: FakeQuota, quota: QuotaClient, watching: Watching
) -> None:
    fake.knobs.away.add("acme")
    fake.drop_watches()
    await asyncio.sleep(100)
    await quota.aclose()
    await asyncio.wait({watching.task}, timeout=1)
    assert watching.task.done()


async def test_a_closed_watch_leaves_no_connection(fake: FakeQuota, project: ProjectQuota) -> None:
    async with aclosing(project.watch()) as events:
        async for event in events:
            if isinstance(event, Synced):
                break
    assert fake.open_watches == 0


def test_keys_of_claims_are_namespace_and_name() -> None:
    assert ClaimKey("default", "x") == ("default", "x")


@pytest.mark.spec("FS-03")
async def test_an_older_version_never_replaces_a_newer_one(
    fake: FakeQuota, watching: Watching
) -> None:
    fake.add_claim("acme", a_claim())
    await asyncio.sleep(0.1)
    before = {"type": "MODIFIED", "object": fake.claim_json(*WHERE)}
    fake.evaluate()
    await asyncio.sleep(0.1)
    fake.say_in_watches(json.dumps(before).encode())
    await asyncio.sleep(5)
    last = [event for event in watching.taken() if isinstance(event, Changed)][-1]
    assert isinstance(judge(last.found), Granted)
    assert len(fake.sent(Operation.LIST)) == 2  # only a list shows which version is the last


@pytest.mark.spec("FS-03")
async def test_versions_that_keep_going_back_do_not_list_in_a_loop(
    fake: FakeQuota, watching: Watching
) -> None:
    fake.add_claim("acme", a_claim())
    await asyncio.sleep(0.1)
    before = {"type": "MODIFIED", "object": fake.claim_json(*WHERE)}
    fake.evaluate()
    await asyncio.sleep(0.1)
    for _ in range(100):
        fake.say_in_watches(json.dumps(before).encode())
        await asyncio.sleep(0.1)
    assert not watching.task.done()
    assert len(fake.sent(Operation.LIST)) <= 12
