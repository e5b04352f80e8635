import asyncio
import base64
import functools
import gc
import ssl
import sys
from collections.abc import Callable
from contextlib import aclosing
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from compute_quota_client import (
    Absent,
    Changed,
    ClaimTracker,
    QuotaClient,
    QuotaSettings,
    QuotaUnavailableError,
    QuotaUsageError,
    Synced,
)
from compute_quota_client._projects import KEPT_UNUSED, ProjectStates
from compute_quota_client.testing import SERVER, FakeQuota, a_claim

Write = Callable[..., Path]


async def eventually(holds: Callable[[], bool]) -> bool:
    """Whether it comes true, within the patience a busy machine needs."""
    for _ in range(1500):
        if holds():
            return True
        await asyncio.sleep(0.01)
    return False


def is_synced(tracker: ClaimTracker) -> bool:
    return tracker.synced


def nothing_there(_: httpx.Request) -> httpx.Response:
    return httpx.Response(404)


@pytest.mark.spec("Q-15")
async def test_ten_thousand_projects_leave_a_thousand_states_and_flat_memory() -> None:
    async with QuotaClient(SERVER, transport=httpx.MockTransport(nothing_there)) as client:

        async def touch(first: int, last: int) -> int:
            for n in range(first, last):
                assert await client.project(f"project-{n}").read("default", "x") == Absent()
                # A loop that never gets a turn keeps the timers of limits that were met.
                await asyncio.sleep(0)
            gc.collect()
            return sys.getallocatedblocks()

        before = await touch(0, 1)
        after_2000 = await touch(0, 2000)
        assert client.projects_remembered == 1024
        after_10000 = await touch(2000, 10000)
        assert client.projects_remembered == 1024
        # One object per project would be 8000 more.
        assert after_10000 - after_2000 < 1000
        assert after_2000 > before


@pytest.mark.spec("Q-15")
async def test_states_that_were_unused_for_ten_minutes_are_dropped() -> None:
    states = ProjectStates(lambda: 0.5)
    for n in range(10):
        with states.using(f"project-{n}"):
            pass
    await asyncio.sleep(KEPT_UNUSED.total_seconds() - 1)
    with states.using("project-9"):
        pass
    assert len(states) == 10
    await asyncio.sleep(1)
    with states.using("another"):
        pass
    assert len(states) == 2


@pytest.mark.spec("Q-15")
async def test_a_state_in_use_is_never_dropped() -> None:
    states = ProjectStates(lambda: 0.5)
    with states.using("held") as held:
        for n in range(3000):
            with states.using(f"project-{n}"):
                pass
        await asyncio.sleep(KEPT_UNUSED.total_seconds() * 2)
        with states.using("held") as again:
            assert again is held
    assert len(states) == 1


@pytest.mark.spec("Q-15")
async def test_more_states_in_use_than_are_kept_go_back_to_the_bound() -> None:
    states = ProjectStates(lambda: 0.5)
    ready, go = asyncio.Semaphore(0), asyncio.Event()

    async def use(n: int) -> None:
        with states.using(f"project-{n}"):
            ready.release()
            await go.wait()

    tasks = [asyncio.create_task(use(n)) for n in range(2000)]
    for _ in tasks:
        await ready.acquire()
    assert len(states) == 2000
    go.set()
    await asyncio.gather(*tasks)
    assert len(states) == 1024


@pytest.fixture(params=["httpcore", "aiohttp"])
def client_at(
    ca: bytes, write_kubeconfig: Write, request: pytest.FixtureRequest
) -> Callable[[str], QuotaClient]:
    """A client, by a kubeconfig, of the server at an address; on each of the libraries."""
    authority = base64.b64encode(ca).decode()
    settings = QuotaSettings(http=request.param)

    def at(url: str) -> QuotaClient:
        return QuotaClient.from_kubeconfig(
            write_kubeconfig({"server": url, "certificate-authority-data": authority}),
            settings=settings,
        )

    return at


@pytest.mark.spec("Q-15")
@pytest.mark.usefixtures("real_time")
async def test_any_number_of_projects_at_once_share_32_connections_and_use_them_again(
    fake: FakeQuota, server_tls: ssl.SSLContext, client_at: Callable[[str], QuotaClient]
) -> None:
    # Long enough for all 60 to be under way at once, if they could.
    fake.knobs.latency = timedelta(milliseconds=300)
    async with fake.port(server_tls) as port:
        async with client_at(port.url) as client:
            for _ in range(2):
                reads = [client.project(f"project-{n}").read("default", "x") for n in range(60)]
                assert set(await asyncio.gather(*reads)) == {Absent()}
            assert 8 < port.most_connections <= 32
            # None was opened twice: a handshake takes longer than a request.
            assert port.all_connections == port.most_connections
        assert await eventually(lambda: port.open_connections == 0)


