import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from itertools import pairwise

import httpx
import pytest

from compute_kubeconfig.access import Material
from compute_quota_client import (
    Absent,
    Operation,
    Pending,
    QuotaClient,
    QuotaSettings,
    QuotaThrottledError,
    QuotaUnavailableError,
    Surroundings,
)
from compute_quota_client._answers import Attempt
from compute_quota_client._clock import loop_now
from compute_quota_client._connections import Connections
from compute_quota_client._credentials import FixedCredentials
from compute_quota_client._exchange import Call, Exchanges
from compute_quota_client._projects import ProjectStates
from compute_quota_client._sender import Sender
from compute_quota_client._urls import plane_urls
from compute_quota_client.testing import SERVER, Failure, FakeQuota, a_claim

SECOND = timedelta(seconds=1)


@pytest.mark.spec("Q-11", "OU-02")
@pytest.mark.parametrize("retry_after", [1, None])
async def test_a_429_is_waited_out_inside_the_operation(
    fake: FakeQuota, quota: QuotaClient, now: Callable[[], timedelta], retry_after: int | None
) -> None:
    fake.fail_next(Operation.GET, Failure(429, retry_after=retry_after))
    before = now()
    assert isinstance(await quota.project("acme").claim(a_claim()), Pending)
    assert SECOND <= now() - before < SECOND * 1.2
    assert [one.method for one in fake.requests] == ["GET", "GET", "POST"]


@pytest.mark.spec("Q-11")
@pytest.mark.parametrize("operation", [Operation.CREATE, Operation.ADOPT, Operation.RELEASE])
async def test_a_429_is_sent_again_as_it_is_whatever_the_verb(
    fake: FakeQuota, quota: QuotaClient, operation: Operation
) -> None:
    project, claim = quota.project("acme"), a_claim()
    fake.knobs.paused = True
    fake.fail_next(operation, Failure(429, retry_after=2))
    await project.claim(claim)
    new_subject = dict.fromkeys(claim.subject, "uid-2")
    await project.adopt(
        claim.namespace,
        claim.name,
        owner=claim.owner,
        old_subject=claim.subject,
        new_subject=new_subject,
    )
    await project.release(claim.namespace, claim.name, owner=claim.owner, subject=new_subject)
    first, second = fake.sent(operation)
    assert (first.url, first.content) == (second.url, second.content)


@pytest.mark.spec("Q-11")
async def test_a_pause_holds_all_of_that_project_and_no_other(
    fake: FakeQuota, quota: QuotaClient, now: Callable[[], timedelta]
) -> None:
    fake.fail_next(Operation.GET, Failure(429, retry_after=3))
    began = now()
    took: dict[str, timedelta] = {}

    async def read(project: str, who: str) -> None:
        await quota.project(project).read("default", "x")
        took[who] = now() - began

    throttled = asyncio.create_task(read("acme", "throttled"))
    await asyncio.sleep(0.1)
    await asyncio.gather(read("acme", "same project"), read("other", "other project"), throttled)
    assert took["throttled"] >= 3 * SECOND
    assert took["same project"] >= 3 * SECOND
    assert took["other project"] < 0.2 * SECOND


@pytest.mark.spec("Q-11")
async def test_nothing_is_sent_before_a_long_pause_ends(
    fake: FakeQuota, quota: QuotaClient
) -> None:
    project = quota.project("acme")
    fake.fail_next(Operation.GET, Failure(429, retry_after=60))
    for _ in range(3):
        with pytest.raises(QuotaThrottledError) as caught:
            await project.read("default", "x")
        assert caught.value.status == 429
        await asyncio.sleep(5)
    assert len(fake.requests) == 1
    await asyncio.sleep(46)
    assert await project.read("default", "x") == Absent()


@pytest.mark.spec("Q-11")
async def test_a_503_with_retry_after_pauses_and_one_without_does_not(
    fake: FakeQuota, quota: QuotaClient, now: Callable[[], timedelta]
) -> None:
    fake.fail_next(Operation.GET, Failure(503, retry_after=4))
    before = now()
    assert await quota.project("acme").read("default", "x") == Absent()
    assert now() - before >= 4 * SECOND
    fake.fail_next(Operation.GET, Failure(503))
    before = now()
    assert await quota.project("acme").read("default", "x") == Absent()
    assert now() - before < SECOND


@pytest.mark.spec("Q-11")
async def test_a_429_without_retry_after_waits_a_second(
    fake: FakeQuota, quota: QuotaClient, now: Callable[[], timedelta]
) -> None:
    fake.fail_next(Operation.GET, Failure(429), Failure(429, retry_after=0))
    before = now()
    await quota.project("acme").read("default", "x")
    assert SECOND * 1.2 <= now() - before < SECOND * 1.5


@pytest.mark.spec("Q-11")
async def test_429s_are_waited_out_until_the_operation_has_no_time_left(
    fake: FakeQuota, quota: QuotaClient, now: Callable[[], timedelta]
) -> None:
    fake.fail_next(Operation.GET, *[Failure(429, retry_after=1)] * 50)
    before = now()
    with pytest.raises(QuotaThrottledError):
        await quota.project("acme").read("default", "x")
    assert 8 * SECOND < now() - before <= 10 * SECOND


