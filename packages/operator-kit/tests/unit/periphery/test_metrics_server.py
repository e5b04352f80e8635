from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from http import HTTPStatus

import aiohttp
import pytest

from compute_operator_kit.config.settings import Bind
from compute_operator_kit.core.errors import UnavailableError
from compute_operator_kit.core.json import JsonMapping, JsonObject, JsonValue
from compute_operator_kit.core.keys import Kind
from compute_operator_kit.process.metrics_server import (
    ACCESS_REVIEW,
    TOKEN_REVIEW,
    MetricsServer,
    OpenGuard,
    TokenReviewGuard,
)
from compute_operator_kit.telemetry.metrics_catalogue import EVERY_METRIC
from compute_operator_kit.telemetry.opentelemetry import MetricsExporter
from compute_operator_kit.testing.fakes import FakeClock


class FakeReviews:
    """Two users behind tokens; only `reader` may get /metrics."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.next_error: UnavailableError | None = None
        self.readers = {"reader"}
        self.hold: asyncio.Event | None = None

    async def review(self, kind: Kind, body: JsonMapping) -> JsonObject:
        if self.next_error is not None:
            raise self.next_error
        if self.hold is not None:
            await self.hold.wait()
        self.asked.append(kind.kind)
        spec = body["spec"]
        assert isinstance(spec, dict)
        if kind == TOKEN_REVIEW:
            return self._token(spec["token"])
        assert kind == ACCESS_REVIEW
        assert spec["nonResourceAttributes"] == {"path": "/metrics", "verb": "get"}
        assert spec["groups"] == ["system:authenticated"]
        return {"status": {"allowed": spec["user"] in self.readers}}

    def _token(self, token: JsonValue) -> JsonObject:
        if token not in {"reader", "stranger"}:
            return {"status": {"authenticated": False, "error": "no such token"}}
        user: JsonObject = {"username": str(token), "groups": ["system:authenticated"]}
        return {"status": {"authenticated": True, "user": user}}


class Scraper:
    def __init__(self, server: MetricsServer) -> None:
        self._url = f"http://127.0.0.1:{server.port}"

    async def get(self, authorization: str | None, path: str = "/metrics") -> tuple[int, str]:
        headers = {} if authorization is None else {"Authorization": authorization}
        async with (
            aiohttp.ClientSession() as session,
            session.get(self._url + path, headers=headers) as answer,
        ):
            return answer.status, await answer.text()


@pytest.fixture
def reviews() -> FakeReviews:
    return FakeReviews()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def scraper(reviews: FakeReviews, clock: FakeClock) -> AsyncIterator[Scraper]:
    server = MetricsServer(
        Bind("127.0.0.1", 0), lambda: b"secret_metric 1\n", TokenReviewGuard(reviews, clock)
    )
    await server.start()
    yield Scraper(server)
    await server.stop()


@pytest.mark.spec("S16")
@pytest.mark.parametrize(
    ("authorization", "status"),
    [
        (None, 401),
        ("", 401),
        ("Bearer", 401),
        ("Bearer  ", 401),
        ("Basic cmVhZGVyOng=", 401),
        ("Bearer forged", 401),
        ("Bearer stranger", 403),
        ("Bearer reader", 200),
        ("bearer reader", 200),
    ],
)
async def test_metrics_are_for_authorized_readers(
    scraper: Scraper, authorization: str | None, status: int
) -> None:
    answered, text = await scraper.get(authorization)

    assert answered == status
    assert ("secret_metric" in text) == (status == 200)


@pytest.mark.spec("S16")
async def test_a_plane_that_cannot_be_asked_opens_no_door(
    scraper: Scraper, reviews: FakeReviews
) -> None:
    reviews.next_error = UnavailableError("PlaneAway", "asking 'home': away")

    assert (await scraper.get("Bearer reader"))[0] == 503

    reviews.next_error = None
    assert (await scraper.get("Bearer reader"))[0] == 200


async def test_a_verdict_is_remembered_for_a_short_while(
    scraper: Scraper, reviews: FakeReviews, clock: FakeClock
) -> None:
    for _ in range(3):
        await scraper.get("Bearer reader")
    assert reviews.asked == ["TokenReview", "SubjectAccessReview"]

    reviews.readers.clear()
    clock.pass_time(timedelta(seconds=61))

    assert (await scraper.get("Bearer reader"))[0] == 403


@pytest.mark.spec("AT-17")
async def test_a_remembered_reader_does_not_wait_behind_bad_tokens(
    clock: FakeClock, reviews: FakeReviews
) -> None:
    guard = TokenReviewGuard(reviews, clock)
    assert await guard.authorize("Bearer reader") is HTTPStatus.OK
    held = asyncio.Event()
    reviews.hold = held
    crowd = [asyncio.create_task(guard.authorize(f"Bearer forged-{n}")) for n in range(400)]
    await asyncio.sleep(0)
    judged = asyncio.create_task(guard.authorize("Bearer reader"))
    for _ in range(10):
        await asyncio.sleep(0)
    assert judged.done()
    assert judged.result() is HTTPStatus.OK
    held.set()
    assert set(await asyncio.gather(*crowd)) == {HTTPStatus.UNAUTHORIZED}


async def test_verdicts_do_not_pile_up(clock: FakeClock, reviews: FakeReviews) -> None:
    guard = TokenReviewGuard(reviews, clock)
    for number in range(257):
        assert await guard.authorize(f"Bearer forged-{number}") is HTTPStatus.UNAUTHORIZED
    assert len(reviews.asked) == 257

    await guard.authorize("Bearer forged-256")  # the last one is remembered
    assert len(reviews.asked) == 257
    await guard.authorize("Bearer forged-0")  # the first one had to make room
    assert len(reviews.asked) == 258


async def test_an_endless_token_is_not_even_asked_about(
    clock: FakeClock, reviews: FakeReviews
) -> None:
    assert (
        await TokenReviewGuard(reviews, clock).authorize("Bearer " + "x" * 20000)
        is HTTPStatus.UNAUTHORIZED
    )
    assert reviews.asked == []


async def test_without_secure_serving_everybody_reads() -> None:
    server = MetricsServer(Bind("127.0.0.1", 0), lambda: b"up 1\n", OpenGuard())
    await server.start()

    assert await Scraper(server).get(None) == (200, "up 1\n")
    assert (await Scraper(server).get(None, "/healthz"))[0] == 404
    await server.stop()


@pytest.mark.spec("S16")
def test_a_thousand_projects_give_as_many_series_as_one() -> None:
    def series_after(projects: int) -> set[str]:
        metrics = MetricsExporter("example", "1.2.3")
        for number in range(projects):
            # As a reconcile on a project plane reports; of the plane only the role.
            metrics.measures.count(
                "compute_writes_total",
                plane="project",
                kind="Workload",
                verb="patch",
                controller="workload",
            )
            metrics.measures.observe("compute_federation_latency_seconds", number / 1000)
            metrics.measures.gauge("compute_planes", number, plane="project", state="up")
            metrics.measures.count("compute_writes_total", project=f"p-{number}")
        lines = metrics.render().decode().splitlines()
        return {line.rpartition(" ")[0] for line in lines if not line.startswith("#")}

    assert series_after(1) == series_after(1000)


@pytest.mark.spec("S16")
def test_no_label_can_name_a_tenant() -> None:
    tenants = {"project", "namespace", "workload", "instance", "deployment", "uid", "name"}
    labels = {label for metric in EVERY_METRIC for label in metric.labels}

    # `name` is controller-runtime's label for a queue or a Lease, both named after controllers.
    assert labels & tenants == {"name"}