@pytest.mark.spec("Q-15")
async def test_a_pool_without_a_free_connection_does_not_blame_the_plane() -> None:
    def full(request: httpx.Request) -> httpx.Response:
        raise httpx.PoolTimeout("no connection is free", request=request)

    async with QuotaClient(SERVER, transport=httpx.MockTransport(full)) as client:
        for _ in range(10):
            # Not that the circuit is open: it was never the plane's fault.
            with pytest.raises(QuotaUnavailableError, match="no connection became free"):
                await client.project("acme").read("default", "x")


@pytest.mark.spec("Q-15")
@pytest.mark.usefixtures("real_time")
async def test_each_watch_has_one_connection_of_its_own_and_closing_leaves_none(
    fake: FakeQuota, server_tls: ssl.SSLContext, client_at: Callable[[str], QuotaClient]
) -> None:
    async with fake.port(server_tls) as port:
        before = asyncio.all_tasks()
        client = client_at(port.url)
        trackers = [ClaimTracker(client.project(f"project-{n}"), "") for n in range(34)]
        for tracker in trackers:
            # One after the other: all at once, their handshakes take a busy machine too long.
            tracker.follow(lambda _: None)
            assert await eventually(functools.partial(is_synced, tracker))
        assert await eventually(lambda: fake.open_watches == 34)
        # Requests are not held up by 34 watches, although there are only 32 connections for them.
        assert await client.project("acme").read("default", "x") == Absent()
        await client.aclose()
        await client.aclose()
        assert await eventually(lambda: port.open_connections == fake.open_watches == 0)
    left = {task for task in asyncio.all_tasks() - before if not task.done()}
    assert left == set()


@pytest.mark.usefixtures("real_time")
async def test_a_watch_over_a_real_connection_follows_and_ends(
    fake: FakeQuota, server_tls: ssl.SSLContext, client_at: Callable[[str], QuotaClient]
) -> None:
    async with fake.port(server_tls) as port, client_at(port.url) as client:
        reported: list[str] = []
        async with aclosing(client.project("acme").watch()) as events:
            async for event in events:
                reported.append(type(event).__name__)
                if isinstance(event, Synced):
                    fake.knobs.paused = True
                    fake.add_claim("acme", a_claim())
                elif isinstance(event, Changed):
                    fake.delete_claim("acme", "default", a_claim().name)
                else:
                    break
        assert reported == ["Synced", "Changed", "Gone"]


async def test_a_closed_client_is_of_no_use(fake: FakeQuota) -> None:
    client = fake.client()
    project = client.project("acme")
    await client.aclose()
    with pytest.raises(QuotaUsageError, match="closed"):
        client.project("acme")
    with pytest.raises(QuotaUsageError, match="closed"):
        await project.read("default", "x")
    assert fake.requests == []


@pytest.mark.usefixtures("real_time")
async def test_closing_the_client_ends_what_is_under_way(
    fake: FakeQuota, server_tls: ssl.SSLContext, client_at: Callable[[str], QuotaClient]
) -> None:
    fake.knobs.latency = timedelta(seconds=1)
    async with fake.port(server_tls) as port:
        client = client_at(port.url)
        reads = [
            asyncio.create_task(client.project(f"project-{n}").read("default", "x"))
            for n in range(40)
        ]
        # All connections stand; one that is given up in its handshake is left to the collector.
        assert await eventually(lambda: port.open_connections == 32)
        await client.aclose()
        ended = await asyncio.gather(*reads, return_exceptions=True)
        assert {type(one) for one in ended} == {QuotaUsageError}
        # The server notices when it has something to say.
        assert await eventually(lambda: port.open_connections == 0)


@pytest.mark.usefixtures("real_time")
async def test_a_server_that_hangs_up_is_unavailable(
    fake: FakeQuota, server_tls: ssl.SSLContext, client_at: Callable[[str], QuotaClient]
) -> None:
    fake.knobs.away.add("acme")
    async with fake.port(server_tls) as port, client_at(port.url) as client:
        with pytest.raises(QuotaUnavailableError):
            await client.project("acme").read("default", "x")
        fake.knobs.away.clear()
        assert await client.project("acme").read("default", "x") == Absent()