@pytest.mark.spec("Q-12")
async def test_an_operation_without_time_left_sends_nothing_and_is_no_failure_of_the_plane(
    fake: FakeQuota,
) -> None:
    material, dependencies = Material(), Surroundings()
    states = ProjectStates(dependencies.chance)
    connections = Connections(material, fake.transport)
    sender = Sender(
        exchanges=Exchanges(connections, "test", dependencies.wall_clock),
        credentials=FixedCredentials(material),
        states=states,
        dependencies=dependencies,
    )
    url = plane_urls(SERVER, QuotaSettings(), "acme").claims()
    call = Call(Attempt("acme", Operation.LIST), "GET", url)
    for _ in range(10):
        with pytest.raises(QuotaUnavailableError, match="no time left"):
            await sender.send_once(call, loop_now())
    assert fake.requests == []
    with states.using("acme") as state:
        assert not state.circuit.is_open


@pytest.mark.spec("Q-12")
async def test_a_plane_that_is_away_is_asked_five_times_and_then_one_probe_at_a_time(
    fake: FakeQuota, quota: QuotaClient
) -> None:
    project = quota.project("acme")
    fake.knobs.away.add("acme")
    for _ in range(10):
        with pytest.raises(QuotaUnavailableError):
            await project.read("default", "x")
    # Three tries, two tries; from there on errors cost nothing.
    assert len(fake.requests) == 5
    await asyncio.sleep(1)
    for _ in range(10):
        with pytest.raises(QuotaUnavailableError):
            await project.read("default", "x")
    assert len(fake.requests) == 6


@pytest.mark.spec("Q-12")
async def test_probes_of_an_impatient_caller_are_never_more_than_36_seconds_apart(
    fake: FakeQuota, quota: QuotaClient
) -> None:
    project = quota.project("acme")
    fake.knobs.away.add("acme")
    sent_at: list[timedelta] = []
    for _ in range(2000):
        before = len(fake.requests)
        with pytest.raises(QuotaUnavailableError):
            await project.read("default", "x")
        if len(fake.requests) > before:
            sent_at.append(loop_now())
        await asyncio.sleep(0.1)
    gaps = [later - earlier for earlier, later in pairwise(sent_at)]
    assert max(gaps) <= timedelta(seconds=36.2)
    assert len(gaps) > 5


@pytest.mark.spec("Q-12")
async def test_a_probe_that_succeeds_closes_the_circuit(
    fake: FakeQuota, quota: QuotaClient
) -> None:
    project = quota.project("acme")
    fake.knobs.away.add("acme")
    for _ in range(5):
        with pytest.raises(QuotaUnavailableError):
            await project.read("default", "x")
    fake.knobs.away.clear()
    with pytest.raises(QuotaUnavailableError, match="circuit"):
        await project.read("default", "x")
    await asyncio.sleep(1)
    reads = [project.read("default", "x") for _ in range(3)]
    assert await reads[0] == Absent()
    assert await asyncio.gather(*reads[1:]) == [Absent(), Absent()]


@pytest.mark.spec("Q-12")
async def test_while_a_probe_is_under_way_others_are_refused(
    fake: FakeQuota, quota: QuotaClient
) -> None:
    project = quota.project("acme")
    fake.fail_next(Operation.GET, *[httpx.ReadError] * 5)
    for _ in range(2):
        with pytest.raises(QuotaUnavailableError):
            await project.read("default", "x")
    await asyncio.sleep(1)
    fake.knobs.latency = SECOND
    sent = len(fake.requests)
    outcomes = await asyncio.gather(
        *(project.read("default", "x") for _ in range(10)), return_exceptions=True
    )
    assert outcomes.count(Absent()) == 1
    assert len(fake.requests) == sent + 1


@pytest.mark.spec("Q-12")
async def test_a_cancelled_probe_does_not_lock_the_circuit(
    fake: FakeQuota, quota: QuotaClient
) -> None:
    project = quota.project("acme")
    fake.fail_next(Operation.GET, *[httpx.ReadError] * 5)
    for _ in range(2):
        with pytest.raises(QuotaUnavailableError):
            await project.read("default", "x")
    await asyncio.sleep(1)
    fake.knobs.latency = SECOND
    probe = asyncio.create_task(project.read("default", "x"))
    await asyncio.sleep(0.1)
    probe.cancel()
    with pytest.raises(asyncio.CancelledError):
        await probe
    assert await project.read("default", "x") == Absent()


@pytest.mark.spec("Q-12")
async def test_a_429_never_opens_the_circuit(fake: FakeQuota, quota: QuotaClient) -> None:
    project = quota.project("acme")
    fake.fail_next(Operation.GET, *[Failure(429, retry_after=1)] * 20)
    for _ in range(3):
        with suppress(QuotaThrottledError):
            await project.read("default", "x")
    assert await project.read("default", "x") == Absent()


@pytest.mark.spec("Q-12")
async def test_another_project_is_unaffected_by_an_open_circuit(
    fake: FakeQuota, quota: QuotaClient
) -> None:
    fake.knobs.away.add("acme")
    for _ in range(5):
        with pytest.raises(QuotaUnavailableError):
            await quota.project("acme").read("default", "x")
    assert await quota.project("other").read("default", "x") == Absent()


@pytest.mark.spec("Q-12")
async def test_refusals_are_answers_and_keep_the_circuit_closed(
    fake: FakeQuota, quota: QuotaClient
) -> None:
    project = quota.project("acme")
    for status in (403, 403, 403, 403, 403, 403):
        fake.fail_next(Operation.GET, Failure(status))
        with pytest.raises(Exception, match="told to fail"):
            await project.read("default", "x")
    assert await project.read("default", "x") == Absent()
