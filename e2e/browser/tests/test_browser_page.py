"""The page of `kubectl compute ui` on the demo's planes, in a real browser."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from compute_api_types.wire import JsonObject
from compute_kubectl.read.contexts import PlaneChoice, find_endpoints
from compute_kubectl.read.questions import Question, Scope
from compute_kubectl.read.reader import SnapshotReader
from compute_kubectl.snapshot.planes import Snapshot
from compute_kubectl.ui.refresh import Refresher
from compute_kubectl.ui.server import PageServer
from e2e.demo.backend import CELLS, PROJECT_NAMESPACES, UserClient
from e2e.demo.environment import EmbeddedEnvironment
from e2e.world.documents import a_placement, a_workload
from e2e.world.kinds import WORKLOAD
from e2e.world.objects import name_of, uid_of
from e2e.world.port import ORD, PlaneRequest

PLACE = PROJECT_NAMESPACES[0]
TEN_SECONDS = 10_000
SETTLING = 60_000
HOSTILE = "<script>window.painted = 1</script><img src=x onerror='window.painted=1'>\x1b[31mred"


@pytest_asyncio.fixture
async def demo() -> AsyncIterator[EmbeddedEnvironment]:
    async with EmbeddedEnvironment(lambda _done, _total, _step: None) as environment:
        await environment.set_grant(PLACE.project, 100)
        client = UserClient(environment, PLACE.project, PLACE.namespace)
        cities = (a_placement(one.city.lower(), one.city, replicas=2) for one in CELLS)
        await client.create(a_workload("web", *cities))
        yield environment


def reader_of(demo: EmbeddedEnvironment, *planes: str) -> SnapshotReader:
    choice = PlaneChoice(
        kubeconfig=str(demo.kubeconfig),
        context=PLACE.project,
        namespace=PLACE.namespace,
        planes=planes,
    )
    return SnapshotReader(find_endpoints(choice, {}))


def serve(reader: SnapshotReader) -> PageServer:
    question = Question(reader.namespace, scope=Scope.EVERYTHING)

    async def read() -> Snapshot:
        return await asyncio.to_thread(reader.read, question)

    return PageServer(Refresher(read))


class RecordedPage:
    """A page with every request, console message and error of it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.requests: list[str] = []
        self.problems: list[str] = []
        page.on("request", lambda one: self.requests.append(one.url))
        page.on("console", lambda one: self.problems.append(one.text))
        page.on("pageerror", lambda one: self.problems.append(str(one)))


async def watch(browser: Browser, url: str, scheme: str = "light") -> RecordedPage:
    context = await browser.new_context(
        viewport={"width": 1200, "height": 860},
        color_scheme="dark" if scheme == "dark" else "light",
        reduced_motion="reduce",
    )
    watched = RecordedPage(await context.new_page())
    await watched.page.goto(url)
    return watched


@pytest.mark.asyncio
async def test_an_outage_is_seen_in_colour_and_words_and_a_click_opens_why(
    demo: EmbeddedEnvironment, browser: Browser, pictures: Path
) -> None:
    reader = reader_of(demo, "project", "hub", "cells")
    async with serve(reader) as server:
        watched = await watch(browser, server.url)
        page = watched.page
        cards = page.locator("article.city")
        await expect(page.locator("#summary")).to_have_text("2 of 2 ready", timeout=SETTLING)
        for name in ("Dallas", "Chicago"):
            card = page.get_by_role("article", name=name)
            await expect(card.locator("header .badge")).to_have_text("Ready")
            await expect(card.locator("header")).to_contain_text("2/2 Instances")
        await expect(page.locator(".marker")).to_have_count(2)
        assert "[object" not in await page.locator("body").inner_text()
        before = await _colour(page, "Chicago")
        await page.screenshot(path=pictures / "page-ready.png")

        await demo.cut_off(ORD)
        chicago = page.get_by_role("article", name="Chicago")
        badge = chicago.locator("header .badge")
        await expect(badge).to_have_text("Unreachable", timeout=TEN_SECONDS)
        assert await _colour(page, "Chicago") != before
        await expect(
            page.get_by_role("article", name="Dallas").locator("header .badge")
        ).to_have_text("Ready")
        await expect(page.locator("#announcer")).to_contain_text("Chicago: Unreachable")

        await chicago.get_by_role("button", name="web", exact=True).click()
        panel = page.get_by_role("dialog")
        await expect(panel.locator("#panel-body h3").first).to_contain_text("ORD")
        await expect(panel).to_contain_text("kubectl compute why workload web -n default")
        await page.screenshot(path=pictures / "page-outage.png")
        await _use_by_keyboard(page)

        await demo.bring_back(ORD)
        await expect(badge).to_have_text("Ready", timeout=SETTLING)
        assert await cards.count() == 2
        await page.context.close()
        assert watched.requests
        assert all(one.startswith(server.url) for one in watched.requests), watched.requests
        assert watched.problems == []
    await asyncio.to_thread(reader.close)


