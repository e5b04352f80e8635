"""The page's server: loopback, token, policy, limits; and the reads behind it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from datetime import datetime, timedelta
from importlib import resources

import pytest
import pytest_asyncio
from kubectl_worlds import NOW, settled

from compute_api_types.wire import JsonValue
from compute_kubectl.snapshot.access import Access
from compute_kubectl.snapshot.planes import Snapshot
from compute_kubectl.ui import server as page_server
from compute_kubectl.ui.refresh import Refresher
from compute_kubectl.ui.requests import RequestError, RequestHead, check_request, parse_head
from compute_kubectl.ui.server import ASSETS, LARGEST_HEAD, PageServer

TOKEN = "t" * 32


class Reads:
    """A source of snapshots that a test changes, and a clock."""

    def __init__(self) -> None:
        self.snapshot = settled().snapshot()
        self.failure: Exception | None = None
        self.now = NOW

    async def __call__(self) -> Snapshot:
        if self.failure is not None:
            raise self.failure
        return self.snapshot

    def clock(self) -> datetime:
        return self.now


@pytest.fixture
def reads() -> Reads:
    return Reads()


@pytest_asyncio.fixture
async def page(reads: Reads) -> AsyncIterator[PageServer]:
    refresher = Refresher(reads, clock=reads.clock)
    await refresher.read()
    async with PageServer(refresher, token=TOKEN) as running:
        yield running


async def send(page: PageServer, raw: bytes) -> tuple[int, dict[str, str], bytes]:
    reader, writer = await asyncio.open_connection("127.0.0.1", page.port)
    writer.write(raw)
    await writer.drain()
    answer = await reader.read()
    writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    return int(first.split(" ")[1]), headers, body


async def until(holds: Callable[[], bool]) -> None:
    for _ in range(1000):
        if holds():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not come to hold")


async def get(
    page: PageServer, path: str, token: str = TOKEN, **headers: str
) -> tuple[int, dict[str, str], bytes]:
    sent = {"Host": f"127.0.0.1:{page.port}", **headers}
    lines = [f"GET /{token}/{path} HTTP/1.1", *(f"{name}: {one}" for name, one in sent.items())]
    return await send(page, "\r\n".join([*lines, "", ""]).encode())


async def test_every_answer_has_the_policy_and_the_page_no_asset_from_elsewhere(
    page: PageServer,
) -> None:
    for path in (*ASSETS, "state", "why?workload=web", "nothing"):
        _, headers, body = await get(page, path)
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; ")
        assert "unsafe" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cache-Control"] == "no-store"
        text = body.decode().replace("http://www.w3.org/2000/svg", "")  # a name, not an address
        assert "http:" not in text
        assert "https:" not in text


async def test_the_server_listens_on_loopback_alone(page: PageServer) -> None:
    assert page.url == f"http://127.0.0.1:{page.port}/{TOKEN}/"
    assert page.addresses == ("127.0.0.1",)


async def test_a_new_server_has_a_new_long_token(reads: Reads) -> None:
    first, second = (PageServer(Refresher(reads)) for _ in range(2))
    assert first.url != second.url
    assert len(first.url.split("/")[3]) >= 32


@pytest.mark.parametrize("token", ["", "wrong", TOKEN[:-1], TOKEN + "x", "%74" * 32, "ü"])
async def test_without_its_token_nothing_is_answered(page: PageServer, token: str) -> None:
    for path in ("", "state", "page.js", "why?workload=web"):
        status, _, body = await get(page, path, token)
        assert status in {400, 403}
        assert b"DFW" not in body


async def test_requests_that_other_sites_cause_are_refused(page: PageServer) -> None:
    status, _, _ = await get(page, "state", Host="evil.example:80")
    assert status == 421
    for site in ("cross-site", "same-site"):
        status, headers, _ = await get(page, "state", **{"Sec-Fetch-Site": site})
        assert status == 403
        assert "Access-Control-Allow-Origin" not in headers
    status, _, _ = await get(page, "state", **{"Sec-Fetch-Site": "same-origin"})
    assert status == 200


@pytest.mark.parametrize(
    "path", ["../server.py", "assets/page.js", "%2e%2e/server.py", "a/b", "//"]
)
async def test_no_other_file_is_served(page: PageServer, path: str) -> None:
    status, _, _ = await get(page, path)
    assert status == 404


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET / SPDY/3\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
        (b"\xff\xfe\x00 x HTTP/1.1\r\n\r\n", 421),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nA: " + b"x" * LARGEST_HEAD + b"\r\n\r\n", 431),
    ],
)
async def test_what_is_no_request_is_refused(page: PageServer, raw: bytes, expected: int) -> None:
    status, _, _ = await send(page, raw)
    assert status == expected
    assert (await get(page, "state"))[0] == 200, "the next request is answered"


async def test_other_methods_and_long_addresses_are_refused(page: PageServer) -> None:
    host = f"Host: 127.0.0.1:{page.port}\r\n\r\n"
    status, _, _ = await send(page, f"POST /{TOKEN}/state HTTP/1.1\r\n{host}".encode())
    assert status == 405
    status, _, _ = await get(page, "why?workload=" + "x" * 3000)
    assert status == 414
    status, _, _ = await get(page, "why?" + "&".join(f"a{n}=1" for n in range(9)))
    assert status == 400


async def test_connections_are_bounded_and_silent_ones_end(
    page: PageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_server, "MOST_CONNECTIONS", 2)
    held = [await asyncio.open_connection("127.0.0.1", page.port) for _ in range(2)]
    await until(lambda: page.connections == 2)
    reader, writer = await asyncio.open_connection("127.0.0.1", page.port)
    assert await reader.read() == b"", "closed without an answer"
    for _, one in (*held, (reader, writer)):
        one.close()
    await until(lambda: page.connections == 0)
    assert (await get(page, "state"))[0] == 200
    monkeypatch.setattr(page_server, "DEADLINE", 0.01)
    reader, writer = await asyncio.open_connection("127.0.0.1", page.port)
    assert await reader.read() == b"", "closed at its deadline"
    writer.close()


async def test_the_state_is_sent_once_for_each_change(page: PageServer, reads: Reads) -> None:
    first = json.loads((await get(page, "state"))[2])
    assert [one["code"] for one in first["page"]["cities"]] == ["DFW", "ORD"]
    again = json.loads((await get(page, f"state?known={first['digest']}"))[2])
    assert "page" not in again
    assert again["digest"] == first["digest"]
    reads.snapshot = settled().hide("ord-1", access=Access.UNREACHABLE).snapshot()
    await page.refresher.read()
    changed = json.loads((await get(page, f"state?known={first['digest']}"))[2])
    assert changed["page"]["cities"][1]["state"] == "unreachable"


async def test_panels_are_answered_and_absent_objects_named(page: PageServer) -> None:
    for kind in ("why", "timeline", "tree"):
        status, headers, body = await get(page, f"{kind}?workload=web&city=DFW")
        assert (status, headers["Content-Type"]) == (200, "application/json")
        assert json.loads(body)["workload"]["name"] == "web"
    status, headers, body = await get(page, "why?workload=%3Cscript%3E")
    assert (status, headers["Content-Type"]) == (404, "text/plain; charset=utf-8")
    assert body == b"workload <script> is not visible any more\n"


async def test_a_panel_before_the_first_read_is_not_ready(reads: Reads) -> None:
    reads.failure = OSError("no route")
    async with PageServer(Refresher(reads), token=TOKEN) as page:
        status, _, _ = await get(page, "why?workload=web")
        assert status == 503
        assert json.loads((await get(page, "state"))[2])["readAt"] is None


@pytest.mark.parametrize(
    ("failure", "text"),
    [
        (OSError("no route to host"), "no route to host"),
        (ValueError("bad \x1b[31m"), "ValueError: bad [31m"),
        (RecursionError(), "RecursionError"),
    ],
)
async def test_a_failed_read_keeps_the_last_view_and_names_its_cause(
    reads: Reads, failure: Exception, text: str
) -> None:
    refresher = Refresher(reads, clock=reads.clock)
    await refresher.read()
    reads.failure = failure
    began = reads.now
    for _ in range(2):
        await refresher.read()
        reads.now += timedelta(seconds=2)
    state = refresher.state("")
    assert state["failure"] == {"since": began.strftime("%Y-%m-%dT%H:%M:%SZ"), "message": text}
    assert "page" in state
    reads.failure = None
    await refresher.read()
    assert refresher.state("")["failure"] is None


async def test_a_project_that_falls_silent_does_not_empty_the_page(reads: Reads) -> None:
    reads.snapshot = settled().only_project().snapshot()
    refresher = Refresher(reads, clock=reads.clock)
    await refresher.read()
    digest = refresher.state("")["digest"]
    silent = settled().only_project().hide("project", access=Access.UNREACHABLE)
    reads.snapshot = silent.snapshot()
    await refresher.read()
    state = refresher.state("")
    assert state["digest"] == digest
    assert "the project does not answer" in str(state["failure"])


async def test_a_silent_plane_has_the_moment_of_its_first_silence(reads: Reads) -> None:
    reads.snapshot = settled().hide("ord-1", access=Access.UNREACHABLE).snapshot()
    refresher = Refresher(reads, clock=reads.clock)
    digests: list[JsonValue] = []
    for _ in range(2):
        await refresher.read()
        digests.append(refresher.state("")["digest"])
        reads.now += timedelta(seconds=2)
    assert digests[0] == digests[1]


def test_the_scripts_never_parse_text_as_markup() -> None:
    folder = resources.files("compute_kubectl.ui").joinpath("assets")
    for name in (one for one, _ in ASSETS.values() if one.endswith(".js")):
        text = folder.joinpath(name).read_text("utf-8")
        for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
            assert way not in text, (name, way)


def test_a_head_is_checked_before_its_address() -> None:
    head = parse_head(b"GET /x/ HTTP/1.1\r\nHost: 127.0.0.1:1")
    assert head == RequestHead("GET", "/x/", {"host": "127.0.0.1:1"})
    with pytest.raises(RequestError) as caught:
        check_request(head, "x", 2)
    assert caught.value.status == 421