async def _colour(page: Page, city: str) -> str:
    card = page.get_by_role("article", name=city)
    return str(await card.evaluate("one => getComputedStyle(one).borderTopColor"))


async def _use_by_keyboard(page: Page) -> None:
    """Tabs by arrows, Escape closes, and focus returns to what opened the panel."""
    await page.get_by_role("tab", name="Why").focus()
    await page.keyboard.press("ArrowRight")
    await expect(page.get_by_role("tab", name="Timeline")).to_be_focused()
    await expect(page.locator("#panel-body .timeline")).to_contain_text("created")
    await page.keyboard.press("ArrowRight")
    await expect(page.locator("#panel-body .tree")).to_contain_text("ResourceBinding")
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    opener = page.get_by_role("article", name="Chicago").get_by_role(
        "button", name="web", exact=True
    )
    await expect(opener).to_be_focused()


@pytest.mark.asyncio
async def test_markup_and_escape_codes_of_a_message_are_inert_and_a_project_alone_is_enough(
    demo: EmbeddedEnvironment, browser: Browser, pictures: Path
) -> None:
    await _record_event(demo, HOSTILE)
    reader = reader_of(demo, "project")
    async with serve(reader) as server:
        watched = await watch(browser, server.url, "dark")
        page = watched.page
        await expect(page.locator("article.city")).to_have_count(2, timeout=SETTLING)
        await expect(page.locator("#planes")).to_contain_text("not asked")
        dallas = page.get_by_role("article", name="Dallas")
        await dallas.get_by_role("button", name="web", exact=True).click()
        await page.get_by_role("tab", name="Timeline").click()
        body = page.locator("#panel-body")
        await expect(body).to_contain_text("<script>window.painted = 1</script>", timeout=SETTLING)
        text = await body.inner_text()
        assert "\x1b" not in text
        assert await page.evaluate("window.painted") is None
        assert await page.locator("#panel-body script, #panel-body img").count() == 0
        await page.screenshot(path=pictures / "page-dark.png")
        await page.context.close()
        assert all(one.startswith(server.url) for one in watched.requests), watched.requests
        assert watched.problems == []
    await asyncio.to_thread(reader.close)


async def _record_event(demo: EmbeddedEnvironment, message: str) -> None:
    client = UserClient(demo, PLACE.project, PLACE.namespace)
    workload = next(one for one in await client.list(WORKLOAD) if name_of(one) == "web")
    about: JsonObject = {
        "apiVersion": "compute.datumapis.com/v1alpha",
        "kind": "Workload",
        "name": "web",
        "namespace": PLACE.namespace,
        "uid": uid_of(workload),
    }
    event: JsonObject = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "web.hostile", "namespace": PLACE.namespace},
        "involvedObject": about,
        "reason": "Hostile",
        "message": message,
        "type": "Warning",
        "count": 1,
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
    }
    target = f"/api/v1/namespaces/{PLACE.namespace}/events"
    reply = await demo.send(PLACE.project, "tenant", PlaneRequest("POST", target, event))
    assert reply.status == 201, reply.body
